#!/usr/bin/env python3
"""redis-server behind noria-proxy: redis-benchmark, values that come back, a server that is killed."""
import os
import signal
import subprocess
import sys

import harness
from harness import Process, Proxy, check, closing, connect, equal, until


class Redis(Process):
    def __init__(self, folder):
        self.address = ("127.0.0.1", harness.free_port())
        data = os.path.join(folder, f"redis-{self.address[1]}")
        os.makedirs(data)
        super().__init__(["redis-server", "--bind", "127.0.0.1", "--port", str(self.address[1]), "--dir", data, "--save", "",
                          "--appendonly", "no", "--daemonize", "no"], stdout=subprocess.DEVNULL)
        try:
            until(lambda: harness.answers(self.address), "redis-server")
        except AssertionError:
            self.kill()
            raise


def command(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


def run_benchmark(proxy, *options):
    result = subprocess.run(["redis-benchmark", "-h", "127.0.0.1", "-p", str(proxy.address[1]), "-q", *options],
                            capture_output=True, text=True, timeout=harness.SECONDS_EACH, check=False)
    equal(result.returncode, 0, "redis-benchmark:\n" + result.stdout + result.stderr)
    check("rror" not in result.stdout, result.stdout)
    for line in result.stdout.replace("\r", "\n").splitlines():
        if "requests per second" in line and "rps=" not in line:
            print(line)


def Redis_benchmark_endsWithoutAnError():
    with harness.folder() as folder, closing(Redis(folder)) as redis, closing(Proxy(redis.address)) as proxy:
        run_benchmark(proxy, "-t", "set,get,lpush,lrange_100", "-n", "20000", "-c", "50")
        run_benchmark(proxy, "-t", "set,get", "-n", "200000", "-c", "50", "-P", "16", "-d", "512")
        proxy.stop()


def Redis_largeValues_comeBack():
    with harness.folder() as folder, closing(Redis(folder)) as redis, closing(Proxy(redis.address)) as proxy:
        with connect(proxy.address) as client:
            for size in (0, 1, 4095, 65536, 1 << 20, 16 << 20):
                value = os.urandom(size)
                client.sendall(command(b"SET", b"key", value))
                equal(harness.receive(client, 5), b"+OK\r\n", f"SET of {size} bytes")
                client.sendall(command(b"GET", b"key"))
                expected = b"$%d\r\n%s\r\n" % (size, value)
                check(harness.receive(client, len(expected)) == expected, f"GET of {size} bytes")
        report = proxy.stop()
    equal(report["failures"], [], "failures")


def Redis_killed_theOtherServes():
    with harness.folder() as folder, closing(Redis(folder), Redis(folder)) as (first, second):
        with closing(Proxy(first.address, second.address)) as proxy:
            clients = [connect(proxy.address) for _ in range(10)]
            for client in clients:
                client.sendall(command(b"PING"))
                equal(harness.receive(client, 7), b"+PONG\r\n", "before")
            os.kill(first.pid, signal.SIGKILL)
            first.child.wait(harness.REACH)
            ended = 0
            for client in clients:
                try:
                    client.sendall(command(b"PING"))
                    ended += harness.receive(client, 7) != b"+PONG\r\n"
                except ConnectionError:
                    ended += 1
                client.close()
            equal(ended, 5, "connections that ended with their server")
            for _ in range(10):
                with connect(proxy.address) as client:
                    client.sendall(command(b"PING"))
                    equal(harness.receive(client, 7), b"+PONG\r\n", "after")
            report = proxy.stop()
    equal(harness.failures(report, "connect", "ECONNREFUSED"), 5, "refusals of the dead one")


if __name__ == "__main__":
    harness.need("redis-server", "redis-benchmark")
    sys.exit(harness.main(globals()))
