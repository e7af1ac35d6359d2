"""The machine a run was made on, in a line, and what a run was."""
import os
import platform
import time

from contender import output_of


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


def describe(runners, missing, failures, took_s, quick):
    """What goes into run.json beside the rows."""
    return {
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "minutes": round(took_s / 60),
        "quick": quick,
        "contenders": {name: {"version": c.version(), "note": c.note} for name, c in runners.items()},
        "missing": missing,
        "failures": failures,
    }
