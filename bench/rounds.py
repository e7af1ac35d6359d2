"""Runs a case: rounds in which the contenders take turns, watched for what other processes take of the CPUs."""
import os
import statistics
import sys
import time

from contender import Failed

DISTURBED_SHARE = 0.05  # of one CPU, taken by processes that are not ours
DISTURBED_FLOOR_S = 0.03  # /proc/stat counts in ticks of 10 ms


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


class Budget:
    """The time a whole run may take, shared among the cases that are left."""

    def __init__(self, seconds, cases):
        self.end, self.cases = time.monotonic() + seconds, cases

    def share_s(self):
        """What the next case may take: more than its even share, since most need less."""
        left = max(self.end - time.monotonic(), 0)
        return 1.5 * left / max(self.cases, 1)

    def spend(self):
        self.cases -= 1

    def is_spent(self):
        return time.monotonic() > self.end


def progress(text, end=False):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="\n" if end else "", file=sys.stderr, flush=True)
    elif end:
        print(text, file=sys.stderr, flush=True)


def one_round(case, alive, failures, label):
    """{contender: {figure: value}}; who fails takes no part from here on."""
    values = {}
    for name in list(alive):
        progress(f"{label}: {name}")
        try:
            values[name] = case.measure(alive[name])
        except Failed as failure:
            del alive[name]
            failures.append(f"{case.title()}, {name}: {failure}")
            progress(f"FAILED  {failures[-1]}", end=True)
    return values


def run_case(case, alive, wanted, budget_s, failures):
    """The rounds, as {contender: {figure: value}}, and how many of them were disturbed. `alive` are its contenders."""
    rounds, attempts, began = [], 0, time.monotonic()
    case.prepare(list(alive.values()))
    while alive and sum(not r[0] for r in rounds) < wanted:
        took = time.monotonic() - began
        # On a machine that is never quiet repeating gains nothing.
        hopeless = attempts >= wanted + 2 and all(r[0] for r in rounds)
        if hopeless or attempts >= 2 * wanted or (attempts and took + took / attempts > budget_s):
            break
        attempts += 1
        watch = Watch()
        values = one_round(case, alive, failures, f"{case.title():<58} round {attempts}")
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


def values_of(figure, name, rounds):
    return [r[name][figure.key] for r in rounds if figure.key in r.get(name, ())]


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
    medians = {name: values_of(figure, name, rounds) for name in names_in(rounds)}
    return ", ".join(f"{name} {statistics.median(values):.4g}" for name, values in medians.items() if values) + f" {figure.unit}"


def rows_of(case, rounds, disturbed, runners):
    """The case's rows of latest.json."""
    names = names_in(rounds)
    for figure in case.figures:
        for name in names:
            values = values_of(figure, name, rounds)
            if not values:
                continue
            row = {"workload": case.workload, "contender": name, "workers": case.workers_of(runners[name]),
                   "params": dict(case.params, **figure.params), "unit": figure.unit, "better": figure.better}
            row.update(spread(values))
            row["disturbed"] = disturbed
            if row["workers"] != case.workers:
                row["beside"] = case.workers  # it has one thread, and stands beside contenders with so many
            if name == "noria":
                against = {peer: ratios(figure, rounds, peer) for peer in names if peer != "noria"}
                row["ratio"] = {peer: spread(list_) for peer, list_ in against.items() if list_}
            yield row
