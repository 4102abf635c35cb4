#!/usr/bin/env python3
"""Makes deliberate one-line changes to the stack, and checks that the captures detect each.

A copy of the sources contains every line of the table in changes.py with both its values, selected
by the environment; it is built once, and then verifies the captures once per change and once
without any. Where this machine's codecs give other results than in the captures, recorded frames
replace them, so a call recorded now is verified too.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import copy_of_sources
from changes import CHANGES
from copy_of_sources import ROOT
from rows import table

CAPTURES = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "Captures"
OWN_TAKE = ROOT / ".build" / "changes-here.take"


def record():
    """Records a short virtual call with the unchanged stack."""
    retake = copy_of_sources.program("retake")
    OWN_TAKE.unlink(missing_ok=True)
    subprocess.run([retake, "record", "demo", "--seconds", "1", "--seed", "1", "--loss", "3",
                    "--size", "96x64", "--rate", "10", "--out", OWN_TAKE], check=True)


def verify(program, change):
    environment = dict(os.environ)
    environment.pop("RETAKE_CHANGE", None)
    if change is not None:
        environment["RETAKE_CHANGE"] = change
    # All captures except those of older formats, which are in a subfolder and compared by meaning.
    takes = [*sorted(CAPTURES.glob("*.take")), OWN_TAKE]
    done = subprocess.run([program, *takes], env=environment, check=True, capture_output=True)
    return [take for take in json.loads(done.stdout)["results"] if take["result"] != "passed"]


def main():
    begin = time.monotonic()
    copy_of_sources.make(CHANGES, table())
    program = copy_of_sources.build("changes", []) / "changes"
    record()
    built = time.monotonic()
    failed = verify(program, None)
    for take in failed:
        print(f"{take['path']}: {take['reason']}", file=sys.stderr)
    if failed:
        sys.exit("Without any change the captures have to replay; record them again first.")
    print(f"{'change':28}  {'takes':>5}  {'layers':14}  first seen")
    missed = []
    for change in CHANGES:
        found = verify(program, change.name)
        layers = sorted({take["kind"] for take in found})
        where = ""
        if found:
            first = found[0]
            where = f"{Path(first['path']).name}: {first['reason']}"
        print(f"{change.name:28}  {len(found):5}  {' '.join(layers):14}  {where[:140]}")
        if not set(layers) & set(change.layers):
            missed.append(change.name)
    print(f"{len(CHANGES)} changes, {len(CHANGES) - len(missed)} caught; "
          f"built in {built - begin:.0f} s, checked in {time.monotonic() - built:.0f} s")
    if missed:
        sys.exit(f"not caught, or not by the layer of the table: {', '.join(missed)}")


if __name__ == "__main__":
    main()
