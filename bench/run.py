#!/usr/bin/env python3
"""Benchmarks of Noria and its peers, in turns, in one run.

Each case (a workload at a number of workers) runs its contenders one after the other, A B C, A B C, ...; the figure is the
ratio within a round, since a machine's speed drifts between rounds. A round in which other processes took CPU is
marked and repeated. Writes bench/results/latest.json, run.json, latest.md and the plots; bench/README.md says how to doubt them."""
import argparse
import json
import os
import sys
import time

from contenders import contenders
from machine import describe
from report import RESULTS, render
from rounds import Budget, progress, rows_of, run_case
from workloads import all_cases, out_of_reach

FULL_S, QUICK_S = 56 * 60, 165  # what a whole run may take, builds left out; then cases get fewer rounds
ROUNDS, QUICK_ROUNDS = 7, 3
QUICK_PEERS = "tokio,epoll,libuv,asio,tbb,haproxy"  # unless --peers says otherwise


def options():
    parser = argparse.ArgumentParser(prog="run bench", description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD", help="these workloads alone")
    parser.add_argument("--peers", metavar="LIST", help="these peers alone, by comma; 'none' for Noria alone")
    parser.add_argument("--rounds", type=int, metavar="N", help=f"undisturbed rounds a case ({ROUNDS}; with --quick {QUICK_ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, cases and peers, within 3 minutes")
    parser.add_argument("--growth", action="store_true", help="at 4, 8 and 16 workers and with up to 10 M timers too; no limit of time")
    parser.add_argument("--json", metavar="FILE", help="write the results there too")
    parser.add_argument("--results", metavar="DIR", default=RESULTS, help="write the tables and plots there (bench/results)")
    parser.add_argument("--list", action="store_true", help="name the workloads and peers, and run nothing")
    return parser.parse_args()


def choose_cases(wanted):
    cases = all_cases(wanted.quick, wanted.growth)
    if wanted.only:
        unknown = set(wanted.only) - {case.workload for case in cases}
        if unknown:
            sys.exit(f"no such workload{' with --quick' * wanted.quick}: {' '.join(sorted(unknown))}; --list names them")
        cases = [case for case in cases if case.workload in wanted.only]
    return cases


def choose_contenders(wanted):
    """Those asked for, by name; Noria is always among them."""
    known = contenders()
    peers = wanted.peers or (QUICK_PEERS if wanted.quick and not wanted.list else ",".join(known))
    names = {"noria", *peers.split(",")} - {"none"}
    if names - set(known):
        sys.exit(f"no such peer: {' '.join(sorted(names - set(known)))}; --list names them")
    return {name: contender for name, contender in known.items() if name in names}


def build(chosen, cases):
    """Those that could be built and have a part in the cases; why the others are missing."""
    runners, missing = {}, {}
    for name, contender in chosen.items():
        kinds = dict.fromkeys(case.kind for case in cases if case.takes(contender))
        if not kinds and contender.workloads:
            continue
        progress(f"building {name}", end=not sys.stderr.isatty())
        reason = contender.build(kinds or dict.fromkeys(contender.programs))
        if reason:
            missing[name] = reason
            progress(f"MISSING {name}: {reason}", end=True)
        else:
            runners[name] = contender
    return runners, missing


def save(path, data):
    with open(path, "w") as file:
        json.dump(data, file, indent=1)
        file.write("\n")


def main():
    wanted = options()
    cases = choose_cases(wanted)
    chosen = choose_contenders(wanted)
    if wanted.list:
        print("workloads:", " ".join(dict.fromkeys(case.workload for case in cases)))
        print("peers:", " ".join(name for name in chosen if name != "noria"))
        return 0
    runners, missing = build(chosen, cases)
    if "noria" in missing:
        return 1
    rounds_wanted = max(1, wanted.rounds or (QUICK_ROUNDS if wanted.quick else ROUNDS))
    budget = Budget(QUICK_S if wanted.quick else float("inf") if wanted.growth else FULL_S, len(cases))
    # A part of the workloads, of the peers or of the rounds is not what the front page shows.
    whole = not (wanted.only or wanted.peers or wanted.quick) and rounds_wanted >= ROUNDS
    rows, failures, skipped, began = [], [], out_of_reach(wanted.quick), time.monotonic()
    os.makedirs(wanted.results, exist_ok=True)
    for case in cases:
        takers = {name: contender for name, contender in runners.items() if case.takes(contender)}
        if budget.is_spent():
            skipped.append(case.title())
        elif "noria" in takers:
            rounds, disturbed = run_case(case, takers, rounds_wanted, budget.share_s(), failures)
            rows.extend(rows_of(case, rounds, disturbed, runners))
        budget.spend()
        # After each case, so that a run that is broken off leaves what it has.
        for path in [os.path.join(wanted.results, "latest.json")] + ([wanted.json] if wanted.json else []):
            save(path, rows)
        save(os.path.join(wanted.results, "run.json"), describe(runners, missing, failures, skipped, time.monotonic() - began,
                                                                     wanted.quick, whole))
    render(wanted.results, whole and os.path.realpath(wanted.results) == os.path.realpath(RESULTS))
    print(f"{os.path.relpath(wanted.results)}/latest.md ({len(cases)} cases, {len(failures)} failures, {len(skipped)} not reached)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
