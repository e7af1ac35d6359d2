"""Event loops for asyncio that are packages: each in an environment of its own below its peer's folder, with the newest version
that the registry serves for this interpreter."""
import os
import sys

from contender import HERE, Contender, output_of, run_quietly

ECHO = os.path.join(HERE, "peers", "asyncio", "echo.py")
WORKLOADS = ["echo_cpu", "echo_open_loop", "accept_storm", "idle_conn_bytes"]


def contender(package, workloads=WORKLOADS, note=""):
    environment = os.path.join(HERE, "peers", package, ".venv")
    python = os.path.join(environment, "bin", "python")

    def build(_kind):
        if not os.path.exists(python):
            reason = run_quietly([sys.executable, "-m", "venv", environment])
            if reason:
                return f"no environment can be made (Debian's package python3-venv): {reason}"
        reason = run_quietly([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade",
                              "--only-binary", ":all:", package])
        # Without a network what was installed before still runs.
        return reason and run_quietly([python, "-c", f"import {package}"]) and f"pip cannot install it: {reason}"

    def version():
        of_python = "%d.%d.%d" % sys.version_info[:3]
        code = f"import importlib.metadata as m; print(m.version('{package}'))"
        return f"{output_of([python, '-c', code])} (Python {of_python})"

    return Contender(package, build, {"echo": [python, ECHO, package]}, workloads, version, single_thread=True, note=note)
