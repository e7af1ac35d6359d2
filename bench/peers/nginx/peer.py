"""nginx with its stream module."""
import os
import re
import shutil
import subprocess
import sys

from contender import HERE, Contender

PROGRAM = os.path.join(HERE, "peers", "nginx", "proxy.py")


def told():
    """What it says of itself, on its error output."""
    return subprocess.run(["nginx", "-V"], stderr=subprocess.PIPE, text=True).stderr


def build(_kind):
    if not shutil.which("nginx"):
        return "nginx is not installed (Debian's packages nginx and libnginx-mod-stream)"
    folder = re.search(r"--modules-path=(\S+)", told())
    built_in = re.search(r"--with-stream(?!\S)", told())
    if not built_in and not (folder and os.path.exists(os.path.join(folder[1], "ngx_stream_module.so"))):
        return "nginx lacks its stream module (Debian's package libnginx-mod-stream)"
    return None


def version():
    found = re.search(r"nginx/(\S+)", told())
    return found[1] if found else "?"


def contenders():
    return [Contender("nginx", build, {"proxy": [sys.executable, PROGRAM]}, ["proxy_bulk", "proxy_small"], version)]
