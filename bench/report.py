"""The results as a table for people: bench/results/latest.md."""
import os
import platform
import subprocess
import time

# What each row is to reach: a peer's time by Noria's, at 1 and at 2 workers.
AIMS = {
    ("spawn_many", "tokio"): (4.5, 3.5),
    ("spawn_remote", "tokio"): (2.5, 2.5),
    ("yield_many", "tokio"): (2.2, 1.2),
    ("ping_pong", "tokio"): (2.0, 2.5),
    ("chained_spawn", "tokio"): (4.5, 4.0),
    ("timer_churn", "tokio"): (4.5, None),
    ("blocking", "tokio"): (12.0, 12.0),
    ("echo_cpu", "epoll"): (1 / 1.06, None),
}


def first_line(command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[0].strip()
    except OSError:
        return ""


def machine():
    model = "?"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / 1048576
    virtual = "virtual " if "hypervisor" in open("/proc/cpuinfo").read() else ""
    return (f"{model}, {len(os.sched_getaffinity(0))} {virtual}CPUs, {memory:.0f} GiB, Linux {platform.release()}, "
            f"{platform.libc_ver()[0]} {platform.libc_ver()[1]}, {first_line(['cc', '--version'])}")


def aim_of(row, peer):
    if row["params"].get("figure") or row["params"].get("placement") not in (None, "same_core"):
        return None
    both = AIMS.get((row["workload"], peer))
    return both[row["workers"] - 1] if both and row["workers"] <= 2 else None


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def span(of):
    return f"{number(of['median'])} ({number(of['min'])}-{number(of['max'])})"


def ratio_span(of):
    return f"{of['median']:.2f} ({of['min']:.2f}-{of['max']:.2f})"


def what(params):
    """The parameters that tell rows of one workload apart."""
    words = [f"{params['connections']} x {params['bytes']} B, {params['placement'].replace('_', ' ')}"] if "bytes" in params else []
    words += [params["figure"].replace("_", " ")] if "figure" in params else []
    return ", ".join(words)


def table(rows):
    peers = list(dict.fromkeys(row["contender"] for row in rows if row["contender"] != "noria"))
    yield "| workload | workers | unit | noria | " + " | ".join(f"{p} | {p} by noria | aim" for p in peers) + " |"
    yield "|---" * (4 + 3 * len(peers)) + "|"
    for row in rows:
        if row["contender"] != "noria":
            continue
        cells = [" ".join([row["workload"], what(row["params"])]).strip(), str(row["workers"]), row["unit"], span(row)]
        for peer in peers:
            ratio, aim = row["ratio"].get(peer), aim_of(row, peer)
            # A peer with one thread has no row for more workers: it is the one of 1 worker that Noria's is compared with.
            theirs = ratio and [r for workers in (row["workers"], 1) for r in rows if r["contender"] == peer and r["workers"] == workers
                                and r["workload"] == row["workload"] and r["params"] == row["params"]]
            reached = ratio and aim and ("reached" if ratio["median"] >= aim else "missed")
            cells += [span(theirs[0]) if theirs else "", ratio_span(ratio) if ratio else "", f"{aim:.3g} {reached}" if aim and ratio else ""]
        if row["disturbed"]:
            cells[0] += f" (*{row['disturbed']})"
        yield "| " + " | ".join(cells) + " |"


def write_report(path, rows, runners, missing, failures, took_s):
    lines = ["# Results", "", f"- Machine: {machine()}",
             f"- Date: {time.strftime('%Y-%m-%d', time.gmtime())}; the run took {took_s / 60:.0f} min.",
             "- Contenders: " + ", ".join(f"{name} {c.version()}".strip() for name, c in runners.items()) + ".",
             "- A figure is the median of its rounds (minimum-maximum). `X by noria` is taken round by round, and above 1 Noria is "
             "better. `(*n)`: so many of the rounds were disturbed by other processes even after repeating."]
    lines += [f"- Missing: {name}: {reason}" for name, reason in missing.items()]
    lines += [f"- Failed: {failure}" for failure in failures]
    lines += ["", *table(rows), ""]
    with open(path, "w") as file:
        file.write("\n".join(lines))
