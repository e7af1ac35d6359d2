"""A plain io_uring server in C: no runtime, hence the limit of what io_uring gives."""
import os
import re

import packages
import uring
from contender import PROGRAMS, Contender, build_cmake, output_of, run_quietly

WORKLOADS = ["echo_cpu", "echo_open_loop", "accept_storm", "idle_conn_bytes"]
PROGRAM = os.path.join(PROGRAMS, "peers", "io_uring", "uring-echo")


COMMANDS = [["./configure", "--prefix={prefix}", "--libdir={prefix}/lib", "--includedir={prefix}/include"], ["make", "-C", "src", "-j{jobs}"],
            ["make", "-C", "src", "install"]]
HEADER = os.path.join(packages.PACKAGES, "liburing", "include", "liburing", "io_uring_version.h")


def build(kind):
    reason = packages.source("liburing", "liburing", COMMANDS, "lib/liburing.a")
    if reason and run_quietly(["pkg-config", "--exists", "liburing >= 2.3"]) is not None:
        return f"liburing is not installed (Debian's package liburing-dev), and cannot be built: {reason}"
    # The ring of buffers needs Linux 5.19, receiving into it again and again 6.0, which the program finds out.
    return uring.refused() or build_cmake({"echo": ["bench_io_uring"]}, configure=True)(kind) or run_quietly([PROGRAM, "--check", "1"])


def version():
    """Of liburing."""
    if not os.path.exists(HEADER):
        return output_of(["pkg-config", "--modversion", "liburing"])
    with open(HEADER) as file:
        return ".".join(re.findall(r"IO_URING_VERSION_(?:MAJOR|MINOR) (\d+)", file.read()))


def contenders():
    return [Contender("io_uring", build, {"echo": [PROGRAM]}, WORKLOADS,
                      lambda: f"liburing {version()}", single_thread=True)]
