"""Reads every view of takes through DuckDB's SQLite scanner and compares the rows with SQLite's.

Captures contain the views of the versions that recorded them, so their copies first get those of
Schema/, as in a take recorded now.

    make views
"""

import glob
import os
import re
import shutil
import sqlite3
import sys
import tempfile

import duckdb
from duckdb_extensions import import_extension

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CAPTURES = [
    "formats/format-6.take", "janus-room.take", "observed-aiortc.take", "observed-firefox.take",
    "observed-clear-vp8.take", "virtual-heavy-loss.take", "chromium-negotiates.take",
    "relayed-chromium.take",
]
# The scanner cannot read these columns: it treats computed ones as text, but their values are
# bytes.
LEFT_OUT = {"packet": {"bytes"}, "relayed": {"bytes"}, "frame": {"bytes", "digest"}}


def statements(kind):
    """Returns the schema's statements that create one kind of object, in order."""
    found, lines = [], []
    for path in sorted(glob.glob(os.path.join(ROOT, "Schema", "*.sql"))):
        with open(path, encoding="utf-8") as file:
            for line in file.read().split("\n"):
                if lines or line.startswith(f"CREATE {kind} "):
                    lines.append(line)
                    if line.endswith(";") and not line.lstrip().startswith("--"):
                        found.append("\n".join(lines))
                        lines = []
    return found


def added_columns():
    """Returns columns added to tables later: table, column and statement."""
    found = []
    for path in sorted(glob.glob(os.path.join(ROOT, "Schema", "*.sql"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for match in re.finditer(r"^ALTER TABLE (\w+) ADD COLUMN (\w+)[^;]*", text, re.M):
            found.append((match[1], match[2], match[0]))
    return found


def with_views(take, folder):
    """Copies a take with this version's views; a table that its format lacks is empty."""
    path = os.path.join(folder, os.path.basename(take))
    shutil.copy(take, path)
    base = sqlite3.connect(path)
    names = [row[0] for row in base.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")]
    for name in names:
        base.execute(f'DROP VIEW "{name}"')
    tables = {row[0] for row in base.execute("SELECT name FROM sqlite_schema")}
    for statement in statements("TABLE"):
        if statement.split()[2] not in tables:
            base.execute(statement)
    for table, column, statement in added_columns():
        columns = {row[1] for row in base.execute(f"PRAGMA table_info({table})")}
        if column not in columns:
            base.execute(statement)
    for statement in statements("VIEW"):
        base.execute(statement)
    base.commit()
    base.close()
    return path


def cell(value):
    """Returns a value independent of its type: the scanner reads some numbers as text."""
    if value is None or isinstance(value, (bytes, bytearray, memoryview)):
        return ("bytes", bytes(value)) if value is not None else ("null", "")
    if isinstance(value, bool):
        return ("number", float(value))
    try:
        number = float(value)
    except (TypeError, ValueError):
        # DuckDB writes the non-ASCII bytes of a BLOB as \\xC3.
        return ("text", re.sub(r"[^ -~]|\\x[0-9A-F]{2}", "?", str(value)))
    # Rounded, so that a number equals the same number printed with 15 digits.
    return ("number", float(f"{number:.7g}"))


def rows(cursor):
    return sorted(tuple(cell(value) for value in row) for row in cursor.fetchall())


def same(left, right):
    if len(left) != len(right):
        return False
    for one, other in zip(left, right):
        for a, b in zip(one, other):
            if a[0] == b[0] == "number":
                if abs(a[1] - b[1]) > 2e-6 * max(1.0, abs(a[1])):
                    return False
            elif a[0] != b[0] or (a[0] == "text" and "?" not in a[1] and a[1] != b[1]):
                return False
    return True


def main():
    import_extension("sqlite_scanner")
    names = [statement.split()[2].strip('"') for statement in statements("VIEW")]
    failures = []
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for capture in CAPTURES:
            path = with_views(os.path.join(ROOT, "Captures", capture), folder)
            duck = duckdb.connect(config={
                "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
            })
            duck.execute("LOAD sqlite_scanner")
            duck.execute(f"ATTACH '{path}' AS take (TYPE sqlite, READ_ONLY)")
            lite = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            for name in names:
                columns = [row[1] for row in lite.execute(f"PRAGMA table_xinfo('{name}')")]
                wanted = ", ".join(
                    f'"{column}"' for column in columns
                    if column not in LEFT_OUT.get(name, set()))
                try:
                    left = rows(lite.execute(f'SELECT {wanted} FROM "{name}"'))
                    right = rows(duck.execute(f'SELECT {wanted} FROM take."{name}"'))
                except Exception as error:
                    # DuckDB quotes the whole query before it says what is wrong.
                    words = str(error).splitlines()[0]
                    failures.append(f"{capture}: {name}: {words[:100]} ... {words[-200:]}")
                    continue
                if not same(left, right):
                    failures.append(
                        f"{capture}: {name}: {len(left)} rows by SQLite, {len(right)} by DuckDB, "
                        "and they differ")
                compared += len(left)
            duck.close()
            lite.close()
    for failure in failures:
        print(failure)
    print(f"{len(names)} views of {len(CAPTURES)} takes, {compared} rows: {len(failures)} differ")
    return 1 if failures or len(names) < 45 or compared < 10_000 else 0


if __name__ == "__main__":
    sys.exit(main())
