#!/usr/bin/env python3
"""Each of the promises P1 to P11 is named by a test and broken by a mutant that names it."""
import re

from tree import Lint

PROMISES = [f"P{n}" for n in range(1, 12)]
TESTS = ["tests/core", "tests/capi", "tests/cases", "tests/model", "tests/interop"]


def main():
    lint = Lint(__doc__)
    for what, folders, suffixes in (("test", TESTS, (".cpp", ".hpp", ".c", ".h", ".py", ".sh", ".rs", ".lua")),
                                    ("mutant", ["tests/mutants"], (".patch",))):
        named = set()
        for path in lint.files(folders, suffixes):
            named |= set(re.findall(r"\bP\d+\b", lint.read(path)))
        for promise in PROMISES:
            if promise not in named:
                lint.fault(folders[0], 1, f"no {what} names {promise}")
    lint.end()


main()
