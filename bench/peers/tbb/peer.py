"""oneTBB, for the workloads of tasks that make tasks."""
import os
import re

import packages
from contender import PROGRAMS, Contender, build_cmake

HEADERS = [os.path.join(folder, "oneapi", "tbb", "version.h") for folder in
           (os.path.join(packages.PACKAGES, "tbb", "include"), "/usr/include")]
WORKLOADS = ["spawn_many", "chained_spawn", "unbalanced_producer", "fork_join_fib", "uneven_tree"]


def version():
    for path in filter(os.path.exists, HEADERS):
        with open(path) as file:
            return ".".join(re.findall(r"#define TBB_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read()))
    return ""


def build(kind):
    reason = packages.pypi("tbb", "tbb", "tbb-devel")
    if not version():
        return f"neither Intel's packages tbb and tbb-devel nor Debian's libtbb-dev can be had: {reason}"
    return build_cmake({"micro": ["bench_tbb"]}, configure=True)(kind)


def contenders():
    return [Contender("tbb", build, {"micro": [os.path.join(PROGRAMS, "peers", "tbb", "tbb-bench")]}, WORKLOADS, version)]
