#!/usr/bin/env python3
"""clang-tidy over the compiled files of core/ and capi/src. A file that passed is not looked at again
until it, a header that it includes, or .clang-tidy changes."""
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

from tree import Lint

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)


def closure_digest(root, path, compile_command):
    """A digest of the file, of all headers of ours that it reaches, of its flags and of the checks."""
    seen = {}
    todo = [path]
    while todo:
        file = todo.pop()
        if file in seen:
            continue
        with open(file, encoding="utf-8") as handle:
            seen[file] = handle.read()
        for target in INCLUDE.findall(seen[file]):
            for base in ("core", "capi/include", os.path.relpath(os.path.dirname(file), root)):
                candidate = os.path.normpath(os.path.join(root, base, target))
                if os.path.isfile(candidate):
                    todo.append(candidate)
                    break
    digest = hashlib.sha256(compile_command.encode())
    with open(os.path.join(root, ".clang-tidy"), "rb") as checks:
        digest.update(checks.read())
    for file in sorted(seen):
        digest.update(seen[file].encode())
    return digest.hexdigest()


def check(tool, build, path):
    result = subprocess.run([tool, "-p", build, "--quiet", "--warnings-as-errors=*", path],
                            capture_output=True, text=True)
    return result.returncode, result.stdout


def main():
    lint = Lint(__doc__, lambda parser: parser.add_argument("--build", required=True,
                                                            help="a build tree configured with clang"))
    tool = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if not tool:
        print("tidy: clang-tidy is not installed")
        sys.exit(77)
    build = os.path.abspath(lint.options.build)
    passed = os.path.join(build, "tidy-passed")
    os.makedirs(passed, exist_ok=True)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    todo = []
    for entry in commands:
        path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        if os.path.relpath(path, lint.root).startswith(("core/", "capi/src/")):
            lint.checked += 1
            stamp = os.path.join(passed, closure_digest(lint.root, path, entry["command"]))
            if not os.path.exists(stamp):
                todo.append((path, stamp))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, stamp), (status, output) in zip(todo, pool.map(lambda t: check(tool, build, t[0]), todo)):
            if status == 0:
                open(stamp, "w", encoding="utf-8").close()
            else:
                lint.faults += 1
                print(output.replace(lint.root + "/", ""), end="")
    lint.end()


main()
