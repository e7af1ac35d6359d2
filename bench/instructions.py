#!/usr/bin/env python3
"""Instructions an operation on the hot paths, counted by callgrind: they do not depend on the machine's mood.

Each workload runs twice at different sizes, with one worker; the slope between the two leaves start and end of the process out. Counts user
space only. Writes bench/results/instructions.json, so that a regression shows in a diff."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from contender import PROGRAMS, Failed, finish, start
from contenders import contenders
from report import RESULTS

# workload: the parameters of two sizes; how many operations that were, the program tells
MICRO = {
    "spawn_many": ({"ops": 50000, "batch": 10000}, {"ops": 150000, "batch": 10000}),
    "spawn_remote": ({"ops": 50000, "batch": 10000}, {"ops": 150000, "batch": 10000}),
    "yield_many": ({"ops": 200000, "batch": 200000}, {"ops": 600000, "batch": 200000}),
    "ping_pong": ({"ops": 10000, "batch": 1000}, {"ops": 30000, "batch": 1000}),
    "chained_spawn": ({"ops": 50000, "batch": 50000}, {"ops": 150000, "batch": 150000}),
    "fork_join_fib": ({"n": 20}, {"n": 24}),
    "uneven_tree": ({"roots": 200, "seed": 1}, {"roots": 600, "seed": 1}),
    "timer_churn": ({"ops": 50000, "batch": 10000}, {"ops": 150000, "batch": 10000}),
    "timer_reset": ({"ops": 50000, "batch": 10000}, {"ops": 150000, "batch": 10000}),
}
ECHO = (2000, 6000)  # requests of 64 B on 50 connections


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD", help="of: " + " ".join([*MICRO, "echo_cpu"]))
    parser.add_argument("--peers", default="tokio", metavar="LIST", help="count these too, by comma (tokio); 'none' for Noria alone")
    parser.add_argument("--top", type=int, default=0, metavar="N", help="print the N costliest functions of each (Noria's)")
    return parser.parse_args()


def valgrind(out):
    return ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "-q"]


def total(out):
    with open(out) as file:
        return int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M)[1])


def count_micro(contender, workload, params, out):
    """How many instructions, and for how many operations."""
    command = contender.command("micro", workload, workers=1, warmup=0, **params)
    report = finish(start([*valgrind(out), *command]), f"{contender.name} {workload}")
    return total(out), report["ops"]


def count_echo(contender, requests, out):
    """The same, of the echo server."""
    server = start([*valgrind(out), *contender.command("echo", workers=1)])
    port = re.fullmatch(r"port (\d+)\n", server.stdout.readline())[1]
    words = ["--port", port, "--connections", "50", "--bytes", "64", "--warmup", "100", "--requests", str(requests)]
    try:
        finish(start([os.path.join(PROGRAMS, "noria-load"), "echo", *words]), "the load")
    finally:
        server.send_signal(signal.SIGTERM)
    finish(server, f"{contender.name} echo")
    return total(out), requests


def costliest(out, count):
    text = subprocess.run(["callgrind_annotate", out], capture_output=True, text=True).stdout
    lines = [line for line in text.split("\n") if re.match(r"\s*[\d,]+ \(", line)]
    return "\n".join(lines[:count + 1])


def measure(contender, workload, wanted):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind.out")
        if workload == "echo_cpu":
            counts = [count_echo(contender, requests, out) for requests in ECHO]
        else:
            counts = [count_micro(contender, workload, params, out) for params in MICRO[workload]]
        if wanted.top and contender.name == "noria":
            print(costliest(out, wanted.top))
    (small, few), (large, many) = counts
    return (large - small) / (many - few)


def save(rows):
    """Puts the rows in the place of those that were counted before, and leaves the others."""
    path = os.path.join(RESULTS, "instructions.json")
    every = {}
    if os.path.exists(path):
        with open(path) as file:
            every = {(row["contender"], row["workload"]): row for row in json.load(file)}
    every.update({(row["contender"], row["workload"]): row for row in rows})
    with open(path, "w") as file:
        json.dump(list(every.values()), file, indent=1)
        file.write("\n")


def main():
    wanted = options()
    if not shutil.which("valgrind"):
        sys.exit("valgrind is not installed (Debian's package valgrind)")
    names = {"noria", *wanted.peers.split(",")} - {"none"}
    rows, status = [], 0
    for name, contender in contenders().items():
        if name not in names:
            continue
        workloads = wanted.only or [*MICRO, "echo_cpu"]
        workloads = [w for w in workloads if w in contender.workloads]
        reason = contender.build({"echo" if w == "echo_cpu" else "micro" for w in workloads})
        if reason:
            print(f"MISSING {name}: {reason}", file=sys.stderr)
            continue
        for workload in workloads:
            try:
                count = round(measure(contender, workload, wanted), 1)
            except Failed as failure:
                print(f"FAILED {failure}", file=sys.stderr)
                status = 1
                continue
            print(f"{workload:<14} {name:<8} {count:10.1f} instructions an operation", flush=True)
            rows.append({"workload": workload, "contender": name, "workers": 1, "unit": "instructions", "better": "lower", "count": count})
    save(rows)
    return status


if __name__ == "__main__":
    sys.exit(main())
