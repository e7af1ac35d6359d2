package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const burnStepNs = 10000

// wakes: a goroutine that is locked to a thread of its own wakes another ops times, each time after a pause and
// when that has seen the one before. It gives what each took, and the CPU time of the waking thread. As near as Go
// comes to a thread that is no worker: between its pauses the waker holds a P, which it hands on with the woken
// goroutine when it pauses again.
func wakes(ops uint64) (latency []uint64, wakerNs uint64) {
	interval := time.Duration(argument("--interval-us", 300)) * time.Microsecond
	var sent, seen atomic.Uint64
	wake, done := make(chan struct{}, 1), make(chan []uint64)
	go func() {
		latency := make([]uint64, 0, ops)
		for i := range ops {
			<-wake
			latency = append(latency, nowNs()-sent.Load())
			seen.Store(i + 1)
		}
		done <- latency
	}()
	waker := make(chan uint64, 1)
	go func() {
		runtime.LockOSThread()
		begin := clockNs(threadClock)
		for i := range ops {
			time.Sleep(interval)
			for seen.Load() != i {
				time.Sleep(interval)
			}
			sent.Store(nowNs())
			wake <- struct{}{}
		}
		waker <- clockNs(threadClock) - begin
	}()
	latency = <-done
	check(uint64(len(latency)) == ops, "each wake was seen")
	return latency, <-waker
}

// wakeLatency: with --load goroutines that burn 10 us and yield.
func wakeLatency(r run) outcome {
	var stop atomic.Bool
	var burners sync.WaitGroup
	for range argument("--load", 0) {
		burners.Go(func() {
			for !stop.Load() {
				burnNs(burnStepNs)
				runtime.Gosched()
			}
		})
	}
	latency, _ := wakes(r.ops)
	stop.Store(true)
	burners.Wait()
	return outcome{figures: []figure{
		{"p50_us", percentileUs(latency, 0.5)},
		{"p99_us", percentileUs(latency, 0.99)},
		{"p999_us", percentileUs(latency, 0.999)},
	}}
}

func lightLoad(r run) outcome {
	wall, all := nowNs(), cpuNs()
	_, wakerNs := wakes(r.ops)
	all, wall = cpuNs()-all, nowNs()-wall
	return outcome{figures: []figure{{"cpu_percent", 100 * float64(all-wakerNs) / float64(wall)}}}
}
