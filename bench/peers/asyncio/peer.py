"""asyncio, Python's own event loop, as it comes with the interpreter that runs this."""
import os
import platform
import sys

from contender import HERE, Contender

PROGRAM = os.path.join(HERE, "peers", "asyncio", "echo.py")
WORKLOADS = ["echo_cpu", "echo_open_loop", "accept_storm", "idle_conn_bytes"]


def contenders():
    return [Contender("asyncio", lambda kind: None, {"echo": [sys.executable, PROGRAM, "asyncio"]}, WORKLOADS,
                      platform.python_version, single_thread=True)]
