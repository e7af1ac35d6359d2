#!/usr/bin/env python3
"""The figures in README.md are those of the newest whole run in bench/results, whose table is made of its rows."""
import os
import sys

from tree import Lint

RESULTS = "bench/results"


def main():
    lint = Lint(__doc__)
    if not os.path.exists(os.path.join(lint.root, RESULTS, "latest.json")):
        lint.end()
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
    import report
    rows, run = report.load(os.path.join(lint.root, RESULTS))
    text = lint.read("README.md")
    if not report.shows(text, rows, run):
        lint.fault("README.md", text.count("\n", 0, max(text.find(report.BEGIN), 0)) + 1,
                   f"does not show the figures of {RESULTS}; python3 bench/report.py brings them there")
    if report.page(rows, run) != lint.read(f"{RESULTS}/latest.md"):
        lint.fault(f"{RESULTS}/latest.md", 1, f"is not made of {RESULTS}/latest.json; python3 bench/report.py makes it anew")
    lint.end()


main()
