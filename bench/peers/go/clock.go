package main

import (
	"syscall"
	"time"
	"unsafe"
)

var began = time.Now()

// nowNs is Go's monotonic clock, which is CLOCK_MONOTONIC.
func nowNs() uint64 { return uint64(time.Since(began)) }

// cpuNs is the CPU time of this process, all threads, user and kernel.
func cpuNs() uint64 {
	const processClock = 2 // CLOCK_PROCESS_CPUTIME_ID
	var t syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processClock, uintptr(unsafe.Pointer(&t)), 0)
	check(errno == 0, "clock_gettime")
	return uint64(t.Nano())
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
