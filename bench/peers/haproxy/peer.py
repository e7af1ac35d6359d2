"""HAProxy in TCP mode: built from Debian's source, or that of the system."""
import os
import re
import shutil
import sys

import packages
from contender import HERE, Contender, output_of

LAUNCHER = os.path.join(HERE, "peers", "haproxy", "proxy.py")
BUILT = os.path.join(packages.PACKAGES, "haproxy", "sbin", "haproxy")
COMMANDS = [["make", "TARGET=linux-glibc", "DEBUG_CFLAGS=", "-j{jobs}"],
            ["make", "TARGET=linux-glibc", "DEBUG_CFLAGS=", "PREFIX={prefix}", "install-bin"]]


def program():
    return BUILT if os.path.exists(BUILT) else "haproxy"


def build(_kind):
    reason = packages.source("haproxy", "haproxy", COMMANDS, "sbin/haproxy")
    return reason and not shutil.which("haproxy") and f"haproxy is not installed (Debian's package haproxy), and cannot be built: {reason}"


def version():
    found = re.search(r"version (\d+\.\d+\.\d+)", output_of([program(), "-v"]))
    return found[1] if found else "?"


def contenders():
    return [Contender("haproxy", build, {"proxy": [sys.executable, LAUNCHER, BUILT]}, ["proxy_bulk", "proxy_small"], version)]
