"""Tokio, the runtime that the aims are against; and built with mimalloc, to tell how much of a figure is the allocator."""
import os
import re
import shutil

from contender import HERE, Contender, run_quietly

FOLDER = os.path.join(HERE, "peers", "tokio")
WORKLOADS = [
    "spawn_many", "spawn_remote", "yield_many", "ping_pong", "chained_spawn", "unbalanced_producer", "fork_join_fib", "uneven_tree",
    "wake_latency", "light_load", "timer_churn", "timer_reset", "timer_fire", "blocking", "blocking_seq", "idle_task_bytes", "timer_bytes",
    "startup", "stuck_poll", "busy_neighbour", "echo_cpu",
]
ALLOCATING = ["spawn_many", "spawn_remote", "ping_pong", "chained_spawn", "fork_join_fib", "uneven_tree", "idle_task_bytes"]


def program(*features):
    """Where the build with these features lies; each has its own folder, so that they do not rebuild each other."""
    return os.path.join(FOLDER, "target", *features, "release", "noria-bench-tokio")


def build(*features):
    def build_kind(_kind):
        if not shutil.which("cargo"):
            return "cargo is not installed (Debian's package cargo, or rustup)"
        command = ["cargo", "build", "--release", "--quiet", "--target-dir", os.path.join("target", *features)]
        command += ["--features", ",".join(features)] if features else []
        errors = run_quietly(command, FOLDER)
        # Without a network what was fetched before still builds.
        return errors and run_quietly([*command, "--offline"], FOLDER) and f"cargo cannot build it: {errors}"
    return build_kind


def version():
    with open(os.path.join(FOLDER, "Cargo.lock")) as file:
        found = re.search(r'name = "tokio"\nversion = "([^"]+)"', file.read())
    return found[1] if found else "?"


def contenders():
    plain, other = program(), program("mimalloc")
    return [Contender("tokio", build(), {"micro": [plain], "service": [plain, "service"], "echo": [plain, "echo"]}, WORKLOADS, version),
            Contender("tokio_mimalloc", build("mimalloc"), {"micro": [other]}, ALLOCATING, version)]
