"""Event loops for asyncio that are packages: each in a folder of its own below its peer's, with the newest version that the
registry serves for this interpreter."""
import glob
import os
import platform
import re
import sys

from contender import HERE, Contender, run_quietly

ECHO = os.path.join(HERE, "peers", "asyncio", "echo.py")
WORKLOADS = ["echo_cpu", "echo_open_loop", "accept_storm", "idle_conn_bytes"]


def contender(package, workloads=WORKLOADS, note=""):
    folder = os.path.join(HERE, "peers", package, ".packages")  # where echo.py looks

    def build(_kind):
        reason = run_quietly([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", "--target",
                              folder, "--only-binary", ":all:", package])
        # Without a network what was installed before still runs.
        return None if version() else f"pip cannot install it: {reason}"

    def version():
        told = glob.glob(os.path.join(folder, f"{package}-*.dist-info"))
        found = told and re.search(r"-([\d.]+)\.dist-info$", max(told, key=os.path.getmtime))
        return f"{found[1]} (Python {platform.python_version()})" if found else ""

    return Contender(package, build, {"echo": [sys.executable, ECHO, package]}, workloads, version, single_thread=True, note=note)
