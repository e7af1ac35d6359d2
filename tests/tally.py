#!/usr/bin/env python3
"""Sums the lanes of ./run test: one line a lane that failed something, then the closing line.

A Criterion program counts as the tests in it, any other as one. Lanes leave a JUnit file of ctest, or a
`.broken` file where the build failed. Zero tests are a failure."""
import os
import re
import sys
import xml.etree.ElementTree as xml

SYNTHESIS = re.compile(r"Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+)")


def count(case):
    """(passed, failed, skipped) of one ctest entry."""
    status = case.get("status")
    if status in ("notrun", "disabled"):
        # An executable that is not there is a failure; a test that says so is skipped.
        skipped = case.find("skipped")
        missing = skipped is None or "SKIP" not in (skipped.get("message") or "").upper()
        return (0, 1, 0) if missing else (0, 0, 1)
    text = case.findtext("system-out") or ""
    sums = [sum(column) for column in zip(*(map(int, m) for m in SYNTHESIS.findall(text)))]
    passed, failed = (sums[1], sums[2]) if sums else (0, 0)
    if status == "run":
        return (passed, failed, 0) if sums else (1, 0, 0)
    return passed, max(failed, 1), 0


def main():
    folder = sys.argv[1]
    passed = failed = skipped = 0
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.endswith(".broken"):
            print(f"{name[:-7]}: the build failed")
            failed += 1
        elif name.endswith(".xml"):
            cases = list(xml.parse(path).getroot().iter("testcase"))
            if not cases:
                print(f"{name[:-4]}: no test ran")
                failed += 1
            for case in cases:
                sums = count(case)
                if sums[1]:
                    print(f"{name[:-4]}: {case.get('name')} failed")
                passed, failed, skipped = passed + sums[0], failed + sums[1], skipped + sums[2]
    if passed + failed == 0:
        failed = 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


main()
