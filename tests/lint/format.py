#!/usr/bin/env python3
"""C and C++ files are as clang-format 14 writes them; --fix rewrites them. PATH...: only what is below."""
import shutil
import subprocess
import sys

from tree import Lint


def add_options(parser):
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("paths", nargs="*", default=["core", "capi", "tests", "bench", "bindings"])


def main():
    lint = Lint(__doc__, add_options)
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not tool or " version 14." not in subprocess.run([tool, "--version"], capture_output=True, text=True).stdout:
        print("format: clang-format 14 is not installed")
        sys.exit(77)
    files = lint.files(lint.options.paths, (".hpp", ".cpp", ".h", ".c"))
    lint.checked = len(files)
    if files:
        mode = ["-i"] if lint.options.fix else ["--dry-run"]
        result = subprocess.run([tool, *mode, *files], cwd=lint.root, capture_output=True, text=True)
        for line in result.stderr.splitlines():
            if "clang-format-violations" in line or " error: " in line:
                lint.faults += 1
                print(line)
        if result.returncode and not lint.faults:
            sys.exit(result.stderr)
    lint.end()


main()
