"""What every lint shares: walking the tree, blanking comments, reporting, exit status."""
import argparse
import os
import re
import sys

SKIPPED_DIRS = re.compile(r"^(build.*|target|__pycache__|\.(?!ci$).*)$")


class Lint:
    """One lint run: `root` is the tree, `options` the parsed command line."""

    def __init__(self, what, add_options=lambda parser: None):
        parser = argparse.ArgumentParser(description=what)
        parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), "..", ".."))
        add_options(parser)
        self.options = parser.parse_args()
        self.root = os.path.abspath(self.options.root)
        self.name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
        self.checked = 0
        self.faults = 0

    def files(self, folders, suffixes):
        """Paths relative to the root, sorted, of the files under `folders` with these suffixes."""
        found = []
        for folder in folders:
            if os.path.isfile(os.path.join(self.root, folder)):
                found.append(os.path.normpath(folder))
            for where, dirs, names in os.walk(os.path.join(self.root, folder)):
                dirs[:] = [d for d in dirs if not SKIPPED_DIRS.match(d)]
                found += [os.path.relpath(os.path.join(where, n), self.root)
                          for n in names if n.endswith(suffixes)]
        return sorted(set(found))

    def read(self, path):
        self.checked += 1
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def fault(self, path, line, message):
        self.faults += 1
        print(f"{path}:{line}: {message}")

    def end(self, noun="files"):
        """Prints the sum and leaves; a lint that looked at nothing has not passed."""
        if self.checked == 0:
            print(f"{self.name}: nothing to check")
            sys.exit(77)
        print(f"{self.name}: {self.checked} {noun}, {self.faults} faults")
        sys.exit(1 if self.faults else 0)


TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
    r"(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*'",
    re.S)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def code_only(text):
    """The text with comments and literals blanked; every line keeps its number and its length."""
    return TOKEN.sub(lambda m: _blank(m.group()), text)


def without_comments(text):
    """The text with comments blanked and literals kept."""
    return TOKEN.sub(lambda m: _blank(m.group()) if m.group()[0] == "/" else m.group(), text)


def without_directives(text):
    """The text with preprocessor lines, continued ones too, blanked."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: _blank(m.group()), text, flags=re.M)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1
