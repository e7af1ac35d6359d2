#!/usr/bin/env python3
"""Includes run downward only: base < sync < task < sched, reactor, timer, blocking (which never
include each other) < runtime < channel, lock, net, io, fs, os < capi < examples and tests. Bindings
and examples know <noria/...> only, and atomics have one door."""
import re

from tree import Lint, code_only, line_of, without_comments

LAYERS = [["base"], ["sync"], ["task"], ["sched", "reactor", "timer", "blocking"], ["runtime"],
          ["channel", "lock", "net", "io", "fs", "os"]]
LAYER = {folder: depth for depth, row in enumerate(LAYERS) for folder in row}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.M)
DOOR = "core/base/atomic.hpp"
ATOMICS = re.compile(r"std\s*::\s*(?:atomic\w*|memory_order\w*)|\bmemory_order_\w+|\b__atomic_\w+|"
                     r"\b__sync_\w+|\batomic_(?:thread|signal)_fence\b")


def core_fault(folder, kind, target):
    if kind == "<":
        if target == "atomic":
            return "atomics come through base/atomic.hpp"
        if target.endswith(".hpp") and target.split("/")[0] in LAYER:
            return "includes of core are written with quotes"
        return None
    parts = target.split("/")
    if len(parts) == 2 and parts[0] == "noria" and target.endswith(".h"):
        return None
    if len(parts) != 2 or parts[0] not in LAYER:
        return f'"{target}" is not written relative to core/ ("folder/file.hpp")'
    if parts[0] == folder or LAYER[parts[0]] < LAYER[folder]:
        return None
    if LAYER[parts[0]] == LAYER[folder]:
        return f"{folder} and {parts[0]} stand side by side and do not know each other"
    return f"{folder} includes {parts[0]}, which stands above it"


def main():
    lint = Lint(__doc__)
    for path in lint.files(["core", "capi/src"], (".hpp", ".cpp", ".h", ".c")):
        text = lint.read(path)
        parts = path.split("/")
        if parts[0] == "core" and (len(parts) != 3 or parts[1] not in LAYER):
            lint.fault(path, 1, "core/ has one folder a layer, and no folder but those")
            continue
        for match in INCLUDE.finditer(without_comments(text)):
            kind, target = match.groups()
            if parts[0] == "core":
                message = None if path == DOOR else core_fault(parts[1], kind, target)
            elif target == "atomic":
                message = "atomics come through base/atomic.hpp"
            else:
                message = "no way up: ../" if ".." in target else None
            if message:
                lint.fault(path, line_of(text, match.start()), message)
        if path != DOOR:
            for match in ATOMICS.finditer(code_only(text)):
                lint.fault(path, line_of(text, match.start()), f"{match.group()}: atomics come through base/atomic.hpp")
    outside = lint.files(["capi/examples", "capi/include", "bindings", "python"], (".hpp", ".cpp", ".h", ".c"))
    for path in outside:
        text = lint.read(path)
        for match in INCLUDE.finditer(without_comments(text)):
            kind, target = match.groups()
            if target.split("/")[0] in LAYER or ".." in target:
                lint.fault(path, line_of(text, match.start()), f"{target}: only <noria/...> is public")
            elif kind == '"' and path.startswith("capi/include/") and not target.startswith("noria/"):
                lint.fault(path, line_of(text, match.start()), 'public headers include "noria/..."')
    lint.end()


main()
