package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

const sleepersAtOnce = 1000

type memory struct{ resident, allocated uint64 }

// memoryNow: resident bytes of the process; and bytes of the heap and the stacks in use, which stand for malloc's.
func memoryNow() memory {
	var all, resident uint64
	text, err := os.ReadFile("/proc/self/statm")
	check(err == nil, "statm")
	_, err = fmt.Sscan(string(text), &all, &resident)
	check(err == nil, "statm")
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return memory{resident * uint64(os.Getpagesize()), stats.HeapAlloc + stats.StackInuse}
}

func (before memory) grown(ops uint64) outcome {
	now := memoryNow()
	return outcome{figures: []figure{
		{"bytes_per_op", (float64(now.resident) - float64(before.resident)) / float64(ops)},
		{"malloc_bytes_per_op", (float64(now.allocated) - float64(before.allocated)) / float64(ops)},
	}}
}

// idleTaskBytes: goroutines that each sleep for an hour; a thousand are spawned at a time, so that queues stay short.
func idleTaskBytes(r run) outcome {
	return root(func() outcome {
		g := newGate()
		before := memoryNow()
		for made := uint64(0); made < r.ops; {
			count := min(sleepersAtOnce, r.ops-made)
			g.shut(count)
			for range count {
				go func() {
					g.pass()
					time.Sleep(time.Hour)
				}()
			}
			g.await()
			made += count
		}
		return before.grown(r.ops)
	})
}

// timerBytes: timers of an hour or two that one goroutine holds.
func timerBytes(r run) outcome {
	return root(func() outcome {
		state := uint64(88172645463325252)
		wake := func() { check(false, "no timer is due") }
		before := memoryNow()
		timers := make([]*time.Timer, r.ops)
		for i := range timers {
			timers[i] = time.AfterFunc(time.Duration(3600000+random(&state)%3600000)*time.Millisecond, wake)
		}
		measured := before.grown(r.ops)
		for _, timer := range timers {
			check(timer.Stop(), "the timer was armed")
		}
		return measured
	})
}
