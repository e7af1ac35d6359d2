package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	messageBytes = 64
	burnInline   = 1
	burnOnPool   = 2
	probes       = 8
)

var messages, timerMaxNs, taskMaxNs, spawnedMaxNs atomic.Uint64

// note: delays count from the first message on.
func note(longest *atomic.Uint64, delay uint64) {
	if messages.Load() == 0 {
		return
	}
	for {
		seen := longest.Load()
		if delay <= seen || longest.CompareAndSwap(seen, delay) {
			return
		}
	}
}

func spawnProbe(longest *atomic.Uint64) {
	spawned := nowNs()
	go func() { note(longest, nowNs()-spawned) }()
}

// answer: messages of 64 bytes are sent back, after a burn if they ask for one, as in service/noria_service.c. Go has
// no blocking pool: what would go there is a goroutine that is awaited.
func answer(connection net.Conn) {
	defer connection.Close()
	message := make([]byte, messageBytes)
	for {
		if _, err := io.ReadFull(connection, message); err != nil {
			return
		}
		duration := uint64(binary.LittleEndian.Uint32(message[4:8])) * 1000
		messages.Add(1)
		switch message[0] {
		case burnInline:
			for range probes {
				spawnProbe(&spawnedMaxNs)
			}
			burnNs(duration)
		case burnOnPool:
			done := make(chan struct{})
			go func() {
				burnNs(duration)
				close(done)
			}()
			<-done
		}
		if _, err := connection.Write(message); err != nil {
			return
		}
	}
}

func probeTimers() {
	for {
		deadline := nowNs() + uint64(time.Millisecond)
		time.Sleep(time.Millisecond)
		if now := nowNs(); now > deadline {
			note(&timerMaxNs, now-deadline)
		}
	}
}

// probeTasks: on a thread of its own, which needs a P to spawn; the delay counts from then.
func probeTasks() {
	runtime.LockOSThread()
	for {
		time.Sleep(time.Millisecond)
		spawnProbe(&taskMaxNs)
	}
}

func serveService(workers uint64) {
	go probeTimers()
	go probeTasks()
	serve(answer)
	us := func(longest *atomic.Uint64) float64 { return float64(longest.Load()) / 1e3 }
	fmt.Printf("{\"workload\": \"service\", \"contender\": \"go\", \"workers\": %d, \"messages\": %d, \"timer_max_us\": %.3f, \"task_max_us\": %.3f, \"spawned_max_us\": %.3f}\n",
		workers, messages.Load(), us(&timerMaxNs), us(&taskMaxNs), us(&spawnedMaxNs))
}
