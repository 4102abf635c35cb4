"""Redacts every capture in each way, and checks what is promised for each new take."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

WAYS = ["media", "keys", "addresses", "names", "messages", "media,keys,addresses,names,messages"]


def run(tool, *words):
    """Runs a command; returns its exit status, output and errors."""
    done = subprocess.run([tool, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def check(tool, take, way, folder):
    """Redacts a take in one way and checks it; returns `executed`, `facts`, or what is wrong."""
    out = str(folder / "new.take")
    pathlib.Path(out).unlink(missing_ok=True)
    status, text, errors = run(tool, "redact", take, "--out", out, "--remove", way, "--json")
    if status != 0:
        return f"redact: {errors.strip() or text.strip()}"
    made = json.loads(text)
    status, text, errors = run(tool, "replay", out)
    if status != 0:
        return f"replay: {text.strip()} {errors.strip()}"
    if made["executed"] != ("identical" in text):
        return f"replay and redact disagree: {text.strip()}"
    return "executed" if made["executed"] else f"facts: {made['reason']}"


def main():
    """Checks all captures; the exit status is 1 if one breaks its promise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--retake", default=".build/debug/retake")
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("takes", nargs="*")
    words = parser.parse_args()
    takes = words.takes or sorted(map(str, pathlib.Path("Captures").rglob("*.take")))
    counts = {"executed": 0, "facts": 0, "wrong": 0}
    with tempfile.TemporaryDirectory() as name:
        for take in takes:
            for way in words.way or WAYS:
                found = check(words.retake, take, way, pathlib.Path(name))
                kind = found.split(":")[0]
                counts[kind if kind in counts else "wrong"] += 1
                if found != "executed":
                    print(f"{take}, {'all' if way == WAYS[-1] else way}: {found}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    sys.exit(1 if counts["wrong"] else 0)


if __name__ == "__main__":
    main()
