#!/usr/bin/env python3
"""Words that do not belong here: names that say nothing, marks of unfinished work, paths of one
machine, units in front of what they measure."""
import os
import re

from tree import Lint, code_only

SUFFIXES = (".hpp", ".cpp", ".h", ".c", ".py", ".sh", ".txt", ".md", ".json", ".rs", ".lua", ".in", ".patch",
            ".map", ".def", ".cmake")
THIS = "tests/lint/"  # these files must name what they look for
NAME = re.compile(r"\b(?:\w*_)?(?:utils?|helpers?|managers?|impl2)(?:_\w*)?\b|\b(?:new|fast)_\w+|"
                  r"\b\w*(?:Utils?|Helpers?|Managers?|Impl2)\b")
FILE_NAME = re.compile(r"(?:^|[/_.-])(?:utils?|helpers?|managers?|impl2|new|fast)(?=[/_.-])", re.I)
MARK = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K])\b|not[ ]implemented|un[i]mplemented|\b(?:stub|stubbed|simplified|for now)\b")
PLACE = re.compile(r"(?<![\w.])/(?:work|home|root|Users)/\w|/tmp/noria\b")
UNIT = re.compile(r"\b(?:ns|us|ms|msec|sec|secs)_(?:timeout|deadline|delay|elapsed|interval|period)\w*\b")


def main():
    lint = Lint(__doc__)
    for path in lint.files(["."], SUFFIXES + ("run",)):
        if path.startswith(THIS):
            continue
        if FILE_NAME.search(path):
            lint.fault(path, 1, "the file's name says nothing")
        text = lint.read(path)
        code = code_only(text).split("\n") if path.endswith((".hpp", ".cpp", ".h", ".c")) else None
        for number, line in enumerate(text.split("\n"), 1):
            for pattern in (MARK, PLACE):
                match = pattern.search(line)
                if match:
                    lint.fault(path, number, f"forbidden: {match.group()}")
            if code:
                for pattern in (NAME, UNIT):
                    match = pattern.search(code[number - 1])
                    if match:
                        lint.fault(path, number, f"forbidden name: {match.group()}")
    lint.end()


main()
