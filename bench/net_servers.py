"""Servers and proxies of the contenders under the load generator of net/: how they are started, pinned, ended and checked.

A program of the kind "echo" or "proxy" prints `port N`, or `port N pids A,B` where other processes than itself do the work;
ends on SIGTERM; and then prints a JSON object, whose "bytes", where it has them, are what it passed on."""
import contextlib
import os
import re
import signal
import subprocess

from contender import PROGRAMS, Failed, finish

LOAD = os.path.join(PROGRAMS, "noria-load")
UPSTREAM = [os.path.join(PROGRAMS, "epoll-echo")]


def placement_cpus(placement):
    """CPU of the server and of the load; None is not pinned."""
    cpus = sorted(os.sched_getaffinity(0))
    return {"same_core": (cpus[-1], cpus[-1]), "core_each": (cpus[-1], cpus[0]), "unpinned": (None, None)}[placement]


def start(command, cpu):
    """With a pipe for its input, too."""
    pin = None if cpu is None else (lambda: os.sched_setaffinity(0, [cpu]))
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=pin)


class Server:
    """A program that listens; `report` is what it printed in the end."""

    def __init__(self, command, cpu, what):
        self.what, self.report = what, None
        self.process = start(command, cpu)
        first = re.fullmatch(r"port (\d+)(?: pids ([\d,]+))?\n", self.process.stdout.readline())
        if not first:
            self.process.kill()
            raise Failed(f"{what} did not start: {self.process.communicate()[1].strip()[-500:]}")
        self.port, self.pids = int(first[1]), first[2] or str(self.process.pid)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.report = finish(self.process, self.what)

    def kill(self):
        """After a failure: SIGTERM first, which a launcher passes on to what it started."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.communicate(timeout=5)[1].strip()[-500:]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.communicate()[1].strip()[-500:]


@contextlib.contextmanager
def serving(command, cpu, what):
    """A server for as long as the body lasts; its last words are added to the body's failure."""
    server = Server(command, cpu, what)
    try:
        yield server
    except Failed as failure:
        raise Failed(f"{failure}; {server.kill()}")
    except BaseException:
        server.kill()
        raise
    server.stop()


def load(mode, cpu, what, **arguments):
    words = [word for key, value in arguments.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    return finish(start([LOAD, mode, *words], cpu), f"the load on {what}")


def check_bytes(what, report, expected):
    if "bytes" in report and report["bytes"] != expected:
        raise Failed(f"{what}: it passed on {report['bytes']:.0f} bytes instead of {expected:.0f}")


def echo(contender, workers, placement, mode, server_arguments=None, **arguments):
    """The figures of the load on the contender's echo server, which must have echoed what the load counted."""
    server_cpu, load_cpu = placement_cpus(placement)
    what = f"the echo server of {contender.name}"
    with serving(contender.command("echo", workers=workers, **(server_arguments or {})), server_cpu, what) as server:
        figures = load(mode, load_cpu, contender.name, port=server.port, server_pid=server.pids, **arguments)
    check_bytes(what, server.report, (figures["requests"] + figures["warmup"]) * figures["bytes"])
    return figures


def proxy_command(contender, workers, port):
    return contender.command("proxy", workers=workers, upstream=f"127.0.0.1:{port}")


def proxy_small(contender, workers, placement, **arguments):
    """Echo through the proxy; the server behind it is the plain epoll one, on the load's CPU."""
    proxy_cpu, load_cpu = placement_cpus(placement)
    what = f"the proxy of {contender.name}"
    with serving(UPSTREAM, load_cpu, "the server behind the proxy") as upstream:
        with serving(proxy_command(contender, workers, upstream.port), proxy_cpu, what) as proxy:
            figures = load("echo", load_cpu, contender.name, port=proxy.port, server_pid=proxy.pids, **arguments)
    expected = (figures["requests"] + figures["warmup"]) * figures["bytes"]
    check_bytes("the server behind the proxy", upstream.report, expected)
    check_bytes(what, proxy.report, 2 * expected)
    return figures


def proxy_bulk(contender, workers, placement, connections, size):
    """Streams through the proxy, both of whose ends are in the load."""
    proxy_cpu, load_cpu = placement_cpus(placement)
    what = f"the proxy of {contender.name}"
    generator = start([LOAD, "bulk", "--connections", str(connections), "--bytes", str(size)], load_cpu)
    try:
        port = re.fullmatch(r"port (\d+)\n", generator.stdout.readline())[1]
        with serving(proxy_command(contender, workers, port), proxy_cpu, what) as proxy:
            generator.stdin.write(f"{proxy.port} {proxy.pids}\n")
            generator.stdin.flush()
            figures = finish(generator, f"the load on {contender.name}")
    finally:
        if generator.poll() is None:
            generator.kill()
            generator.communicate()
    check_bytes(what, proxy.report, connections * (size + 4))  # a stream begins with its number
    return figures
