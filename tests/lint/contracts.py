#!/usr/bin/env python3
"""Every public function's own comment has the parts Threads:, Owner: and Errors:, each at the beginning
of a line or after two spaces, and Callback: where it takes a function or a struct of functions (A12). No public declaration uses
long, ssize_t, bit-fields, variable arguments, structs by value or bodies (A2). Types and functions begin with noria_, macros and
constants with NORIA_, and no function is a macro only (A1)."""
import re

import public
from tree import Lint, code_only, line_of, without_directives


def callback_types(lint):
    """Typedef names of function pointers and of structs that hold some directly."""
    text = "".join(without_directives(code_only(lint.read(p))) for p in public.headers(lint))
    pointers = set(re.findall(r"\btypedef\b[^;{]*\(\s*\*\s*(noria_\w+)\s*\)\s*\(", text))
    structs = set()
    for name, body in re.findall(r"\bstruct\s+(noria_\w+)\s*\{([^{}]*)\}", text):
        words = set(re.findall(r"\w+", body))
        if re.search(r"\(\s*\*\s*\w+\s*\)\s*\(", body) or words & pointers:
            structs.add(name)
    return pointers | structs


def by_value_types(lint):
    text = "".join(without_directives(code_only(lint.read(p))) for p in public.headers(lint))
    return set(re.findall(r"\bstruct\s+(noria_\w+)\s*\{", text))


def check_names(lint, path):
    """A1; of async.h, which is sugar, the prefix only. A macro that is undefined again in the same header is nobody's."""
    code = code_only(lint.read(path))
    undefined = set(re.findall(r"^[ \t]*#[ \t]*undef[ \t]+(\w+)", code, re.M))
    for match in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\(?)", code, re.M):
        if match.group(1) in undefined:
            continue
        if not match.group(1).startswith("NORIA_"):
            lint.fault(path, line_of(code, match.start()), f"the macro {match.group(1)} does not begin with NORIA_")
        if match.group(2) and not path.endswith("/async.h"):
            lint.fault(path, line_of(code, match.start()), f"{match.group(1)} exists as a macro only")
    plain = without_directives(code)
    for match in re.finditer(r"\b(?:struct|enum|union)\s+(\w+)", plain):
        if not match.group(1).startswith("noria_"):
            lint.fault(path, line_of(plain, match.start()), f"the type {match.group(1)} does not begin with noria_")
    for match in re.finditer(r"\benum\b[^{;]*\{([^}]*)\}", plain):
        for name in re.findall(r"(?:^|,)\s*(\w+)", match.group(1)):
            if not name.startswith("NORIA_"):
                lint.fault(path, line_of(plain, match.start()), f"the constant {name} does not begin with NORIA_")
    for match in re.finditer(r"\bNORIA_API\b[^;(]*?(\w+)\s*\(", plain):
        if not match.group(1).startswith("noria_"):
            lint.fault(path, line_of(plain, match.start()), f"the function {match.group(1)} does not begin with noria_")


def main():
    lint = Lint(__doc__)
    callbacks = callback_types(lint)
    structs = by_value_types(lint)
    found = public.functions(lint)
    for function in found:
        wanted = ["Threads:", "Owner:", "Errors:"]
        parameters = function.text.partition(function.name)[2]
        if "(*" in parameters.replace(" ", "") or set(re.findall(r"\w+", parameters)) & callbacks:
            wanted.append("Callback:")
        for word in wanted:
            if not re.search(rf"(?:^\W*|[ ]{{2}}){word}[ \t]*\S", function.comment, re.M):
                lint.fault(function.path, function.line, f"{function.name} has no line {word}")
        for pattern, what in ((r"\blong\b", "long"), (r"\bssize_t\b", "ssize_t"), (r"\.\.\.", "variable arguments"),
                              (r"\b(?:int|unsigned|short)\b", "a C integer without a width"),
                              (r"\benum\b", "an enum by value")):
            if re.search(pattern, function.text):
                lint.fault(function.path, function.line, f"{function.name} uses {what}")
        for name in structs:
            if re.search(rf"\b{name}\s*(?:[,)]|\w+\s*[,)])", parameters) or \
                    re.search(rf"\b{name}\s+$", function.text.partition(function.name)[0]):
                lint.fault(function.path, function.line, f"{function.name} passes {name} by value")
    for path in public.headers(lint):
        check_names(lint, path)
        text = without_directives(code_only(lint.read(path)))
        if path.endswith("/async.h"):
            continue
        for match in re.finditer(r"\bstatic\s+inline\b|\binline\s+static\b", text):
            lint.fault(path, line_of(text, match.start()), "no function exists as static inline only")
        for match in re.finditer(r"\w\s*:\s*\d+\s*;", text):
            lint.fault(path, line_of(text, match.start()), "bit-field")
    lint.checked = len(found)
    lint.end("functions")


main()
