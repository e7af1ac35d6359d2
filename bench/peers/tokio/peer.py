"""Tokio, the runtime that the aims are against; and built with mimalloc, to tell how much of a figure is the allocator."""
from cargo_peer import build, program, version
from contender import Contender

WORKLOADS = [
    "spawn_many", "spawn_remote", "yield_many", "ping_pong", "chained_spawn", "unbalanced_producer", "fork_join_fib", "uneven_tree",
    "wake_latency", "light_load", "timer_churn", "timer_reset", "timer_fire", "blocking", "blocking_seq", "idle_task_bytes", "timer_bytes",
    "startup", "stuck_poll", "busy_neighbour", "echo_cpu",
    "echo_open_loop", "accept_storm", "idle_conn_bytes", "proxy_bulk", "proxy_small",
]
ALLOCATING = ["spawn_many", "spawn_remote", "ping_pong", "chained_spawn", "fork_join_fib", "uneven_tree", "idle_task_bytes"]


def contenders():
    plain, other = program("tokio"), program("tokio", "mimalloc")
    programs = {"micro": [plain], "service": [plain, "service"], "echo": [plain, "echo"], "proxy": [plain, "proxy"]}
    return [Contender("tokio", build("tokio"), programs, WORKLOADS, version("tokio")),
            Contender("tokio_mimalloc", build("tokio", "mimalloc"), {"micro": [other]}, ALLOCATING, version("tokio"))]
