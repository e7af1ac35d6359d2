#!/usr/bin/env python3
"""proxy.py PROGRAM --upstream HOST:PORT [--workers N]: nginx's stream module, a master and N workers, configuration and data in a folder
that goes away with them. Buffers of 32 KiB, as the others have; a listener a worker, where there are several."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import launch

CONFIGURATION = """
{load_module}
daemon off;
worker_processes {workers};
worker_rlimit_nofile 16384;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{
    worker_connections 8192;
}}
stream {{
    access_log off;
    server {{
        listen 127.0.0.1:{port} backlog=1024{reuseport};
        proxy_pass {upstream};
        proxy_buffer_size 32k;
        proxy_timeout 1m;
    }}
}}
"""


def load_module(program):
    """The stream module, where the distribution builds it as a file of its own."""
    told = subprocess.run([program, "-V"], stderr=subprocess.PIPE, text=True).stderr
    folder = re.search(r"--modules-path=(\S+)", told)
    path = os.path.join(folder[1], "ngx_stream_module.so") if folder else ""
    return f"load_module {path};" if os.path.exists(path) else ""


def main():
    program = launch.program("nginx")
    wanted = launch.begin(__doc__)
    port = launch.free_port()
    with tempfile.TemporaryDirectory(prefix="bench-nginx-") as folder:
        path = os.path.join(folder, "nginx.conf")
        with open(path, "w") as file:
            file.write(CONFIGURATION.format(load_module=load_module(program), workers=wanted.workers, folder=folder, port=port,
                                            reuseport=" reuseport" if wanted.workers > 1 else "", upstream=wanted.upstream))
        process = launch.start([program, "-p", folder, "-c", path, "-e", "stderr"])
        launch.until(lambda: launch.listens(port) and len(launch.children_of(process.pid)) == wanted.workers, process, "nginx")
        launch.serve(process, port, launch.children_of(process.pid))


main()
