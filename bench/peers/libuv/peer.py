"""libuv: one loop, callbacks, its pool of four threads."""
import os

from contender import PROGRAMS, Contender, build_cmake, output_of, run_quietly

WORKLOADS = ["timer_churn", "timer_reset", "blocking", "blocking_seq", "echo_cpu", "echo_open_loop", "accept_storm", "idle_conn_bytes"]


def build(kind):
    if run_quietly(["pkg-config", "--exists", "libuv"]) is not None:
        return "libuv's headers or pkg-config are not installed (Debian's package libuv1-dev)"
    return build_cmake({"micro": ["bench_libuv"], "echo": ["bench_libuv"]}, configure=True)(kind)


def contenders():
    program = os.path.join(PROGRAMS, "peers", "libuv", "libuv-bench")
    return [Contender("libuv", build, {"micro": [program], "echo": [program, "echo"]}, WORKLOADS,
                      lambda: output_of(["pkg-config", "--modversion", "libuv"]), single_thread=True)]
