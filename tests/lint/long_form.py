#!/usr/bin/env python3
"""`./run test --long` runs long forms: configured so, each test program has NORIA_LONG=1 in its environment and time for it.

Configures the tree twice in a folder of its own, as `./run test` and `./run test --long` do, and reads what ctest would run."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LONG_TIMEOUT_S = 1800


def flag_of_run(argument):
    """The option with which ./run test configures, given this argument or none."""
    with open(os.path.join(ROOT, "run"), encoding="utf-8") as file:
        text = file.read()
    found = re.search(r'= --long \]; then\s+CONFIGURE="([^"]*)".*?else\s+CONFIGURE="([^"]*)"', text, re.S)
    if found is None:
        sys.exit("run: the options of its test lanes are not where this test looks")
    return found.group(1 if argument else 2)


def registered(option, arguments, folder):
    """{name: (environment, time-out)} of the test programs that ctest knows."""
    subprocess.run([arguments.cmake, "-S", ROOT, "-B", folder, "-DNORIA_TEST_NET=ON", option, *arguments.option],
                   check=True, stdout=subprocess.DEVNULL)
    shown = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1"], check=True, capture_output=True)
    tests = {}
    for test in json.loads(shown.stdout)["tests"]:
        properties = {each["name"]: each["value"] for each in test.get("properties", [])}
        if test["name"].split("_")[0] in ("core", "capi", "cases"):
            tests[test["name"]] = properties.get("ENVIRONMENT", []), properties.get("TIMEOUT", 0)
    return tests


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("option", nargs="*", help="further arguments of cmake")
    arguments = parser.parse_args()
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        short = registered(flag_of_run(""), arguments, folder)
        long = registered(flag_of_run("--long"), arguments, folder)
    if not short or set(short) != set(long):
        faults.append(f"{len(short)} test programs in the short form, {len(long)} in the long one")
    for name, (environment, timeout) in sorted(long.items()):
        if "NORIA_LONG=1" not in environment:
            faults.append(f"{name}: ./run test --long runs its short form")
        if timeout < LONG_TIMEOUT_S:
            faults.append(f"{name}: the long form has {timeout:g} s, less than {LONG_TIMEOUT_S}")
    faults += [f"{name}: ./run test runs its long form" for name, (environment, _) in sorted(short.items())
               if "NORIA_LONG=1" in environment]
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


main()
