"""Noria itself: bench/micro and bench/net, linked with the archive, the library optimised across its files."""
import os
import re
import sys

from contender import BUILD, HERE, PROGRAMS, ROOT, Contender, build_cmake

PROXY = os.path.join(HERE, "peers", "noria", "proxy.py")
WORKLOADS = [
    "spawn_many", "spawn_remote", "yield_many", "ping_pong", "chained_spawn", "unbalanced_producer", "fork_join_fib", "uneven_tree",
    "wake_latency", "light_load", "timer_churn", "timer_reset", "timer_fire", "blocking", "blocking_seq", "idle_task_bytes", "timer_bytes",
    "startup", "stuck_poll", "busy_neighbour", "echo_cpu",
    "echo_open_loop", "accept_storm", "idle_conn_bytes", "proxy_bulk", "proxy_small",
]


def version():
    with open(os.path.join(ROOT, "capi", "include", "noria", "noria.h")) as file:
        return ".".join(re.findall(r"#define NORIA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read()))


def contenders():
    programs = {kind: [os.path.join(PROGRAMS, program)] for kind, program in (
        ("micro", "noria-bench"), ("service", "noria-service"), ("echo", "noria-echo"))}
    programs["proxy"] = [sys.executable, PROXY, os.path.join(BUILD, "capi", "examples", "noria-proxy")]
    builder = build_cmake({"micro": ["bench_micro"], "service": ["bench_noria_service", "bench_service_load"],
                           "echo": ["bench_noria_echo", "bench_load"],
                           "proxy": ["example_proxy", "bench_load", "bench_epoll_echo"]})
    return [Contender("noria", builder, programs, WORKLOADS, version)]
