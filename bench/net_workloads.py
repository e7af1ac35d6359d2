"""Workloads over sockets: servers and proxies of each contender under the load generator of net/."""
import os
import resource

import net_servers
from case import Case, Figure
from contender import Failed

# Loops of an interpreted language: left out where they would set the pace for all or cost minutes.
INTERPRETED = ("asyncio", "uvloop", "rloop")
OPEN_LOOP_SHARE = 0.6  # of the slowest contender's closed-loop maximum

LATENCY = [
    Figure("p50_us", "us", "lower", {"figure": "p50"}),
    Figure("p99_us", "us", "lower", {"figure": "p99"}),
    Figure("p999_us", "us", "lower", {"figure": "p999"}),
]


class Net(Case):
    """A server or proxy with so many workers under so many connections. Placement: server and load on the same CPU, on one
    each, or not pinned."""
    kind = "echo"
    beside_single_threads = True
    all_figures = []

    def __init__(self, workload, workers, connections, size, placement, without=(), **more):
        amount = {"mib": size >> 20} if size >= 1 << 20 else {"bytes": size}
        params = {"connections": connections, **amount, "placement": placement, **more}
        super().__init__(workload, workers, params, self.all_figures)
        self.connections, self.size, self.placement, self.without = connections, size, placement, without

    def title(self):
        size = f"{self.size >> 20} MiB" if self.size >= 1 << 20 else f"{self.size} B"
        return f"{self.workload}, {self.connections} x {size}, {self.placement}, {self.workers} worker{'s' if self.workers > 1 else ''}"

    def takes(self, contender):
        return super().takes(contender) and contender.name not in self.without


class EchoCpu(Net):
    """TCP echo in a closed loop."""
    all_figures = [
        Figure("server_cpu_ns_per_request", "ns CPU/request"),
        Figure("both_cpu_ns_per_request", "ns CPU/request", "lower", {"figure": "server_and_load"}),
        Figure("requests_per_s", "requests/s", "higher", {"figure": "throughput"}),
        *LATENCY[:2],
    ]

    def __init__(self, workers, connections, size, placement, requests, without=()):
        super().__init__("echo_cpu", workers, connections, size, placement, without)
        self.requests = requests

    def measure(self, contender):
        # As the figure is one of a request, slow ones may do fewer.
        requests = self.requests // 4 if contender.name in INTERPRETED else self.requests
        return net_servers.echo(contender, self.workers, self.placement, "echo", connections=self.connections, bytes=self.size,
                                requests=requests)


class EchoOpenLoop(Net):
    """TCP echo at one rate for all who take part: `field` tells which field's slowest set it. Cases that differ in workers alone
    have the rate of the first of them, so that one can be held against the other."""
    rates = {}  # requests a second, by placement and field
    all_figures = [
        Figure("p99_us", "us"),
        Figure("p50_us", "us", "lower", {"figure": "p50"}),
        Figure("p999_us", "us", "lower", {"figure": "p999"}),
        Figure("longest_us", "us", "lower", {"figure": "longest"}),
        Figure("server_cpu_ns_per_request", "ns CPU/request", "lower", {"figure": "cpu"}),
        Figure("requests_per_s", "requests/s", "higher", {"figure": "rate"}),
    ]

    def __init__(self, workers, connections, placement, field, calibration, duration_s):
        super().__init__("echo_open_loop", workers, connections, 64, placement, field=field)
        self.calibration, self.duration_s = calibration, duration_s

    def title(self):
        return f"{super().title()}, {self.params['field']}"

    def takes(self, contender):
        interpreted = contender.name in INTERPRETED
        native = self.params["field"] == "native"
        return super().takes(contender) and (not interpreted if native else interpreted or contender.name == "noria")

    def prepare(self, contenders):
        """The rate, from the better of two closed loops of each."""
        if (self.placement, self.params["field"]) in self.rates:
            return
        maxima = []
        for contender in contenders:
            try:
                runs = [net_servers.echo(contender, self.workers, self.placement, "echo", connections=self.connections,
                                         bytes=self.size, requests=self.calibration) for _ in range(2)]
                maxima.append(max(run["requests_per_s"] for run in runs))
            except Failed:
                pass  # measure() fails too, and says so
        if maxima:
            self.rates[self.placement, self.params["field"]] = int(OPEN_LOOP_SHARE * min(maxima))

    def measure(self, contender):
        rate = self.rates.get((self.placement, self.params["field"]))
        if not rate:
            raise Failed("no contender ran in the closed loop that the rate is taken from")
        # On a CPU of its own the load need not sleep, and is on time.
        spin = int(self.placement == "core_each")
        return net_servers.echo(contender, self.workers, self.placement, "open", connections=self.connections, bytes=self.size,
                                requests=max(1000, int(rate * self.duration_s)), rate=rate, spin=spin)


class AcceptStorm(Net):
    """Connect, one message there and back, close."""
    all_figures = [
        Figure("server_cpu_ns_per_connection", "ns CPU/connection"),
        Figure("connections_per_s", "connections/s", "higher", {"figure": "throughput"}),
        *LATENCY[:2],
    ]

    def __init__(self, workers, connections, placement, total, without=()):
        super().__init__("accept_storm", workers, connections, 64, placement, without)
        self.total = total

    def measure(self, contender):
        total = self.total // 4 if contender.name in INTERPRETED else self.total
        return net_servers.echo(contender, self.workers, self.placement, "storm", connections=self.connections, bytes=self.size,
                                requests=total)


class IdleConnBytes(Net):
    """Resident memory of a server for each connection that is idle. The server's buffer is as small as the message, for it is
    the connection that is weighed."""
    all_figures = [Figure("bytes_per_connection", "bytes"), Figure("resident_bytes", "bytes", "lower", {"figure": "resident"})]

    def __init__(self, connections, without=()):
        super().__init__("idle_conn_bytes", 1, connections, 64, "unpinned", without)

    def measure(self, contender):
        return net_servers.echo(contender, self.workers, self.placement, "idle", {"buffer": self.size},
                                connections=self.connections, bytes=self.size)


class ProxySmall(Net):
    """Echo through a proxy."""
    kind = "proxy"
    all_figures = EchoCpu.all_figures

    def __init__(self, workers, connections, size, placement, requests):
        super().__init__("proxy_small", workers, connections, size, placement)
        self.requests = requests

    def measure(self, contender):
        return net_servers.proxy_small(contender, self.workers, self.placement, connections=self.connections, bytes=self.size,
                                       requests=self.requests)


class ProxyBulk(Net):
    """Streams through a proxy, half of them up, half of them down."""
    kind = "proxy"
    all_figures = [
        Figure("server_cpu_ns_per_mib", "ns CPU/MiB"),
        Figure("mibs_per_s", "MiB/s", "higher", {"figure": "throughput"}),
    ]

    def __init__(self, workers, connections, size, placement):
        super().__init__("proxy_bulk", workers, connections, size, placement)

    def measure(self, contender):
        return net_servers.proxy_bulk(contender, self.workers, self.placement, self.connections, self.size)


def descriptors():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def quick_cases():
    for connections in (50, 1000):
        yield EchoCpu(1, connections, 64, "same_core", 30000, INTERPRETED)
    yield EchoOpenLoop(1, 50, "core_each" if len(os.sched_getaffinity(0)) > 1 else "same_core", "native", 15000, 0.3)
    yield AcceptStorm(1, 50, "same_core", 4000, INTERPRETED)
    yield IdleConnBytes(1000, INTERPRETED)
    yield ProxyBulk(1, 8, 32 << 20, "same_core")
    yield ProxySmall(1, 50, 64, "same_core", 15000)


def echo_cases(placements):
    for connections in (50, 1000):
        for size, requests in ((64, 120000), (16384, 60000)):
            yield EchoCpu(1, connections, size, "same_core", requests, () if connections == 50 else INTERPRETED)
    for workers, placement in placements:
        for connections in (50, 1000):
            yield EchoCpu(workers, connections, 64, placement, 120000, INTERPRETED)
    for workers, placement in placements:
        yield EchoOpenLoop(workers, 50, placement, "native", 60000, 1.0)
    yield EchoOpenLoop(1, 50, placements[0][1], "interpreted", 20000, 1.0)


def proxy_cases(placements):
    for workers, placement in [(1, "same_core"), *placements]:
        yield ProxyBulk(workers, 8, 128 << 20, placement)
    for workers, placement in [(1, "same_core"), *placements]:
        yield ProxySmall(workers, 50, 64, placement, 60000)


IDLE_CONNECTIONS = (1000, 10000)


def has_descriptors_for(connections):
    return descriptors() > connections + 100


def out_of_reach(quick):
    """What this machine does not allow, in words."""
    if quick:
        return
    if len(os.sched_getaffinity(0)) == 1:
        yield "placement on one CPU each: there is one CPU"
    for connections in IDLE_CONNECTIONS:
        if not has_descriptors_for(connections):
            yield f"idle_conn_bytes with {connections:,} connections: the limit of descriptors (ulimit -Hn) is {descriptors():,}"


def cases(quick):
    if quick:
        yield from quick_cases()
        return
    placements = [(1, "core_each")] * (len(os.sched_getaffinity(0)) > 1) + [(1, "unpinned"), (2, "unpinned")]
    yield from echo_cases(placements)
    yield AcceptStorm(1, 50, "same_core", 20000)
    yield AcceptStorm(2, 50, "unpinned", 20000, INTERPRETED)
    for connections in IDLE_CONNECTIONS:
        if has_descriptors_for(connections):
            yield IdleConnBytes(connections)
    yield from proxy_cases(placements)
