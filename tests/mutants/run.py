#!/usr/bin/env python3
"""Applies each mutant, a patch that breaks one promise or one protocol, to a copy of the tree, and asserts
that the tests it names notice.

A mutant is tests/mutants/NAME.patch. Above the diff it says:

    Breaks: P1, the second look at the queues before a worker parks
    Caught by: cases_idle_check|model_idle     (a regular expression of ctest names)
    Preset: tsan                               (optional; release if it is left out)

Usage: run.py [--check] [NAME...]    --check only asserts that every patch applies."""
import argparse
import filecmp
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
HERE = os.path.join(ROOT, "tests", "mutants")
TREE = os.path.join(ROOT, "build", "mutants", "tree")
COPIED = ["CMakeLists.txt", "CMakePresets.json", "README.md", "capi", "core", "pkgconfig", "tests"]


class Mutant:
    def __init__(self, file):
        self.name = file[:-len(".patch")]
        self.path = os.path.join(HERE, file)
        with open(self.path, encoding="utf-8") as handle:
            head = handle.read().split("\n--- ", 1)[0]
        fields = dict(re.findall(r"^(Breaks|Caught by|Preset): *(.+?) *$", head, re.M))
        if "Breaks" not in fields or "Caught by" not in fields:
            sys.exit(f"{file}: the lines `Breaks:` and `Caught by:` are missing")
        self.breaks = fields["Breaks"]
        self.tests = f"^({fields['Caught by']})$"
        self.preset = fields.get("Preset", "release")

    def apply(self, *options):
        return subprocess.run(["patch", "-p1", "-s", "-N", "-i", self.path, *options], cwd=TREE,
                              capture_output=True, text=True)


def copy_tree():
    """Makes TREE equal to the sources; files that are equal keep their time, so that little is rebuilt."""
    wanted = set()
    for top in COPIED:
        source = os.path.join(ROOT, top)
        files = [source] if os.path.isfile(source) else [
            os.path.join(where, name) for where, _, names in os.walk(source) for name in names]
        for file in files:
            relative = os.path.relpath(file, ROOT)
            wanted.add(relative)
            target = os.path.join(TREE, relative)
            if not os.path.exists(target) or not filecmp.cmp(file, target, shallow=False):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy(file, target)
    for where, _, names in os.walk(TREE):
        for name in names:
            relative = os.path.relpath(os.path.join(where, name), TREE)
            if relative not in wanted and not relative.startswith("build"):
                os.remove(os.path.join(where, name))


def configure(preset):
    build = os.path.join(TREE, "build", preset)
    subprocess.run(["cmake", "--preset", preset, "-DNORIA_BUILD_EXAMPLES=OFF", "-DNORIA_TEST_NET=OFF",
                    "-DNORIA_WERROR=OFF"], cwd=TREE, check=True, stdout=subprocess.DEVNULL)
    return build


def named(build, tests):
    """The ctest names that the expression matches."""
    listing = subprocess.run(["ctest", "-N", "-R", tests], cwd=build, capture_output=True, text=True).stdout
    return re.findall(r"^ *Test +#\d+: (\S+)", listing, re.M)


def build_tests(build, names):
    targets = [f"test_{name}" for name in names]
    return subprocess.run(["cmake", "--build", build, "-j", str(os.cpu_count()), "--target", *targets],
                          capture_output=True, text=True)


def run_tests(build, tests):
    """True if all pass. A test that hangs on broken code is stopped soon: hanging is noticing."""
    return subprocess.run(["ctest", "-R", tests, "--timeout", "60", "--stop-on-failure"], cwd=build,
                          capture_output=True, text=True).returncode == 0


def judge(mutant, sound):
    """One of caught, SURVIVED or a sentence on why it cannot be told."""
    build = configure(mutant.preset)
    names = named(build, mutant.tests)
    if not names:
        return "no such test: " + mutant.tests
    if (mutant.preset, mutant.tests) not in sound:
        result = build_tests(build, names)
        if result.returncode:
            return "the sound tree does not build:\n" + result.stdout[-2000:]
        if not run_tests(build, mutant.tests):
            return "its tests fail on the sound tree"
        sound.add((mutant.preset, mutant.tests))
    result = mutant.apply()
    if result.returncode:
        return "the patch does not apply:\n" + result.stdout
    try:
        result = build_tests(build, names)
        if result.returncode:
            return "the broken tree does not build:\n" + result.stdout[-2000:]
        return "SURVIVED" if run_tests(build, mutant.tests) else "caught"
    finally:
        mutant.apply("-R")


def main():
    global TREE
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tree", default=TREE, help="where the copy goes")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    TREE = os.path.abspath(options.tree)
    mutants = [Mutant(file) for file in sorted(os.listdir(HERE)) if file.endswith(".patch")]
    mutants = [m for m in mutants if not options.names or m.name in options.names]
    if not mutants:
        print("no mutants")
        sys.exit(77)
    copy_tree()
    failures = 0
    sound = set()
    for mutant in mutants:
        began = time.monotonic()
        if options.check:
            result = mutant.apply("--dry-run")
            verdict = "applies" if result.returncode == 0 else "does not apply:\n" + result.stdout
        else:
            verdict = judge(mutant, sound)
        if verdict not in ("caught", "applies"):
            failures += 1
        print(f"{mutant.name}: {verdict} ({mutant.breaks}; {time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(mutants) - failures} {'apply' if options.check else 'caught'}, {failures} failed")
    sys.exit(1 if failures else 0)


main()
