"""Asio, stand-alone, in both of its styles: callbacks (asio) and C++20 coroutines (asio_coro)."""
import os
import re

import packages
from contender import PROGRAMS, Contender, build_cmake

HEADERS = [os.path.join(packages.PACKAGES, "libasio-dev", "usr", "include", "asio", "version.hpp"), "/usr/include/asio/version.hpp"]
WORKLOADS = ["spawn_many", "spawn_remote", "yield_many", "ping_pong", "chained_spawn", "unbalanced_producer", "uneven_tree",
             "wake_latency", "light_load", "timer_fire", "blocking_seq", "echo_cpu",
             "echo_open_loop", "accept_storm", "idle_conn_bytes"]


def version():
    for path in filter(os.path.exists, HEADERS):
        with open(path) as file:
            number = int(re.search(r"define ASIO_VERSION (\d+)", file.read())[1])
        return f"{number // 100000}.{number // 100 % 1000}.{number % 100}"
    return ""


def build(target):
    def build_kind(kind):
        reason = packages.debian("libasio-dev")
        if not version():
            return f"Debian's package libasio-dev cannot be had: {reason}"
        if tuple(map(int, version().split("."))) < (1, 30):
            return f"Asio 1.30 or newer is needed, {version()} is installed, and a newer one cannot be had: {reason}"
        return build_cmake({"micro": [target], "service": [target, "bench_service_load"], "echo": [target, "bench_load"]}, configure=True)(kind)
    return build_kind


def contenders():
    callbacks, coroutines = (os.path.join(PROGRAMS, "peers", "asio", f"asio-{style}-bench") for style in ("callbacks", "coroutines"))
    # The timers are the same objects in both styles; so is the start.
    return [Contender("asio", build("bench_asio_callbacks"), {"micro": [callbacks], "echo": [callbacks, "echo"]},
                      [*WORKLOADS, "timer_churn", "timer_reset", "timer_bytes", "blocking", "startup"], version),
            Contender("asio_coro", build("bench_asio_coroutines"),
                      {"micro": [coroutines], "service": [coroutines, "service"], "echo": [coroutines, "echo"]},
                      [*WORKLOADS, "idle_task_bytes", "stuck_poll", "busy_neighbour"], version)]
