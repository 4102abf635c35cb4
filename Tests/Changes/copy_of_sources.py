"""Makes a copy of the sources that contains every deliberate change and every row's switch beside
the original; RETAKE_CHANGE selects one when a program runs."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / ".build" / "changes"
# The same flags as `make` uses, so that build products of `make` are reused.
BUILD = os.environ.get("BUILD", "swift build").split()

SWITCH = """\
import Glibc

/// What this process runs with: a deliberate change, or a row that is taken out.
private let chosen = getenv("RETAKE_CHANGE").map { String(cString: $0) }

/// Whether this process runs with a deliberate change.
package func isChanged(_ name: String) -> Bool { chosen == name }
"""

MAIN = """\
import Foundation
import Replay

let run = VerificationRun(
  takes: try VerificationRun.takes(in: Array(CommandLine.arguments.dropFirst())),
  mode: .exact, jobs: ProcessInfo.processInfo.activeProcessorCount)
print(run.json)
"""

# Package.swift reads the environment through `Context` instead of `ProcessInfo`.
MANIFEST_SWITCH = """
func isChanged(_ name: String) -> Bool { Context.environment["RETAKE_CHANGE"] == name }
"""

PROGRAM = """\
    .executableTarget(
      name: "changes", dependencies: ["Replay"], swiftSettings: settings),
"""


def program(name):
    """Builds a program of the checkout itself and returns its path."""
    subprocess.run([*BUILD, "--product", name], cwd=ROOT, check=True, stdout=sys.stderr)
    return ROOT / ".build" / "debug" / name


def build(product, tests):
    """Builds a product of the copy with the given test targets."""
    environment = dict(os.environ, RETAKE_TESTS=",".join(tests) or "none")
    subprocess.run([*BUILD, "--product", product], cwd=COPY, check=True, env=environment)
    return COPY / ".build" / "debug"


def make(changes, rows):
    """Updates the copy; unchanged files keep their modification times."""
    wanted = {}
    for path in [*ROOT.glob("Package.*"), *files("Sources"), *files("Schema"), *files("Tests")]:
        wanted[path.relative_to(ROOT)] = path.read_bytes()
    for change in changes:
        switch_line(wanted, change)
    # Longest texts first, so that a switch whose text is part of another's is applied after it.
    switches = {}
    for row in rows:
        for switch in row.get("switches", []):
            place = (switch["file"], switch["form"], switch["words"])
            switches.setdefault(place, []).append((switch["name"], switch["others"]))
    for place in sorted(switches, key=lambda place: -len(place[2])):
        switch_words(wanted, place, switches[place])
    # The function that checks which change is selected goes into the module of JSONText.swift,
    # which all other modules import.
    lowest = next(path.parent for path in wanted if path.name == "JSONText.swift")
    wanted[lowest / "Changed.swift"] = SWITCH.encode()
    wanted[Path("Sources/changes/main.swift")] = MAIN.encode()
    manifest = wanted[Path("Package.swift")].decode()
    manifest = manifest.replace("import PackageDescription\n", "import PackageDescription\n"
                                + MANIFEST_SWITCH, 1)
    start = manifest.index("    tests(\"TidyTests\"")
    manifest = manifest[:start] + PROGRAM + manifest[start:]
    wanted[Path("Package.swift")] = manifest.encode()
    for path, data in wanted.items():
        write(COPY / path, data)
    for folder in ["Sources", "Tests"]:
        for path in (COPY / folder).glob("**/*"):
            if path.is_file() and path.relative_to(COPY) not in wanted:
                path.unlink()
    captures = COPY / "Captures"
    if not captures.is_symlink():
        captures.symlink_to(ROOT / "Captures")


def files(folder):
    """Returns the files below a folder, except build products."""
    for path in sorted((ROOT / folder).rglob("*")):
        if path.is_file() and not path.is_symlink() and ".build" not in path.parts \
                and "__pycache__" not in path.parts:
            yield path


def find(wanted, name, words, what):
    """Returns the only file of a name that contains these words exactly once."""
    found = [path for path, data in wanted.items() if path.name == name
             and path.parts[0] != "Tests" for _ in range(data.decode().count(words))]
    if len(found) != 1:
        sys.exit(f"{name}: what {what} changes is there {len(found)} times and not once:\n{words}\n"
                 "Correct the table (Tests/Changes/changes.py, Tests/SDKTable/RowSwitch+*.swift).")
    return found[0]


def replace(wanted, path, words, others):
    text = wanted[path].decode().replace(words, others, 1)
    if "import Wire" not in text and path.suffix == ".swift" and path.parts[0] == "Sources":
        text = "import Wire\n" + text
    wanted[path] = text.encode()


def switch_line(wanted, change):
    path = find(wanted, change.file, change.before + "\n", f"'{change.name}'")
    replace(wanted, path, change.before + "\n", change.switched + "\n")


def switch_words(wanted, place, rows):
    """Adds the alternatives of several rows beside the original words."""
    name, form, words = place
    path = find(wanted, name, words, "row " + rows[0][0])
    text = words
    for row, others in rows:
        if form == "value":
            text = f'(isChanged("{row}") ? ({others}) : ({text}))'
        elif form == "before":
            text = f'if isChanged("{row}") {{\n{others}\n}}\n{text}'
        elif others:
            text = f'if isChanged("{row}") {{\n{others}\n}} else {{\n{text}\n}}'
        else:
            text = f'if !isChanged("{row}") {{\n{text}\n}}'
    replace(wanted, path, words, text)


def write(path, data):
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
