"""What the programs peers/NAME/proxy.py share: they start a proxy that has a command line of its own, tell its port and process
ids in the words that the runner reads (net_servers.py), and end it on SIGTERM."""
import argparse
import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time

PATIENCE_S = 10
PR_SET_PDEATHSIG = 1  # of prctl(2)


def options(what):
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--upstream", required=True, metavar="HOST:PORT")
    parser.add_argument("--workers", type=int, default=1)
    return parser.parse_args()


def program(name):
    """The path that is the first argument, taken off, if there is such a file; else that of the system."""
    path = sys.argv.pop(1)
    return path if os.path.exists(path) else name


def free_port():
    """A port that nobody had a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def listens(port):
    """By the kernel's table: a connection to try it would be one that the proxy passes on."""
    with open("/proc/net/tcp") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def until(condition, process, what):
    """Waits for the condition, and gives up if the process ends before."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            sys.exit(f"{what}: {process.communicate()[1].strip()[-500:]}")
        time.sleep(0.01)


def start(command):
    """A process that gets SIGTERM when this one ends, however that may be."""
    libc = ctypes.CDLL(None)

    def before():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=before)


def serve(process, port, pids, report=lambda out: {}):
    """Tells where it listens, waits for SIGTERM, ends the process, and prints what `report` makes of its output."""
    print(f"port {port} pids {','.join(map(str, pids))}", flush=True)
    signal.sigwait([signal.SIGTERM])
    process.send_signal(signal.SIGTERM)
    try:
        out, errors = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        sys.exit("the proxy did not end")
    if process.returncode not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
        sys.exit(f"the proxy ended with {process.returncode}: {errors.strip()[-500:]}")
    print(json.dumps(report(out)), flush=True)


def begin(what):
    """The options; from here on SIGTERM waits for serve()."""
    raise_files()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    return options(what)


def raise_files():
    """As many descriptors as the system lets a process have; children have them too."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

