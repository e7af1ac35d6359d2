"""nginx with its stream module: built from Debian's source, or that of the system."""
import os
import re
import shutil
import subprocess
import sys

import packages
from contender import HERE, Contender

LAUNCHER = os.path.join(HERE, "peers", "nginx", "proxy.py")
BUILT = os.path.join(packages.PACKAGES, "nginx", "sbin", "nginx")
COMMANDS = [["./configure", "--prefix={prefix}", "--with-stream", "--without-http", "--without-pcre", "--with-cc-opt=-O2"], ["make", "-j{jobs}"],
            ["make", "install"]]


def told():
    """What it says of itself, on its error output."""
    program = BUILT if os.path.exists(BUILT) else "nginx"
    return subprocess.run([program, "-V"], stderr=subprocess.PIPE, text=True).stderr


def build(_kind):
    reason = packages.source("nginx", "nginx", COMMANDS, "sbin/nginx")
    if reason is None:
        return None
    if not shutil.which("nginx"):
        return f"nginx is not installed (Debian's packages nginx and libnginx-mod-stream), and cannot be built: {reason}"
    folder = re.search(r"--modules-path=(\S+)", told())
    built_in = re.search(r"--with-stream(?!\S)", told())
    if not built_in and not (folder and os.path.exists(os.path.join(folder[1], "ngx_stream_module.so"))):
        return f"nginx lacks its stream module (Debian's package libnginx-mod-stream), and cannot be built: {reason}"
    return None


def version():
    found = re.search(r"nginx/(\S+)", told())
    return found[1] if found else "?"


def contenders():
    return [Contender("nginx", build, {"proxy": [sys.executable, LAUNCHER, BUILT]}, ["proxy_bulk", "proxy_small"], version)]
