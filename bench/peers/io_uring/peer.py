"""A plain io_uring server in C: no runtime, hence the limit of what io_uring gives."""
import os

import uring
from contender import PROGRAMS, Contender, build_cmake, output_of, run_quietly

WORKLOADS = ["echo_cpu", "echo_open_loop", "accept_storm", "idle_conn_bytes"]
PROGRAM = os.path.join(PROGRAMS, "peers", "io_uring", "uring-echo")


def build(kind):
    if run_quietly(["pkg-config", "--exists", "liburing >= 2.3"]) is not None:
        return "liburing's headers or pkg-config are not installed (Debian's package liburing-dev)"
    # The ring of buffers needs Linux 5.19, which the program finds out.
    return uring.refused() or build_cmake({"echo": ["bench_io_uring"]}, configure=True)(kind) or run_quietly([PROGRAM, "--check", "1"])


def contenders():
    return [Contender("io_uring", build, {"echo": [PROGRAM]}, WORKLOADS,
                      lambda: "liburing " + output_of(["pkg-config", "--modversion", "liburing"]), single_thread=True)]
