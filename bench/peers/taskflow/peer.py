"""Taskflow, for the workloads of tasks that make tasks."""
import os
import re

import packages
from contender import PROGRAMS, Contender, build_cmake

HEADERS = [os.path.join(packages.PACKAGES, "libtaskflow-cpp-dev", "usr", "include", "taskflow", "taskflow.hpp"),
           "/usr/include/taskflow/taskflow.hpp"]
WORKLOADS = ["spawn_many", "spawn_remote", "chained_spawn", "unbalanced_producer", "fork_join_fib", "uneven_tree"]


def version():
    for path in filter(os.path.exists, HEADERS):
        with open(path) as file:
            number = int(re.search(r"define TF_VERSION (\d+)", file.read())[1])
        return f"{number // 100000}.{number // 100 % 1000}.{number % 100}"
    return ""


def build(kind):
    reason = packages.debian("libtaskflow-cpp-dev")
    if not version():
        return f"Debian's package libtaskflow-cpp-dev cannot be had: {reason}"
    return build_cmake({"micro": ["bench_taskflow"]}, configure=True)(kind)


def contenders():
    program = os.path.join(PROGRAMS, "peers", "taskflow", "taskflow-bench")
    return [Contender("taskflow", build, {"micro": [program]}, WORKLOADS, version)]
