"""Workloads of a small service under a steady load: stuck_poll and busy_neighbour.

The contender's program of kind "service" is a TCP server of messages of 64 bytes; service/load.c is the load, in an open loop.
A message asks for an echo, or for a burn of so many microseconds first, in the handler itself or on the blocking pool.
The server probes its own timers and tasks meanwhile, and tells the longest delays when it ends."""
import os
import re
import signal

from case import Case, Figure
from contender import PROGRAMS, Failed, finish, start


def extra(key, unit, name, better="lower"):
    return Figure(key, unit, better, {"figure": name})


# Numbers that the server tells when it ends; one that a contender cannot tell is left out.
STUCK = [
    Figure("longest_us", "us"), extra("io_max_us", "us", "io_longest"), extra("timer_max_us", "us", "timer_longest"),
    extra("task_max_us", "us", "task_longest"), extra("spawned_max_us", "us", "spawned_longest"), extra("p99_us", "us", "io_p99"),
    extra("requests_per_s", "requests/s", "throughput", "higher"),
]
BUSY = [
    Figure("p99_us", "us"), extra("p50_us", "us", "p50"), extra("io_max_us", "us", "longest"),
    extra("steals_per_100_polls", "steals/100 polls", "steals"), extra("server_cpu_ns_per_request", "ns CPU/request", "cpu"),
]


class Service(Case):
    """The load's parameters are the case's."""
    kind = "service"

    def title(self):
        return f"{super().title()}, {self.params.get('burn', '')}".rstrip(", ")

    def measure(self, contender):
        server = start(contender.command("service", workers=self.workers))
        try:
            first = re.fullmatch(r"port (\d+)\n", server.stdout.readline())
            if not first:
                raise Failed(f"{contender.name}: the service did not start: {server.stderr.read()[-500:]}")
            words = [word for key, value in self.params.items() for word in (f"--{key.replace('_', '-')}", str(value))]
            command = [os.path.join(PROGRAMS, "service-load"), "--port", first[1], "--server-pid", str(server.pid), *words]
            figures = finish(start(command), f"the load on {contender.name}")
        except Failed as failure:
            server.kill()
            raise Failed(f"{failure}; {server.communicate()[1].strip()[-500:]}")
        server.send_signal(signal.SIGTERM)
        report = finish(server, f"the service of {contender.name}")
        if report["messages"] != figures["messages"]:
            raise Failed(f"{contender.name}: the service answered {report['messages']} messages instead of {figures['messages']}")
        figures.update(report)
        delays = ["io_max_us", "timer_max_us", "task_max_us", "spawned_max_us"]
        figures["longest_us"] = max(figures[key] for key in delays if key in figures)
        return figures


def cases(quick):
    seconds = 2 if quick else 4
    stuck = {"rate": 1000, "connections": 500, "burn_every": 500, "burn_us": 200000, "seconds": seconds}
    yield Service("stuck_poll", 2, {**stuck, "burn": "inline"}, STUCK)
    if not quick:
        yield Service("stuck_poll", 2, {**stuck, "burn": "none"}, STUCK)  # the rest without it
    busy = {"rate": 4000, "connections": 199, "burn_every": 100, "burn_us": 5000, "seconds": seconds}
    for burn in ("inline", "pool"):
        yield Service("busy_neighbour", 2, {**busy, "burn": burn}, BUSY)
