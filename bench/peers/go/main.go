// noria-bench-go WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]
// noria-bench-go echo [--workers N]
//
// The workloads of bench/micro and the echo server of bench/net on Go's runtime, as it comes: the same
// rounds, the same counts, the same JSON line. A task is a goroutine, a worker a P (GOMAXPROCS).
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
)

// run is one run of a workload, as bench_run of micro.h.
type run struct {
	ops, batch uint64
}

type outcome struct {
	wallNs, cpuNs uint64
	figures       []figure // stand in place of ns_per_op
}

type figure struct {
	name  string
	value float64
}

type workload struct {
	name       string
	ops, batch uint64
	run        func(run) outcome
}

var workloads = []workload{
	{"spawn_many", 1000000, 10000, spawnMany},
	{"spawn_remote", 1000000, 10000, spawnRemote},
	{"yield_many", 1000000, 1000000, yieldMany},
	{"ping_pong", 200000, 1000, pingPong},
	{"chained_spawn", 1000000, 1000000, chainedSpawn},
	{"timer_churn", 1000000, 10000, timerChurn},
	{"timer_fire", 100000, 100000, timerFire},
	{"blocking", 200000, 200000, blocking},
}

// check stops the program: a benchmark that counted wrongly has no figure.
func check(condition bool, what string) {
	if !condition {
		panic("check failed: " + what)
	}
}

// argument is the number behind name on the command line, or fallback.
func argument(name string, fallback uint64) uint64 {
	for i := 1; i+1 < len(os.Args); i++ {
		if os.Args[i] == name {
			number, err := strconv.ParseUint(os.Args[i+1], 10, 64)
			check(err == nil, name)
			return number
		}
	}
	return fallback
}

func find(name string) *workload {
	for i := range workloads {
		if workloads[i].name == name {
			return &workloads[i]
		}
	}
	return nil
}

func main() {
	workers := argument("--workers", 1)
	runtime.GOMAXPROCS(int(workers))
	name := ""
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	if name == "echo" {
		serve(workers)
		return
	}
	w := find(name)
	if w == nil {
		fmt.Fprintln(os.Stderr, "usage: noria-bench-go WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]")
		os.Exit(2)
	}
	ops := argument("--ops", w.ops)
	batch := argument("--batch", w.batch)
	warmup := argument("--warmup", ops/10)
	if warmup > 0 {
		w.run(run{warmup, min(batch, warmup)})
	}
	measured := w.run(run{ops, min(batch, ops)})

	fmt.Printf("{\"workload\": %q, \"contender\": \"go\", \"workers\": %d, \"ops\": %d, \"batch\": %d",
		name, workers, ops, min(batch, ops))
	if measured.figures == nil {
		fmt.Printf(", \"ns_per_op\": %.3f", float64(measured.wallNs)/float64(ops))
	}
	for _, f := range measured.figures {
		fmt.Printf(", %q: %.3f", f.name, f.value)
	}
	fmt.Printf(", \"cpu_ns_per_op\": %.3f}\n", float64(measured.cpuNs)/float64(ops))
}
