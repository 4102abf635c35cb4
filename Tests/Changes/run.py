#!/usr/bin/env python3
"""Makes deliberate one-line changes of the stack and sees that the captures catch each of them.

A copy of the sources gets every line of the table in changes.py with both its values, which one
holds being chosen by the environment; it is built once, and then verifies the captures once per
change and once without any. Where the codecs come to something else than in the captures, their
frames stand in for them, so a call that is recorded here and now is verified too.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from changes import CHANGES

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / ".build" / "changes"
CAPTURES = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "Captures"
OWN_TAKE = ROOT / ".build" / "changes-here.take"
# As `make` builds, so that what it has built is there already.
BUILD = os.environ.get("BUILD", "swift build").split()

SWITCH = """\
import Glibc

/// Whether this process runs with a deliberate change.
package func isChanged(_ name: String) -> Bool {
  guard let chosen = getenv("RETAKE_CHANGE") else { return false }
  return String(cString: chosen) == name
}
"""

MAIN = """\
import Foundation
import Verify

let run = VerificationRun(
  takes: try VerificationRun.takes(in: Array(CommandLine.arguments.dropFirst())),
  mode: .exact, jobs: ProcessInfo.processInfo.activeProcessorCount)
print(run.json)
"""


def copy_sources():
    """Brings the copy up to date; files that did not change keep their times."""
    for name in ["Package.swift", "Package.resolved"]:
        if (ROOT / name).exists():
            write(COPY / name, (ROOT / name).read_text())
    wanted = {}
    for folder in ["Sources", "Schema", "Tests/Runner"]:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and not path.is_symlink():
                wanted[path.relative_to(ROOT)] = path.read_bytes()
    wanted[Path("Sources/Wire/Changed.swift")] = SWITCH.encode()
    wanted[Path("Sources/changes/main.swift")] = MAIN.encode()
    for change in CHANGES:
        path = Path(change.path)
        text = wanted[path].decode()
        if text.count(change.before + "\n") != 1:
            sys.exit(f"{change.path}: the line of the change '{change.name}' is not there once:\n"
                     f"{change.before}\nCorrect the table in Tests/Changes/changes.py.")
        text = text.replace(change.before + "\n", change.switched + "\n")
        if "import Wire" not in text:
            text = "import Wire\n" + text
        wanted[path] = text.encode()
    for path, data in wanted.items():
        write_bytes(COPY / path, data)
    for path in COPY.glob("Sources/**/*"):
        if path.is_file() and path.relative_to(COPY) not in wanted and not path.is_symlink():
            path.unlink()
    add_target()


def add_target():
    """Leaves the tests out of the manifest and puts the program that verifies in."""
    path = COPY / "Package.swift"
    text = path.read_text()
    start = text.index("    tests(\"TidyTests\"")
    end = text.index("  ],\n  swiftLanguageModes")
    program = ('    .executableTarget(\n      name: "changes", dependencies: ["Verify"],\n'
               "      swiftSettings: settings),\n")
    write(path, text[:start] + program + text[end:])


def write(path, text):
    write_bytes(path, text.encode())


def write_bytes(path, data):
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def build():
    subprocess.run([*BUILD, "--product", "changes"], cwd=COPY, check=True)
    return COPY / ".build" / "debug" / "changes"


def record():
    """Records a short virtual call with the stack as it is."""
    subprocess.run([*BUILD, "--product", "retake"], cwd=ROOT, check=True)
    OWN_TAKE.unlink(missing_ok=True)
    retake = ROOT / ".build" / "debug" / "retake"
    subprocess.run([retake, "record", "demo", "--seconds", "1", "--seed", "1", "--loss", "3",
                    "--size", "96x64", "--rate", "10", "--out", OWN_TAKE], check=True)


def verify(program, change):
    environment = dict(os.environ)
    environment.pop("RETAKE_CHANGE", None)
    if change is not None:
        environment["RETAKE_CHANGE"] = change
    # Not those of older formats in the folder below, which are compared by meaning.
    takes = [*sorted(CAPTURES.glob("*.take")), OWN_TAKE]
    done = subprocess.run([program, *takes], env=environment, check=True, capture_output=True)
    return [take for take in json.loads(done.stdout)["results"] if take["result"] != "passed"]


def main():
    begin = time.monotonic()
    copy_sources()
    program = build()
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
