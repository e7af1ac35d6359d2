package main

import (
	"runtime"
	"sync/atomic"
	"time"
)

// timerChurn: a batch of timers is armed for 1 s to 10 min, each with a function as the waker left in it, then
// all are stopped. (A timer with a channel that nobody waits on is never armed at all.) One that was due before that,
// on a machine that stood still, must have called its function.
func timerChurn(r run) outcome {
	return root(func() outcome {
		var called atomic.Uint64
		due := uint64(0)
		stop := stopwatch()
		state := uint64(88172645463325252)
		timers := make([]*time.Timer, r.batch)
		wake := func() { called.Add(1) }
		for done := uint64(0); done < r.ops; done += r.batch {
			for i := range timers {
				timers[i] = time.AfterFunc(time.Duration(1000+random(&state)%599000)*time.Millisecond, wake)
			}
			for _, timer := range timers {
				if !timer.Stop() {
					due++
				}
			}
			runtime.Gosched()
		}
		measured := stop()
		for called.Load() < due {
			runtime.Gosched()
		}
		check(called.Load() == due, "who is stopped is not called")
		return measured
	})
}

// timerReset: such timers are moved to other deadlines, one after the other; a round goes through all of them.
func timerReset(r run) outcome {
	return root(func() outcome {
		state := uint64(88172645463325252)
		duration := func() time.Duration { return time.Duration(1000+random(&state)%599000) * time.Millisecond }
		wake := func() { check(false, "no timer is due") }
		timers := make([]*time.Timer, r.batch)
		for i := range timers {
			timers[i] = time.AfterFunc(duration(), wake)
		}
		stop := stopwatch()
		for done := uint64(0); done < r.ops; done += r.batch {
			for _, timer := range timers {
				check(timer.Reset(duration()), "the timer was armed")
			}
			runtime.Gosched()
		}
		measured := stop()
		for _, timer := range timers {
			check(timer.Stop(), "the timer was armed")
		}
		return measured
	})
}

// timerFire: a goroutine a timer; deadlines 10 us apart in a second that begins half a second after the start,
// armed in shuffled order. CPU is taken over that second.
func timerFire(r run) outcome {
	const lead, step, stride = 500 * time.Millisecond, 10 * time.Microsecond, 7919
	check(r.ops%stride != 0, "the stride visits every index")
	late := make([]uint64, r.ops)
	g := newGate()
	g.shut(r.ops)
	origin := time.Now()
	go func() {
		for i := range r.ops {
			go func() {
				index := i * stride % r.ops
				deadline := origin.Add(lead + time.Duration(index)*step)
				time.Sleep(time.Until(deadline))
				delay := time.Since(deadline)
				check(delay >= 0, "not early")
				late[index] = uint64(delay)
				g.pass()
			}()
		}
	}()
	time.Sleep(time.Until(origin.Add(lead)))
	cpu := cpuNs()
	g.await()
	cpu = cpuNs() - cpu
	return outcome{cpuNs: cpu, figures: []figure{
		{"lateness_p50_us", percentileUs(late, 0.5)},
		{"lateness_p99_us", percentileUs(late, 0.99)},
		{"lateness_max_us", percentileUs(late, 1)},
	}}
}
