package main

import (
	"runtime"
	"slices"
	"time"
)

// timerChurn: a batch of timers is armed for 1 s to 10 min, each with a function as the waker left in it, then
// all are stopped before any is due. (A timer with a channel that nobody waits on is never armed at all.)
func timerChurn(r run) outcome {
	return root(func() outcome {
		stop := stopwatch()
		state := uint64(88172645463325252)
		timers := make([]*time.Timer, r.batch)
		wake := func() { check(false, "no timer is due") }
		for done := uint64(0); done < r.ops; done += r.batch {
			for i := range timers {
				timers[i] = time.AfterFunc(time.Duration(1000+random(&state)%599000)*time.Millisecond, wake)
			}
			for _, timer := range timers {
				check(timer.Stop(), "the timer was armed")
			}
			runtime.Gosched()
		}
		return stop()
	})
}

// timerFire: a goroutine a timer; deadlines 10 us apart in a second that begins half a second after the start,
// armed in shuffled order. CPU is taken over that second.
func timerFire(r run) outcome {
	const lead, step, stride = 500 * time.Millisecond, 10 * time.Microsecond, 7919
	check(r.ops%stride != 0, "the stride visits every index")
	late := make([]time.Duration, r.ops)
	g := newGate()
	g.shut(r.ops)
	origin := time.Now()
	go func() {
		for i := range r.ops {
			go func() {
				index := i * stride % r.ops
				deadline := origin.Add(lead + time.Duration(index)*step)
				time.Sleep(time.Until(deadline))
				late[index] = time.Since(deadline)
				check(late[index] >= 0, "not early")
				g.pass()
			}()
		}
	}()
	time.Sleep(time.Until(origin.Add(lead)))
	cpu := cpuNs()
	g.await()
	cpu = cpuNs() - cpu
	slices.Sort(late)
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	return outcome{cpuNs: cpu, figures: []figure{
		{"lateness_p50_us", us(late[r.ops/2])},
		{"lateness_p99_us", us(late[r.ops*99/100])},
		{"lateness_max_us", us(late[r.ops-1])},
	}}
}
