#!/usr/bin/env python3
"""proxy.py PROGRAM --upstream HOST:PORT [--workers N]: noria-proxy as it is shipped."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import launch


def report(out):
    """What it counted; a connection that failed is no figure."""
    told = json.loads(out)
    if told["connections"]["failed"] or not told["drained"]:
        sys.exit(f"noria-proxy: {out.strip()}")
    return {"bytes": told["bytes"]["to_upstream"] + told["bytes"]["to_client"]}


def main():
    program = launch.program("noria-proxy")
    wanted = launch.begin(__doc__)
    process = launch.start([program, "--listen", "127.0.0.1:0", "--upstream", wanted.upstream, "--workers", str(wanted.workers),
                            "--quiet", "--json"])
    first = process.stderr.readline()
    port = re.search(r"listening on 127\.0\.0\.1:(\d+)", first)
    if not port:
        sys.exit(f"noria-proxy: {first}{process.communicate()[1]}")
    launch.serve(process, int(port[1]), [process.pid], report)


main()
