"""Workloads over sockets: servers of each contender under the load generator of net/load.c."""
import os
import re
import signal

from case import Case, Figure
from contender import PROGRAMS, Failed, finish, start


def placement_cpus(placement):
    """CPU of the server and of the load; None is not pinned."""
    cpus = sorted(os.sched_getaffinity(0))
    return {"same_core": (cpus[-1], cpus[-1]), "core_each": (cpus[-1], cpus[0]), "unpinned": (None, None)}[placement]


def echo(contender, workers, placement, arguments):
    """Starts the server, runs the load on it, ends the server, and checks that it echoed what the load counted."""
    server_cpu, load_cpu = placement_cpus(placement)
    server = start(contender.command("echo", workers=workers), server_cpu)
    try:
        first = re.fullmatch(r"port (\d+)\n", server.stdout.readline())
        if not first:
            raise Failed(f"{contender.name}: the echo server did not start: {server.stderr.read()[-500:]}")
        words = [word for key, value in arguments.items() for word in (f"--{key}", str(value))]
        command = [os.path.join(PROGRAMS, "noria-load"), "--port", first[1], "--server-pid", str(server.pid), *words]
        figures = finish(start(command, load_cpu), f"the load on {contender.name}")
    except Failed as failure:
        server.kill()
        raise Failed(f"{failure}; {server.communicate()[1].strip()[-500:]}")
    server.send_signal(signal.SIGTERM)
    report = finish(server, f"the echo server of {contender.name}")
    expected = (figures["requests"] + figures["warmup"]) * figures["bytes"]
    if report["bytes"] != expected:
        raise Failed(f"{contender.name}: the server echoed {report['bytes']:.0f} bytes instead of {expected:.0f}")
    return figures


class EchoCpu(Case):
    """TCP echo in a closed loop. Placement: server and load on the same CPU, on one each, or not pinned."""
    kind = "echo"
    beside_single_threads = True
    all_figures = [
        Figure("server_cpu_ns_per_request", "ns CPU/request"),
        Figure("requests_per_s", "requests/s", "higher", {"figure": "throughput"}),
        Figure("p50_us", "us", "lower", {"figure": "p50"}),
        Figure("p99_us", "us", "lower", {"figure": "p99"}),
    ]

    def __init__(self, workers, connections, size, placement, requests):
        super().__init__("echo_cpu", workers, {"connections": connections, "bytes": size, "placement": placement}, self.all_figures)
        self.requests = requests

    def title(self):
        p = self.params
        return f"echo_cpu, {p['connections']} x {p['bytes']} B, {p['placement']}, {self.workers} worker{'s' if self.workers > 1 else ''}"

    def measure(self, contender):
        arguments = {"connections": self.params["connections"], "bytes": self.params["bytes"], "requests": self.requests}
        return echo(contender, self.workers, self.params["placement"], arguments)


def cases(quick):
    scale = 3 if quick else 1
    for connections in (50, 1000):
        yield EchoCpu(1, connections, 64, "same_core", 120000 // scale)
        yield EchoCpu(1, connections, 16384, "same_core", 60000 // scale)
    if quick:
        return
    for connections in (50, 1000):
        if len(os.sched_getaffinity(0)) > 1:
            yield EchoCpu(1, connections, 64, "core_each", 120000)
        yield EchoCpu(1, connections, 64, "unpinned", 120000)
        yield EchoCpu(2, connections, 64, "unpinned", 120000)
