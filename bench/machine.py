"""The machine a run was made on, in a line, and what a run was."""
import os
import platform
import sys
import tempfile
import time

from contender import BUILD, ROOT, output_of, run_quietly

TOOLS = {"rustc": ["rustc", "--version"], "go": ["go", "version"], "python": ["python3", "--version"]}


def cpu_model():
    with open("/proc/cpuinfo") as file:
        text = file.read()
    for line in text.split("\n"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip(), "hypervisor" in text
    return "?", "hypervisor" in text


def machine():
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / 1048576
    model, is_virtual = cpu_model()
    compiler = output_of(["cc", "--version"]).split("\n")[0]
    return (f"{model}, {len(os.sched_getaffinity(0))} {'virtual ' if is_virtual else ''}CPUs, {memory:.0f} GiB, Linux "
            f"{platform.release()}, {platform.libc_ver()[0]} {platform.libc_ver()[1]}, {compiler}")


def library_bytes():
    """The size of the shared library without symbols; None where it was not built or cannot be stripped."""
    library = os.path.join(BUILD, "libnoria.so")
    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, "libnoria.so")
        if not os.path.exists(library) or not output_of(["strip", "--version"]):
            return None
        return None if run_quietly(["strip", "-o", stripped, library]) else os.path.getsize(stripped)


def describe(runners, missing, failures, skipped, took_s, quick, whole):
    """What goes into run.json beside the rows."""
    return {
        "machine": machine(),
        "commit": output_of(["git", "-C", ROOT, "describe", "--always", "--dirty"]),
        "options": " ".join(sys.argv[1:]),
        "tools": {tool: output_of(command) for tool, command in TOOLS.items()},
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "minutes": round(took_s / 60),
        "quick": quick,
        "whole": whole,
        "library_bytes": library_bytes(),
        "contenders": {name: {"version": c.version(), "note": c.note} for name, c in runners.items()},
        "missing": missing,
        "failures": failures,
        "not_reached": skipped,
    }
