#!/usr/bin/env python3
"""Every exported function that takes a handle, a waker or a context is called on inherited ones in the tests of fork, which assert
that it answers -NORIA_EFORKED (A15)."""
import re

import public
from tree import Lint, code_only, without_comments, without_directives

MAP = "capi/src/exports.map"
TESTS = "tests/capi"
FROZEN = {"noria_waker", "noria_cx"}  # structs with a body that lead to a runtime
EXEMPT = {
    "noria_waker_will_wake": "compares two values and touches nothing behind them",
}


def handles(lint):
    """Names of the types that are declared and never defined."""
    text = "".join(without_directives(code_only(lint.read(path))) for path in public.headers(lint))
    declared = set(re.findall(r"\btypedef\s+struct\s+(noria_\w+)\s+\1\s*;", text))
    return (declared - set(re.findall(r"\bstruct\s+(noria_\w+)\s*\{", text))) | FROZEN


def takes_handle(function, types):
    """Whether a parameter is a pointer, or an array of pointers, to one of the types; `**out` alone gives one."""
    for parameter in function.text.partition(function.name)[2].strip(" ();").split(","):
        match = re.match(r"\s*(?:const\s+)?(noria_\w+)\s*(\*\s*const\s*\*|\*\*?)\s*\w*", parameter)
        if match and match.group(1) in types and match.group(2).replace(" ", "") != "**":
            return True
    return False


def main():
    lint = Lint(__doc__)
    types = handles(lint)
    refused = set()
    for path in lint.files([TESTS], (".cpp",)):
        if not path.startswith(TESTS + "/fork"):
            continue
        text = without_comments(lint.read(path))
        refused |= set(re.findall(r"\bFORKED\(\s*(noria_\w+)\(", text))
        refused |= {call for call in re.findall(r"\bNORIA_STATUS\(\s*(noria_\w+)\([^;]*?\bkForked\)", text)}
    exported = set(re.findall(r"^\s*(noria_\w+);", lint.read(MAP), re.M))
    functions = [f for f in public.functions(lint) if f.name in exported]
    for function in functions:
        if takes_handle(function, types) and function.name not in refused and function.name not in EXEMPT:
            lint.fault(function.path, function.line, f"no test calls {function.name} in the child of a fork")
    for name in sorted(set(EXEMPT) & refused):
        lint.fault(TESTS, 1, f"{name} is exempt and tested")
    lint.checked = len(functions)
    lint.end("functions")


main()
