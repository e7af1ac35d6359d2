"""HAProxy in TCP mode."""
import os
import re
import shutil
import sys

from contender import HERE, Contender, output_of

PROGRAM = os.path.join(HERE, "peers", "haproxy", "proxy.py")


def build(_kind):
    return None if shutil.which("haproxy") else "haproxy is not installed (Debian's package haproxy)"


def version():
    found = re.search(r"version (\d+\.\d+\.\d+)", output_of(["haproxy", "-v"]))
    return found[1] if found else "?"


def contenders():
    return [Contender("haproxy", build, {"proxy": [sys.executable, PROGRAM]}, ["proxy_bulk", "proxy_small"], version)]
