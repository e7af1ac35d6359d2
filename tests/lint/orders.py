#!/usr/bin/env python3
"""Every atomic operation in core/ and capi/src names its order in a comment that begins with ORDER:,
on its own line or directly above its statement; one comment may stand above a run of statements
that are all atomic. The comment says the order's own word."""
import re

from tree import Lint, code_only

DOOR = "core/base/atomic.hpp"
ORDER = re.compile(r"\bNORIA_(RELAXED|ACQUIRE|RELEASE|ACQ_REL|SEQ_CST)\b")
CALL = re.compile(r"(?:\.|->)\s*(compare_exchange_(?:weak|strong)|exchange|fetch_(?:add|sub|or|and|xor))\s*\(")
WORDS = {"RELAXED": "relaxed", "ACQUIRE": "acquire", "RELEASE": "release", "ACQ_REL": "acq_rel",
         "SEQ_CST": "seq_cst"}


def statement_start(code, index):
    """First line of the statement that line `index` is part of."""
    while index > 0:
        above = code[index - 1].rstrip()
        if not above.strip() or above[-1] in ";{}:":
            break
        index -= 1
    return index


def comment_above(lines, code, index):
    """The comment that belongs to the statement which begins at `index`: the block directly above
    it, or above the run of atomic statements that it continues."""
    while index > 0:
        block = []
        above = index - 1
        while above >= 0 and lines[above].strip().startswith("//"):
            block.insert(0, lines[above])
            above -= 1
        if block:
            return "\n".join(block)
        if index == 0 or not ORDER.search(code[index - 1]):
            return ""
        start = statement_start(code, index - 1)
        trailing = "\n".join(l.partition("//")[2] for l in lines[start:index])
        if "ORDER:" in trailing:
            return trailing
        index = start
    return ""


def compiled(lines):
    """(line number, line) without directives and without what is compiled only to plant a bug."""
    opened = []  # one entry an open #if: [it asks for a planted bug, this branch is the planted one]
    for number, line in enumerate(lines, 1):
        directive = re.match(r"\s*#\s*(\w*)", line)
        word = directive.group(1) if directive else ""
        if not directive:
            if not any(planted for _, planted in opened):
                yield number, line
        elif word.startswith("if"):
            asks = "NORIA_PLANT_" in line
            opened.append([asks, asks and word != "ifndef" and "!" not in line])
        elif word == "else" and opened:
            opened[-1][1] = opened[-1][0] and not opened[-1][1]
        elif word == "endif" and opened:
            opened.pop()


def main():
    lint = Lint(__doc__)
    for path in lint.files(["core", "capi/src"], (".hpp", ".cpp")):
        if path == DOOR:
            continue
        text = lint.read(path)
        kept = list(compiled(text.split("\n")))
        lines = [line for _, line in kept]
        blanked = code_only(text).split("\n")
        code = [blanked[number - 1] for number, _ in kept]
        for index, line in enumerate(code):
            number = kept[index][0]
            orders = ORDER.findall(line)
            call = CALL.search(line)
            if call and "std::exchange" not in line:
                joined = " ".join(code[index:index + 8]).split(";")[0]
                if not ORDER.search(joined):
                    lint.fault(path, number, f"{call.group(1)} names no order")
                    continue
            if not orders:
                continue
            start = statement_start(code, index)
            own = "\n".join(l.partition("//")[2] for l in lines[start:index + 1])
            comment = own if "ORDER:" in own else comment_above(lines, code, start)
            if "ORDER:" not in comment:
                lint.fault(path, number, "atomic operation without an ORDER: comment")
                continue
            said = comment[comment.index("ORDER:"):]
            words = [WORDS[order] for order in orders]
            if call and call.group(1).startswith("compare"):
                words = words[:1]  # the order of success is the one to explain
            for word in words:
                if word not in said:
                    lint.fault(path, number, f"the ORDER: comment does not say {word}")
    lint.end()


main()
