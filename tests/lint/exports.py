#!/usr/bin/env python3
"""The functions that the public headers declare, those that capi/src/exports.map lists and those that
the shared library exports are the same. --write makes exports.map anew from the headers."""
import os
import re
import subprocess

import public
from tree import Lint

MAP = "capi/src/exports.map"


def add_options(parser):
    parser.add_argument("--library", help="the shared library to compare with")
    parser.add_argument("--write", action="store_true")


def compare(lint, path, have, want, where):
    for name in sorted(want - have):
        lint.fault(path, 1, f"{name} is declared in the headers and missing {where}")
    for name in sorted(have - want):
        lint.fault(path, 1, f"{name} is {where} and in no header")


def main():
    lint = Lint(__doc__, add_options)
    found = public.functions(lint)
    declared = {f.name for f in found}
    for function in found:
        if [f.name for f in found].count(function.name) > 1:
            lint.fault(function.path, function.line, f"{function.name} is declared twice")
    if lint.options.write:
        with open(os.path.join(lint.root, MAP), "w", encoding="utf-8") as file:
            listed = "".join(f"    {name};\n" for name in sorted(declared))
            file.write("NORIA_0 {\n" + (f"  global:\n{listed}" if listed else "") + "  local:\n    *;\n};\n")
    text = lint.read(MAP)
    if "*" in text.split("local:")[0]:
        lint.fault(MAP, 1, "exports are listed one by one, without patterns")
    compare(lint, MAP, set(re.findall(r"^\s*(\w+);", text.split("local:")[0], re.M)), declared, "in exports.map")
    if lint.options.library:
        listing = subprocess.run(["nm", "-D", "--defined-only", lint.options.library], check=True,
                                 capture_output=True, text=True).stdout
        names = {line.split()[2].split("@")[0] for line in listing.splitlines()
                 if len(line.split()) == 3 and line.split()[1] != "A"}
        compare(lint, os.path.basename(lint.options.library), names, declared, "exported by the library")
    lint.checked = len(declared)
    lint.end("functions")


main()
