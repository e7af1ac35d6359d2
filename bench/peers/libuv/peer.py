"""libuv: one loop, callbacks, its pool of four threads."""
import os
import re

import packages
from contender import PROGRAMS, Contender, build_cmake, output_of, run_quietly

WORKLOADS = ["timer_churn", "timer_reset", "blocking", "blocking_seq", "echo_cpu", "echo_open_loop", "accept_storm", "idle_conn_bytes"]


COMMANDS = [["cmake", "-S", ".", "-B", "made", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", "-DLIBUV_BUILD_SHARED=OFF",
             "-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib"],
            ["cmake", "--build", "made", "-j{jobs}"], ["cmake", "--install", "made"]]
HEADER = os.path.join(packages.PACKAGES, "libuv", "include", "uv", "version.h")


def build(kind):
    reason = packages.source("libuv", "libuv1", COMMANDS, "lib/libuv.a")
    if reason and run_quietly(["pkg-config", "--exists", "libuv"]) is not None:
        return f"libuv is not installed (Debian's package libuv1-dev), and cannot be built: {reason}"
    return build_cmake({"micro": ["bench_libuv"], "echo": ["bench_libuv"]}, configure=True)(kind)


def version():
    if not os.path.exists(HEADER):
        return output_of(["pkg-config", "--modversion", "libuv"])
    with open(HEADER) as file:
        return ".".join(re.findall(r"define UV_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read()))


def contenders():
    program = os.path.join(PROGRAMS, "peers", "libuv", "libuv-bench")
    return [Contender("libuv", build, {"micro": [program], "echo": [program, "echo"]}, WORKLOADS,
                      version, single_thread=True)]
