#!/usr/bin/env python3
"""run_tests.py PROGRAM...: runs GoogleTest programs one after the other, prints each one's time, ends with `N passed, N failed`.

A crash, a hang (600 s) or a program without results counts as one failed test. Output is shown for programs that fail.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time


def run(program, results):
    """Returns (passed, failed, output)."""
    try:
        done = subprocess.run([program, f"--gtest_output=json:{results}", "--gtest_brief=0"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=600, check=False)
        output, status = done.stdout.decode(errors="replace"), done.returncode
    except subprocess.TimeoutExpired as e:
        output, status = (e.stdout or b"").decode(errors="replace") + "\nstopped after 600 s", "timeout"
    if results.exists():
        summary = json.loads(results.read_text())
        tests = [test for suite in summary["testsuites"] for test in suite["testsuite"] if test.get("result") == "COMPLETED"]
        failed = sum(1 for test in tests if test.get("failures")) + sum(1 for suite in summary["testsuites"] if suite.get("errors"))
        passed = len(tests) - failed
        if status and not failed:  # a failure outside of the tests, e.g. a sanitizer's report at exit
            failed = 1
        return passed, failed, output
    passed = len(re.findall(r"^\[       OK \]", output, re.M))
    failed = len(re.findall(r"^\[  FAILED  \] .* ms\)$", output, re.M))
    return passed, failed + 1, output + f"\n{program}: ended without results, exit status {status}"


def main():
    all_passed = all_failed = 0
    for program in sys.argv[1:]:
        start = time.time()
        with tempfile.TemporaryDirectory() as folder:
            passed, failed, output = run(program, pathlib.Path(folder) / "results.json")
        if failed:
            print(re.sub(r"^\[( RUN      |       OK )\].*\n", "", output, flags=re.M))
        print(f"{pathlib.Path(program).name:<20} {passed:6} passed {failed:4} failed {time.time() - start:8.1f} s", flush=True)
        all_passed += passed
        all_failed += failed
    if all_passed + all_failed == 0:
        all_failed = 1
        print("no tests were found")
    print(f"{all_passed} passed, {all_failed} failed")
    sys.exit(bool(all_failed))


main()
