#!/usr/bin/env python3
"""Functions of at most 70 lines and files of at most 400 in core/ and capi/src; a header of core/
opens with `// name.hpp: what it is`."""
import os
import re

from tree import Lint, code_only, line_of, without_directives

FUNCTION_LINES = 70
FILE_LINES = 400
CONTAINER = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b[^()]*$")
NAME = re.compile(r"([~\w:]+(?:\s*operator\s*[^\s\w(]+)?)\s*\(")


def functions(text):
    """Yields (name, first line, last line) of each function body; lambdas count to what they are in."""
    code = without_directives(code_only(text))
    stack = []  # (is_container, name or None, offset where the declaration begins)
    begin = 0
    for match in re.finditer(r"[{};]", code):
        sign = match.group()
        if sign == "{":
            head = code[begin:match.start()]
            free = all(container for container, _, _ in stack)
            name = NAME.search(head)
            if free and (CONTAINER.search(head) or not head.strip()):
                stack.append((True, None, 0))
            elif free and name and not re.search(r"=\s*$", head):
                stack.append((False, name.group(1), begin + len(head) - len(head.lstrip())))
            else:
                stack.append((False, None, 0))
        elif sign == "}" and stack:
            _, name, start = stack.pop()
            if name:
                yield name, line_of(code, start), line_of(code, match.start())
        if all(container for container, _, _ in stack):
            begin = match.end()


def main():
    lint = Lint(__doc__)
    for path in lint.files(["core", "capi/src"], (".hpp", ".cpp")):
        text = lint.read(path)
        length = text.count("\n")
        if length > FILE_LINES:
            lint.fault(path, length, f"{length} lines; a file has at most {FILE_LINES}")
        if path.startswith("core/") and path.endswith(".hpp"):
            if not text.startswith(f"// {os.path.basename(path)}: "):
                lint.fault(path, 1, f"the file opens with `// {os.path.basename(path)}: what it is`")
        for name, first, last in functions(text):
            if last - first + 1 > FUNCTION_LINES:
                lint.fault(path, first, f"{name} has {last - first + 1} lines; a function has at most {FUNCTION_LINES}")
    lint.end()


main()
