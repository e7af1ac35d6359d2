"""Workloads within one process: bench/micro and its like in each peer.

A program is called as `PROGRAM WORKLOAD --workers N` with the parameters of the case, and prints one JSON line with the keys of its figures.
bench/README.md says what each workload is."""
from case import Case, Figure
from contender import finish, start


class Micro(Case):
    """A case of a program of kind "micro". `quiet` parameters are given to the program and left out of the results."""

    def __init__(self, workload, workers, params, figures, without=(), quiet=None):
        super().__init__(workload, workers, params, figures)
        self.without, self.quiet = without, quiet or {}

    def takes(self, contender):
        return super().takes(contender) and contender.name not in self.without

    def title(self):
        told = ", ".join(f"{key} {value}" for key, value in self.params.items() if key not in ("ops", "batch"))
        return super().title() + (f", {told}" if told else "")

    def measure(self, contender):
        command = contender.command("micro", self.workload, workers=self.workers, **self.params, **self.quiet)
        return finish(start(command), f"{contender.name} {self.workload}")


def extra(key, unit, name, better="lower"):
    """A figure beside the main one."""
    return Figure(key, unit, better, {"figure": name})


CPU = extra("cpu_ns_per_op", "ns CPU", "cpu")
TIME = [Figure("ns_per_op", "ns"), CPU]
LATENESS = [Figure("lateness_p99_us", "us"), extra("lateness_p50_us", "us", "lateness_p50"), CPU]
LATENCY = [Figure("p99_us", "us"), extra("p50_us", "us", "p50"), extra("p999_us", "us", "p999")]
LIGHT = [Figure("cpu_percent", "% of a CPU")]
BYTES = [Figure("bytes_per_op", "B"), extra("malloc_bytes_per_op", "B", "malloc")]
STARTUP = [Figure("startup_us", "us"), extra("shutdown_us", "us", "shutdown")]

# Name, operations a round (what the workload is defined as), rounds in a row within one measurement, the same with --quick.
# Several rounds make a measurement last long enough to be timed; all contenders run the same ones.
ROUNDS = [
    ("spawn_many", 10000, 300, 100),  # 1 M tasks are 100 rounds
    ("spawn_remote", 10000, 200, 100),
    ("yield_many", 1000000, 10, 5),
    ("ping_pong", 1000, 1000, 500),
    ("chained_spawn", 1000000, 4, 2),
    ("unbalanced_producer", 10000, 30, 10),
    ("timer_churn", 10000, 200, 100),
    ("timer_reset", 10000, 200, 100),
    ("timer_fire", 100000, 1, 1),
    ("blocking", 200000, 1, 1),
]
PARAMS = {"spawn_remote": {"spawners": 1}, "unbalanced_producer": {"work": 400}}

# Name, parameters, the same with --quick, figures, numbers of workers.
OTHERS = [
    ("spawn_remote", {"ops": 2000000, "batch": 10000, "spawners": 4}, None, TIME, (1, 2)),
    ("fork_join_fib", {"n": 32}, {"n": 27}, TIME, (1, 2)),
    ("uneven_tree", {"roots": 4000, "seed": 1}, {"roots": 1000, "seed": 1}, TIME, (1, 2)),
    ("wake_latency", {"ops": 5000, "interval_us": 300, "load": 0}, {"ops": 1000, "interval_us": 300, "load": 0}, LATENCY, (1, 2)),
    ("wake_latency", {"ops": 5000, "interval_us": 300, "load": 64}, None, LATENCY, (1, 2)),
    ("light_load", {"ops": 20, "interval_us": 100000}, None, LIGHT, (2,)),
    ("light_load", {"ops": 200, "interval_us": 10000}, None, LIGHT, (2,)),
    ("light_load", {"ops": 2000, "interval_us": 1000}, None, LIGHT, (2,)),
    ("timer_churn", {"ops": 4000000, "batch": 1000000}, None, TIME, (1,)),
    ("blocking_seq", {"ops": 10000, "batch": 1}, {"ops": 2000, "batch": 1}, TIME, (1, 2)),
    ("blocking_seq", {"ops": 40000, "batch": 16}, {"ops": 8000, "batch": 16}, TIME, (1, 2)),
    ("idle_task_bytes", {"ops": 1000}, None, BYTES, (1,)),
    ("idle_task_bytes", {"ops": 100000}, {"ops": 100000}, BYTES, (1,)),
    ("idle_task_bytes", {"ops": 1000000}, None, BYTES, (1,)),
    ("timer_bytes", {"ops": 1000}, None, BYTES, (1,)),
    ("timer_bytes", {"ops": 100000}, {"ops": 100000}, BYTES, (1,)),
    ("timer_bytes", {"ops": 1000000}, None, BYTES, (1,)),
    ("startup", {"ops": 100}, {"ops": 50}, STARTUP, (1, 2)),
]
# With --growth alone: these at more workers than there are CPUs, and the memory of very many.
GROWING = ("spawn_many", "spawn_remote", "yield_many", "ping_pong", "chained_spawn", "unbalanced_producer", "fork_join_fib", "uneven_tree")
GROWN = [
    ("idle_task_bytes", {"ops": 10000}, BYTES),
    ("timer_bytes", {"ops": 10000}, BYTES),
    ("timer_bytes", {"ops": 10000000}, BYTES),
    ("timer_churn", {"ops": 2000000, "batch": 100000}, TIME),
]


def round_cases(quick, all_workers):
    without = ("tokio_mimalloc",) if quick else ()
    for name, batch, rounds, quick_rounds in ROUNDS:
        params = {"ops": batch * (quick_rounds if quick else rounds), "batch": batch, **PARAMS.get(name, {})}
        for workers in all_workers if name in GROWING else [w for w in all_workers if w <= 2]:
            yield Micro(name, workers, params, LATENESS if name == "timer_fire" else TIME, without)


def other_cases(quick):
    for name, params, quick_params, figures, all_workers in OTHERS:
        chosen = quick_params if quick else params
        for workers in all_workers if chosen else ():
            yield Micro(name, workers, chosen, figures)


def growth_cases():
    yield from round_cases(False, (4, 8, 16))
    for name, params, _, figures, _ in OTHERS:
        for workers in (4, 8, 16) if name in GROWING else ():
            yield Micro(name, workers, params, figures)
    for name, params, figures in GROWN:
        yield Micro(name, 1, params, figures)


def cases(quick, growth=False):
    yield from round_cases(quick, (1, 2))
    yield from other_cases(quick)
    if growth:
        yield from growth_cases()
