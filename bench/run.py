#!/usr/bin/env python3
"""Benchmarks of Noria and its peers, in turns, in one run.

Each case (a workload at a number of workers) runs its contenders one after the other, A B C, A B C, ...; the figure is the
ratio within a round, since a machine's speed drifts between rounds. A round in which other processes took CPU is
marked and repeated. Writes bench/results/latest.json and latest.md; bench/README.md says how to doubt them."""
import argparse
import json
import os
import statistics
import sys
import time

from contender import Failed
from contenders import contenders
from report import write_report
from workloads import all_cases

RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
DISTURBED_SHARE = 0.05  # of one CPU, taken by processes that are not ours
DISTURBED_FLOOR_S = 0.03  # /proc/stat counts in ticks of 10 ms


def options():
    parser = argparse.ArgumentParser(prog="run bench", description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD", help="these workloads alone")
    parser.add_argument("--peers", metavar="LIST", help="these peers alone, by comma; 'none' for Noria alone")
    parser.add_argument("--rounds", type=int, metavar="N", help="undisturbed rounds a case (7; with --quick 3)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and cases, within 3 minutes")
    parser.add_argument("--growth", action="store_true", help="at 4, 8 and 16 workers and with up to 10 M timers too")
    parser.add_argument("--json", metavar="FILE", help="write the results there too")
    parser.add_argument("--results", metavar="DIR", default=RESULTS, help="write the table and all else there (bench/results)")
    parser.add_argument("--list", action="store_true", help="name the workloads and peers, and run nothing")
    return parser.parse_args()


def total_cpu_s():
    """CPU time that all processes of the machine took, and what the hypervisor kept (interrupts left out: on
    loopback they are the contender's own)."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, _, _, steal = [int(word) for word in file.readline().split()[1:9]]
    return (user + nice + system + steal) / os.sysconf("SC_CLK_TCK")


def own_cpu_s():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Watch:
    """How much CPU others took while it watched, as a share of one CPU."""

    def __init__(self):
        self.begin = time.monotonic(), total_cpu_s(), own_cpu_s()

    def foreign_share(self):
        wall, total, own = time.monotonic() - self.begin[0], total_cpu_s() - self.begin[1], own_cpu_s() - self.begin[2]
        foreign = total - own
        return foreign / wall if foreign > DISTURBED_FLOOR_S else 0.0


def progress(text, end=False):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="\n" if end else "", file=sys.stderr, flush=True)
    elif end:
        print(text, file=sys.stderr, flush=True)


def run_case(case, runners, wanted, failures):
    """Rounds as {contender: {figure: value}}, and how many of them were disturbed."""
    rounds, attempts, began = [], 0, time.monotonic()
    alive = [name for name, contender in runners.items() if case.takes(contender)]
    if "noria" not in alive:
        return [], 0
    case.prepare([runners[name] for name in alive])
    while alive and sum(not r[0] for r in rounds) < wanted:
        # On a machine that is never quiet repeating gains nothing.
        hopeless = attempts >= wanted + 2 and all(r[0] for r in rounds)
        if hopeless or attempts >= 2 * wanted:
            break
        attempts += 1
        watch, values = Watch(), {}
        for name in list(alive):
            progress(f"{case.title():<58} round {attempts}: {name}")
            try:
                values[name] = case.measure(runners[name])
            except Failed as failure:
                alive.remove(name)
                failures.append(f"{case.title()}, {name}: {failure}")
                progress(f"FAILED  {failures[-1]}", end=True)
        share = watch.foreign_share()
        rounds.append((share > DISTURBED_SHARE, share, values))
    rounds = sorted(rounds, key=lambda r: r[1] if r[0] else 0.0)[:wanted]
    disturbed = sum(r[0] for r in rounds)
    values = [r[2] for r in rounds]
    took = time.monotonic() - began
    progress(f"{case.title():<58} {summary(case, values)}  ({attempts} rounds, {disturbed} disturbed, {took:.0f} s)", end=True)
    return values, disturbed


def names_in(rounds):
    return list(dict.fromkeys(name for values in rounds for name in values))


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def ratios(figure, rounds, peer):
    """How many times better Noria is, round by round."""
    both = [(r["noria"][figure.key], r[peer][figure.key]) for r in rounds
            if figure.key in r.get("noria", ()) and figure.key in r.get(peer, ())]
    if figure.better == "lower":
        return [theirs / ours for ours, theirs in both if ours > 0]
    return [ours / theirs for ours, theirs in both if theirs > 0]


def summary(case, rounds):
    figure = case.figures[0]
    parts = []
    for name in names_in(rounds):
        values = [r[name][figure.key] for r in rounds if figure.key in r.get(name, ())]
        if values:
            parts.append(f"{name} {statistics.median(values):.4g}")
    return ", ".join(parts) + f" {figure.unit}"


def rows_of(case, rounds, disturbed, runners):
    names = names_in(rounds)
    for figure in case.figures:
        for name in names:
            values = [r[name][figure.key] for r in rounds if figure.key in r.get(name, ())]
            if not values:
                continue
            row = {"workload": case.workload, "contender": name, "workers": case.workers_of(runners[name]),
                   "params": dict(case.params, **figure.params), "unit": figure.unit, "better": figure.better}
            row.update(spread(values))
            row["disturbed"] = disturbed
            if name == "noria":
                against = {peer: ratios(figure, rounds, peer) for peer in names if peer != "noria"}
                row["ratio"] = {peer: spread(list_) for peer, list_ in against.items() if list_}
            yield row


def main():
    wanted = options()
    cases = all_cases(wanted.quick, wanted.growth)
    known = contenders()
    if wanted.list:
        print("workloads:", " ".join(dict.fromkeys(case.workload for case in cases)))
        print("peers:", " ".join(name for name in known if name != "noria"))
        return 0
    if wanted.only:
        unknown = set(wanted.only) - {case.workload for case in cases}
        if unknown:
            sys.exit(f"no such workload: {' '.join(sorted(unknown))}; --list names them")
        cases = [case for case in cases if case.workload in wanted.only]
    peers = None if wanted.peers is None else {"noria", *wanted.peers.split(",")} - {"none"}
    if peers is not None and peers - set(known):
        sys.exit(f"no such peer: {' '.join(sorted(peers - set(known)))}; --list names them")
    runners, missing = {}, {}
    for name, contender in known.items():
        kinds = dict.fromkeys(case.kind for case in cases if case.takes(contender))
        if (peers is None or name in peers) and kinds:
            progress(f"building {name}")
            reason = contender.build(kinds)
            if reason:
                missing[name] = reason
                progress(f"MISSING {name}: {reason}", end=True)
            else:
                runners[name] = contender
    if "noria" in missing:
        return 1

    rounds_wanted = max(1, wanted.rounds or (3 if wanted.quick else 7))
    rows, failures, began = [], [], time.monotonic()
    os.makedirs(wanted.results, exist_ok=True)
    for case in cases:
        rounds, disturbed = run_case(case, runners, rounds_wanted, failures)
        rows.extend(rows_of(case, rounds, disturbed, runners))
        # After each case, so that a run that is broken off leaves what it has.
        for path in [os.path.join(wanted.results, "latest.json")] + ([wanted.json] if wanted.json else []):
            with open(path, "w") as file:
                json.dump(rows, file, indent=1)
                file.write("\n")
        write_report(os.path.join(wanted.results, "latest.md"), rows, runners, missing, failures, time.monotonic() - began)
    print(f"{os.path.relpath(wanted.results)}/latest.md ({len(cases)} cases, {len(failures)} failures)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
