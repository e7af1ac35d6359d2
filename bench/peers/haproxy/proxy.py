#!/usr/bin/env python3
"""proxy.py PROGRAM --upstream HOST:PORT [--workers N]: HAProxy in TCP mode, one process with N threads, its configuration in a folder
that goes away with it.

splice-auto lets it choose, as it should for bulk data; buffers of 32 KiB, as the others have."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import launch

CONFIGURATION = """
global
    nbthread {workers}
    maxconn 4000
    tune.bufsize 32768
defaults
    mode tcp
    option splice-auto
    timeout connect 5s
    timeout client 1m
    timeout server 1m
listen bench
    bind 127.0.0.1:{port}
    server upstream {upstream}
"""


def main():
    program = launch.program("haproxy")
    wanted = launch.begin(__doc__)
    port = launch.free_port()
    with tempfile.TemporaryDirectory(prefix="bench-haproxy-") as folder:
        path = os.path.join(folder, "haproxy.cfg")
        with open(path, "w") as file:
            file.write(CONFIGURATION.format(workers=wanted.workers, port=port, upstream=wanted.upstream))
        process = launch.start([program, "-db", "-f", path])
        launch.until(lambda: launch.listens(port), process, "haproxy")
        launch.serve(process, port, [process.pid])


main()
