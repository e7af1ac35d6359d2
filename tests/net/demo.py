#!/usr/bin/env python3
"""noria-proxy's demo, which must fail where a byte is wrong or lost, and its command line."""
import json
import subprocess

import harness
from harness import Upstream, check, closing, equal


def run_demo(*options):
    result = subprocess.run([harness.PROXY, "--demo=1", "--json", *options], capture_output=True, text=True,
                            timeout=harness.REACH * 2, check=False)
    return result.returncode, json.loads(result.stdout)["demo"]


def Demo_soundUpstream_passes():
    code, demo = run_demo()
    equal((code, demo["passed"], demo["bytes_wrong"], demo["bytes_lost"]), (0, True, 0, 0), "demo")
    check(demo["round_trips"] > 200, "hardly anything happened")


def Demo_oneByteChanged_fails():
    done = []

    def change_one(sock):
        while True:
            data = bytearray(sock.recv(1 << 16))
            if not data:
                return
            if not done:
                done.append(True)
                data[len(data) // 2] ^= 1
            sock.sendall(data)

    with closing(Upstream(change_one)) as upstream:
        code, demo = run_demo("--upstream", "127.0.0.1:%d" % upstream.address[1])
    equal((code, demo["passed"], demo["bytes_wrong"]), (1, False, 1), "demo")


def Demo_oneByteDropped_fails():
    done = []

    def drop_one(sock):
        while True:
            data = sock.recv(1 << 16)
            if not data:
                return
            if not done:
                done.append(True)
                data = data[1:]
            sock.sendall(data)

    with closing(Upstream(drop_one)) as upstream:
        code, demo = run_demo("--upstream", "127.0.0.1:%d" % upstream.address[1])
    equal((code, demo["passed"]), (1, False), "demo")
    check(demo["bytes_lost"] > 0, "the byte was not missed")


def Options_wrong_areToldInTheUsersWords():
    for arguments, words in ((["--listen", "x"], "HOST:PORT"), (["--idle-timeout", "5 parsecs"], "duration"),
                             (["--listen", "127.0.0.1:0"], "--upstream"), (["--workers", "0"], "1 to 1024"),
                             (["--listen", "127.0.0.1:80000"], "0 to 65535"),
                             (["--upstream", "127.0.0.1:80,127.0.0.1:99999"], '"127.0.0.1:99999"'),
                             (["--upstream", "127.0.0.1:0"], "1 to 65535"), (["--demo", "5"], "--demo=SECONDS"),
                             (["--demo=0"], "above zero"), (["--frobnicate"], "noria-proxy: unrecognized")):
        result = subprocess.run([harness.PROXY, *arguments], capture_output=True, text=True, timeout=harness.REACH,
                                check=False)
        equal(result.returncode, 2, f"exit code of {arguments}")
        check(result.stderr.startswith("noria-proxy: "), f"{arguments}: {result.stderr!r} is not the program's")
        check(words in result.stderr, f"{arguments}: {result.stderr!r} does not say {words!r}")


if __name__ == "__main__":
    harness.main(globals())
