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
        if not above.strip() or above.strip().startswith("#") or above[-1] in ";{}:" :
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


def main():
    lint = Lint(__doc__)
    for path in lint.files(["core", "capi/src"], (".hpp", ".cpp")):
        if path == DOOR:
            continue
        text = lint.read(path)
        lines = text.split("\n")
        code = code_only(text).split("\n")
        for index, line in enumerate(code):
            if re.match(r"\s*#", line):
                continue
            orders = ORDER.findall(line)
            call = CALL.search(line)
            if call and "std::exchange" not in line:
                joined = " ".join(code[index:index + 8]).split(";")[0]
                if not ORDER.search(joined):
                    lint.fault(path, index + 1, f"{call.group(1)} names no order")
                    continue
            if not orders:
                continue
            start = statement_start(code, index)
            own = "\n".join(l.partition("//")[2] for l in lines[start:index + 1])
            comment = own if "ORDER:" in own else comment_above(lines, code, start)
            if "ORDER:" not in comment:
                lint.fault(path, index + 1, "atomic operation without an ORDER: comment")
                continue
            said = comment[comment.index("ORDER:"):]
            words = [WORDS[order] for order in orders]
            if call and call.group(1).startswith("compare"):
                words = words[:1]  # the order of success is the one to explain
            for word in words:
                if word not in said:
                    lint.fault(path, index + 1, f"the ORDER: comment does not say {word}")
    lint.end()


main()
