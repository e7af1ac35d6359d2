// noria-bench-go WORKLOAD [--workers N] [--ops N] [--batch N] [--warmup N]
// noria-bench-go (echo | service) [--workers N]
//
// The workloads of bench/micro and the servers of bench/net and bench/service on Go's runtime, as it comes: the same
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
	ops           uint64 // where the run did not say how many
	wallNs, cpuNs uint64
	figures       []figure
}

type figure struct {
	name  string
	value float64
}

type workload struct {
	name       string
	ops, batch uint64
	run        func(run) outcome
	cold       bool // warms itself up, or must not
}

var workloads = []workload{
	{"spawn_many", 1000000, 10000, spawnMany, false},
	{"spawn_remote", 1000000, 10000, spawnRemote, false},
	{"yield_many", 1000000, 1000000, yieldMany, false},
	{"ping_pong", 200000, 1000, pingPong, false},
	{"chained_spawn", 1000000, 1000000, chainedSpawn, false},
	{"unbalanced_producer", 100000, 10000, unbalancedProducer, false},
	{"fork_join_fib", 1, 1, forkJoinFib, true},
	{"uneven_tree", 1, 1, unevenTree, true},
	{"wake_latency", 1000, 1000, wakeLatency, false},
	{"light_load", 1000, 1000, lightLoad, false},
	{"timer_churn", 1000000, 10000, timerChurn, false},
	{"timer_reset", 1000000, 10000, timerReset, false},
	{"timer_fire", 100000, 100000, timerFire, false},
	{"blocking", 200000, 200000, blocking, false},
	{"blocking_seq", 10000, 1, blockingSeq, false},
	{"idle_task_bytes", 100000, 1000, idleTaskBytes, true},
	{"timer_bytes", 100000, 1000, timerBytes, true},
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
		serveEcho(workers)
		return
	}
	if name == "service" {
		serveService(workers)
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
	if warmup > 0 && !w.cold {
		w.run(run{warmup, min(batch, warmup)})
	}
	measured := w.run(run{ops, min(batch, ops)})
	if measured.ops > 0 {
		ops = measured.ops
	}
	fmt.Printf("{\"workload\": %q, \"contender\": \"go\", \"workers\": %d, \"ops\": %d, \"batch\": %d",
		name, workers, ops, min(batch, ops))
	for _, f := range measured.figures {
		fmt.Printf(", %q: %.3f", f.name, f.value)
	}
	if measured.wallNs > 0 {
		fmt.Printf(", \"ns_per_op\": %.3f", float64(measured.wallNs)/float64(ops))
	}
	if measured.cpuNs > 0 {
		fmt.Printf(", \"cpu_ns_per_op\": %.3f", float64(measured.cpuNs)/float64(ops))
	}
	fmt.Println("}")
}
