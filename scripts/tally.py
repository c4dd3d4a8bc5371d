#!/usr/bin/env python3
"""Prints `N passed, N failed, N skipped` for JUnit files of ctest and pytest: tally.py <exit status> <file>...

A run that failed in a step without tests counts that step as one failure.
"""
import sys
import xml.etree.ElementTree as ElementTree


def count(path):
    """(tests, failed, skipped) of one file."""
    suites = [suite for suite in ElementTree.parse(path).iter("testsuite")]
    total = [sum(int(suite.get(name, 0)) for suite in suites)
             for name in ("tests", "failures", "errors", "skipped", "disabled")]
    return total[0], total[1] + total[2], total[3] + total[4]


def main(status, paths):
    tests = failed = skipped = 0
    for path in paths:
        try:
            counts = count(path)
        except (OSError, ElementTree.ParseError):
            continue  # the step did not get that far; its status says so
        tests, failed, skipped = tests + counts[0], failed + counts[1], skipped + counts[2]
    passed = tests - failed - skipped
    if status != 0 and failed == 0:
        failed = 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
