#!/usr/bin/env python3
"""Disables the behaviour of rows of `sdk-table`, and checks that each row's test fails.

A copy of the sources has the switches of all rows (copy_of_sources.py). A row's test passes there
without its switch, and has to fail or time out with it.

    rows.py             all supported rows
    rows.py KA5,TW7     these rows
    rows.py turn        a fortieth of them, another fortieth in each commit
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import copy_of_sources
from changes import CHANGES
from copy_of_sources import COPY, ROOT

# Every row is tested once in this many commits.
TURNS = 40
# The time limit for running a test with its switch not set, in seconds.
PATIENCE = 600


def table():
    """Returns the rows with their states, tests and switches."""
    program = copy_of_sources.program("sdk-table")
    done = subprocess.run([program, "--json"], check=True, capture_output=True)
    return json.loads(done.stdout)


def chosen(rows, words):
    """Returns the selected rows that are supported."""
    working = [row for row in rows if row["state"] == "works"]
    if not words:
        return working
    if words == "turn":
        turn = turn_of_commit()
        return [row for place, row in enumerate(working) if place % TURNS == turn]
    ids = words.split(",")
    known = {row["id"] for row in working}
    for id in ids:
        if id not in known:
            sys.exit(f"{id}: there is no such supported row; sdk-table --rows lists them")
    return [row for row in working if row["id"] in ids]


def turn_of_commit():
    """Counts commits; if the history is truncated, the last commit's time serves as well."""
    def git(*words):
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()
    shallow = git("rev-parse", "--is-shallow-repository")
    count = git("rev-list", "--count", "HEAD") if shallow == "false" \
        else git("log", "-1", "--format=%ct")
    return int(count or time.time() // 86400) % TURNS


def module(test):
    """Returns the test target that contains a test."""
    suite, name = test.split("/")
    for path in sorted((ROOT / "Tests").glob("*Tests/**/*.swift")):
        text = path.read_text()
        if re.search(rf"\b(struct|class|extension) {suite}\b", text) and f"func {name}(" in text:
            return path.relative_to(ROOT / "Tests").parts[0]
    return None


class Run:
    """A test run in the copy, with a row's switch or without."""

    def __init__(self, test, row=None, limit=PATIENCE):
        self.issue = None
        self.count = 0
        self.text = []
        begin = time.monotonic()
        environment = dict(os.environ, SWT_SWIFT_ERROR_BACKTRACING_ENABLED="0")
        environment.pop("RETAKE_CHANGE", None)
        if row:
            environment["RETAKE_CHANGE"] = row
        suite, name = test.split("/")
        process = subprocess.Popen(
            [COPY / ".build" / "debug" / "retakePackageTests.xctest", "--testing-library",
             "swift-testing", "--filter", rf"[./]{suite}/{name}\("],
            cwd=COPY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True)
        timer = threading.Timer(limit, self.end, [process])
        timer.start()
        self.is_late = False
        for line in process.stdout:
            # Some lines contain a whole frame, so long lines are cut.
            line = line[:2000]
            self.text.append(line)
            ran = re.search(r"Test run with (\d+) test", line)
            if ran:
                self.count = int(ran[1])
            if "recorded an issue" in line and self.issue is None:
                words = line.split("recorded an issue", 1)[1]
                self.issue = words.split(" at ", 1)[-1].strip()
                # One failure is enough, so the rest of the run is not needed.
                if row:
                    self.kill(process)
        process.wait()
        timer.cancel()
        self.seconds = time.monotonic() - begin
        self.status = process.returncode

    def end(self, process):
        self.is_late = True
        self.kill(process)

    @staticmethod
    def kill(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    @property
    def passed(self):
        return self.status == 0 and self.count > 0 and self.issue is None

    @property
    def outcome(self):
        """Returns in a few words how the run failed; None if it passed."""
        if self.issue is not None:
            return self.issue
        if self.is_late:
            return "waits in vain"
        if self.status != 0:
            return f"ended with {self.status}"
        return None


def products(change):
    """Returns whether the products named by an external package exist."""
    def manifest(folder, change=None):
        environment = dict(os.environ)
        environment.pop("RETAKE_CHANGE", None)
        if change:
            environment["RETAKE_CHANGE"] = change
        done = subprocess.run(["swift", "package", "dump-package"], cwd=folder, check=True,
                              env=environment, capture_output=True)
        return json.loads(done.stdout)
    there = {product["name"] for product in manifest(COPY, change)["products"]}
    named = {dependency["product"][0]
             for target in manifest(COPY / "Tests" / "Sample")["targets"]
             for dependency in target["dependencies"] if "product" in dependency}
    return bool(named) and named <= there


def check_sample(name):
    """Checks a row about the package itself: `make sample` runs its test, which needs the
    products."""
    if not products(None):
        return 0.0, None, "the products are not built"
    outcome = None if products(name) else "a product is not there"
    return 0.0, outcome, "passes without the behaviour"


def main():
    begin = time.monotonic()
    words = sys.argv[1] if len(sys.argv) > 1 else ""
    rows = table()
    # Each part of a row by name, with the test that has to fail.
    wanted = {switch["name"]: switch.get("test") or row["test"]
              for row in chosen(rows, words) for switch in row["switches"]}
    modules = {test: module(test) for test in wanted.values()}
    copy_of_sources.make(CHANGES, rows)
    targets = sorted({target for target in modules.values() if target})
    copy_of_sources.build("retakePackageTests", targets)
    built = time.monotonic()

    tests = sorted(test for test in modules if modules[test])
    weak = []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        plain = dict(zip(tests, pool.map(Run, tests)))
        for test in tests:
            if not plain[test].passed:
                print("".join(plain[test].text[-40:]), file=sys.stderr)
                weak.append(f"{test} fails without its switch")

        def check(name):
            test = wanted[name]
            if modules[test] is None:
                return check_sample(name)
            if not plain[test].passed:
                return 0.0, None, "not tried"
            run = Run(test, name, 15 + 3 * plain[test].seconds)
            return run.seconds, run.outcome, "passes without the behaviour"
        print(f"{'row':18}  {'seconds':>7}  test, and how it fails")
        for name, (seconds, outcome, fault) in zip(wanted, pool.map(check, wanted)):
            print(f"{name:18}  {seconds:7.1f}  {wanted[name]}: {outcome or fault}"[:160],
                  flush=True)
            if not outcome and fault != "not tried":
                weak.append(f"{name}: {wanted[name]} {fault}")
    print(f"{len(wanted)} parts of rows, {len(wanted) - len(weak)} caught; "
          f"built in {built - begin:.0f} s, checked in {time.monotonic() - built:.0f} s")
    if weak:
        sys.exit("\n".join(weak))


if __name__ == "__main__":
    main()
