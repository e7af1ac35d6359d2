package main

import (
	"slices"
	"syscall"
	"time"
	"unsafe"
)

var began = time.Now()

// nowNs is Go's monotonic clock, which is CLOCK_MONOTONIC.
func nowNs() uint64 { return uint64(time.Since(began)) }

const (
	processClock = 2 // CLOCK_PROCESS_CPUTIME_ID
	threadClock  = 3 // CLOCK_THREAD_CPUTIME_ID
)

func clockNs(clock uintptr) uint64 {
	var t syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0)
	check(errno == 0, "clock_gettime")
	return uint64(t.Nano())
}

// cpuNs is the CPU time of this process, all threads, user and kernel.
func cpuNs() uint64 { return clockNs(processClock) }

// burnNs keeps a CPU busy until this goroutine has taken so much of it. Go may move the goroutine to another
// thread meanwhile; the clock's jump is not counted.
func burnNs(duration uint64) {
	const jump = uint64(time.Millisecond)
	last := clockNs(threadClock)
	for burned := uint64(0); burned < duration; {
		now := clockNs(threadClock)
		if step := now - last; step < jump {
			burned += step
		}
		last = now
	}
}

// work is bench_work: hashes rounds of the finaliser of splitmix64.
func work(x uint64, hashes uint64) uint64 {
	for range hashes {
		x = mix(x)
	}
	return x
}

func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB
	return x ^ (x >> 31)
}

// percentileUs sorts values and gives the one that share of them lie below.
func percentileUs(values []uint64, share float64) float64 {
	slices.Sort(values)
	index := int(float64(len(values)) * share)
	return float64(values[min(index, len(values)-1)]) / 1e3
}

// stopwatch begins a measurement; calling what it gives ends it.
func stopwatch() func() outcome {
	cpu, wall := cpuNs(), nowNs()
	return func() outcome { return outcome{wallNs: nowNs() - wall, cpuNs: cpuNs() - cpu} }
}

// random is xorshift64: the same numbers in every contender.
func random(state *uint64) uint64 {
	x := *state
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*state = x
	return x
}
