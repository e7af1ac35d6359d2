"""Workloads within one process: bench/micro and its like in each peer."""
from case import Case, Figure
from contender import finish, start


class Micro(Case):
    """`PROGRAM WORKLOAD --workers N --ops N --batch N`, which prints its figures as one JSON line."""

    def __init__(self, workload, workers, params, figures, without=()):
        super().__init__(workload, workers, params, figures)
        self.without = without

    def takes(self, contender):
        return super().takes(contender) and contender.name not in self.without

    def measure(self, contender):
        command = contender.command("micro", self.workload, workers=self.workers, **self.params)
        return finish(start(command), f"{contender.name} {self.workload}")


# Name, operations a round (what the workload is defined as), rounds in a row within one measurement, the same with --quick.
# Several rounds make a measurement last long enough to be timed; all contenders run the same ones.
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


def cases(quick):
    without = ("tokio_mimalloc",) if quick else ()
    for name, batch, rounds, quick_rounds in MICRO:
        for workers in (1, 2):
            params = {"ops": batch * (quick_rounds if quick else rounds), "batch": batch}
            yield Micro(name, workers, params, LATENESS if name == "timer_fire" else TIME, without)
