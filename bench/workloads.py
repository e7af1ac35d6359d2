"""What is measured: each case is a workload at a number of workers and the figures it yields."""
import os
from dataclasses import dataclass, field


@dataclass
class Figure:
    """A number out of a program's JSON line. The first figure of a case is its main one; `params` tells the others apart."""
    key: str
    unit: str
    better: str = "lower"
    params: dict = field(default_factory=dict)


class Micro:
    """A workload of bench/micro and its like in a peer."""
    kind = "micro"

    def __init__(self, workload, workers, params, figures, contenders):
        self.workload, self.workers, self.params, self.figures = workload, workers, params, figures
        self.contenders = contenders

    def title(self):
        return f"{self.workload}, {self.workers} worker{'s' if self.workers > 1 else ''}"

    def workers_of(self, _contender):
        return self.workers

    def measure(self, contender):
        return contender.micro(self.workload, self.workers, self.params)


class Echo:
    """TCP echo in a closed loop. Placement: server and load on the same CPU, on one each, or not pinned."""
    kind = "echo"
    workload = "echo_cpu"
    contenders = ["noria", "tokio", "epoll", "libuv"]
    figures = [
        Figure("server_cpu_ns_per_request", "ns CPU/request"),
        Figure("requests_per_s", "requests/s", "higher", {"figure": "throughput"}),
        Figure("p50_us", "us", "lower", {"figure": "p50"}),
        Figure("p99_us", "us", "lower", {"figure": "p99"}),
    ]

    def __init__(self, workers, connections, size, placement, requests):
        self.workers, self.requests = workers, requests
        self.params = {"connections": connections, "bytes": size, "placement": placement}

    def title(self):
        p = self.params
        return f"echo_cpu, {p['connections']} x {p['bytes']} B, {p['placement']}, {self.workers} worker{'s' if self.workers > 1 else ''}"

    def workers_of(self, contender):
        return 1 if contender in ("epoll", "libuv") else self.workers

    def measure(self, contender):
        cpus = sorted(os.sched_getaffinity(0))
        server, load = {"same_core": (cpus[-1], cpus[-1]), "core_each": (cpus[-1], cpus[0]), "unpinned": (None, None)}[
            self.params["placement"]]
        arguments = {"connections": self.params["connections"], "bytes": self.params["bytes"], "requests": self.requests}
        return contender.echo(self.workers, server, load, arguments)


# Name, operations a round (what the workload is defined as), rounds in a row within one measurement, the same with --quick.
# Several rounds make a measurement last long enough to be timed; both contenders run the same ones.
MICRO = [
    ("spawn_many", 10000, 300, 100),  # 1 M tasks are 100 rounds
    ("spawn_remote", 10000, 200, 100),
    ("yield_many", 1000000, 10, 5),
    ("ping_pong", 1000, 1000, 500),
    ("chained_spawn", 1000000, 4, 2),
    ("timer_churn", 10000, 200, 100),
    ("timer_fire", 100000, 1, 1),
    ("blocking", 200000, 1, 1),
]

TIME = [Figure("ns_per_op", "ns"), Figure("cpu_ns_per_op", "ns CPU", "lower", {"figure": "cpu"})]
LATENESS = [Figure("lateness_p99_us", "us"), Figure("lateness_p50_us", "us", "lower", {"figure": "lateness_p50"}),
            Figure("cpu_ns_per_op", "ns CPU", "lower", {"figure": "cpu"})]


def micro_cases(quick):
    for name, batch, rounds, quick_rounds in MICRO:
        for workers in (1, 2):
            params = {"ops": batch * (quick_rounds if quick else rounds), "batch": batch}
            # Another allocator matters where tasks are made; it is left out where it does not, and to be quick.
            allocates = name in ("spawn_many", "spawn_remote", "ping_pong", "chained_spawn") and not quick
            contenders = ["noria", "tokio"] + ["tokio_mimalloc"] * allocates
            contenders += ["libuv"] * (workers == 1 and name in ("timer_churn", "blocking"))
            yield Micro(name, workers, params, LATENESS if name == "timer_fire" else TIME, contenders)


def echo_cases(quick):
    scale = 3 if quick else 1
    for connections in (50, 1000):
        yield Echo(1, connections, 64, "same_core", 120000 // scale)
        yield Echo(1, connections, 16384, "same_core", 60000 // scale)
    if quick:
        return
    for connections in (50, 1000):
        if len(os.sched_getaffinity(0)) > 1:
            yield Echo(1, connections, 64, "core_each", 120000)
        yield Echo(1, connections, 64, "unpinned", 120000)
        yield Echo(2, connections, 64, "unpinned", 120000)


def all_cases(quick):
    return [*micro_cases(quick), *echo_cases(quick)]
