#!/usr/bin/env python3
"""Each of the promises P1 to P11 is named by a test and broken by a mutant that names it; each of the rules of the ABI, A1 to A15, is
named by a test or a lint. Every function that makes a future goes through the test of all future forms (A6)."""
import os
import re

import public
from tree import Lint

PROMISES = [f"P{n}" for n in range(1, 12)]
RULES = [f"A{n}" for n in range(1, 16)]
TESTS = ["tests/core", "tests/capi", "tests/cases", "tests/model", "tests/interop"]
CHECKS = TESTS + ["tests/install", "tests/lint"]
SUFFIXES = (".cpp", ".hpp", ".c", ".h", ".py", ".sh", ".rs", ".lua")
OWN = ("tests/lint/promises.py", "tests/lint/selftest.py")
FORMS = "tests/capi/future_forms_test.cpp"


def named(lint, folders, suffixes):
    """What the files name, in prose or in the name of a test."""
    found = set()
    for path in lint.files(folders, suffixes):
        if path not in OWN:
            found |= set(re.findall(r"(?<![A-Za-z0-9])[AP]\d+(?![A-Za-z0-9])", lint.read(path)))
    return found


def check_forms(lint):
    """A future form gives its future through the last parameter."""
    tested = set()
    if os.path.exists(os.path.join(lint.root, FORMS)):
        tested = set(re.findall(r"^ *OPERATION\((\w+)\)", lint.read(FORMS), re.M))
    for function in public.functions(lint):
        if re.search(r"\bnoria_future\s*\*\s*\*\s*out\s*\)", function.text) and function.name[6:] not in tested:
            lint.fault(function.path, function.line, f"{function.name} is not in {FORMS}")


def main():
    lint = Lint(__doc__)
    for what, wanted, folders, suffixes in (("test", PROMISES, TESTS, SUFFIXES),
                                            ("mutant", PROMISES, ["tests/mutants"], (".patch",)),
                                            ("test", RULES, CHECKS, SUFFIXES)):
        found = named(lint, folders, suffixes)
        for name in wanted:
            if name not in found:
                lint.fault(folders[0], 1, f"no {what} names {name}")
    check_forms(lint)
    lint.end()


main()
