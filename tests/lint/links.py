#!/usr/bin/env python3
"""Relative links in the Markdown files lead to a file, and an anchor to a heading, that exists."""
import os
import re

from tree import Lint

LINK = re.compile(r"!?\[[^\]\n]*\]\(\s*<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\s*\[[^\]\n]+\]:\s*(\S+)", re.M)


def prose(text):
    """The text with code blocks and code spans blanked."""
    text = re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", lambda m: " " * len(m.group()), text)


def anchors(text):
    found = set()
    for title in re.findall(r"^#+\s+(.*?)\s*#*$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.add(slug if slug not in found else f"{slug}-1")
    return found


def main():
    lint = Lint(__doc__)
    for path in lint.files(["."], (".md",)):
        text = lint.read(path)
        visible = prose(text)
        for match in LINK.finditer(visible):
            target = match.group(1) or match.group(2)
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            file, _, anchor = target.partition("#")
            line = visible.count("\n", 0, match.start()) + 1
            where = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            if not os.path.exists(os.path.join(lint.root, where)) or where.startswith(".."):
                lint.fault(path, line, f"dead link: {target}")
            elif anchor and where.endswith(".md"):
                with open(os.path.join(lint.root, where), encoding="utf-8") as other:
                    if anchor not in anchors(other.read()):
                        lint.fault(path, line, f"no such heading: {target}")
    lint.end()


main()
