package main

import (
	"runtime"
	"sync/atomic"
)

// gate is a counter that wakes one goroutine when it reaches zero, as in micro.h.
type gate struct {
	remaining atomic.Int64
	open      chan struct{}
}

func newGate() *gate { return &gate{open: make(chan struct{}, 1)} }

func (g *gate) shut(count uint64) { g.remaining.Store(int64(count)) }

func (g *gate) pass() {
	if g.remaining.Add(-1) == 0 {
		g.open <- struct{}{}
	}
}

func (g *gate) await() {
	<-g.open
	check(g.remaining.Load() == 0, "the gate is open")
}

// root runs f on a goroutine of its own and waits for what it gives.
func root(f func() outcome) outcome {
	done := make(chan outcome)
	go func() { done <- f() }()
	return <-done
}

// rounds runs a root that calls begin in rounds and waits at the gate after each.
func rounds(r run, passes uint64, begin func(*gate)) outcome {
	return root(func() outcome {
		g := newGate()
		stop := stopwatch()
		for done := uint64(0); done < r.ops; done += r.batch {
			g.shut(passes)
			begin(g)
			g.await()
		}
		return stop()
	})
}

// spawnMany: batches of goroutines that do nothing but pass the gate.
func spawnMany(r run) outcome {
	return rounds(r, r.batch, func(g *gate) {
		for range r.batch {
			go g.pass()
		}
	})
}

// spawnRemote: the same from goroutines that are locked to threads of their own, which is as near as Go
// comes to a thread that is no worker: while it spawns it holds one of the P's all the same.
func spawnRemote(r run) outcome {
	spawners := argument("--spawners", 1)
	part := r.batch / spawners
	check(r.batch%spawners == 0, "the spawners share the batch")
	all := newGate()
	all.shut(spawners)
	stop := stopwatch()
	for range spawners {
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
			g := newGate()
			for done := uint64(0); done < r.ops; done += r.batch {
				g.shut(part)
				for range part {
					go g.pass()
				}
				g.await()
			}
			all.pass()
		}()
	}
	all.await()
	return stop()
}

// yieldMany: 1,000 goroutines that yield until all of them together have yielded batch times.
func yieldMany(r run) outcome {
	const tasks = 1000
	return rounds(r, tasks, func(g *gate) {
		for range tasks {
			go func() {
				for range r.batch / tasks {
					runtime.Gosched()
				}
				g.pass()
			}()
		}
	})
}

// pingPong: each pair: the first makes two channels for one value, spawns the second, sends on one and waits
// for the answer on the other.
func pingPong(r run) outcome {
	return rounds(r, r.batch, func(g *gate) {
		for range r.batch {
			go func() {
				ping, answer := make(chan struct{}, 1), make(chan struct{}, 1)
				go func() {
					<-ping
					answer <- struct{}{}
				}()
				ping <- struct{}{}
				<-answer
				g.pass()
			}()
		}
	})
}

func chain(left uint64, g *gate) {
	if left == 1 {
		g.pass()
	} else {
		go chain(left-1, g)
	}
}

// chainedSpawn: each goroutine spawns the next one and ends; the last passes the gate.
func chainedSpawn(r run) outcome {
	return rounds(r, 1, func(g *gate) { go chain(r.batch, g) })
}
