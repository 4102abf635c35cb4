"""Published tables in PostgreSQL, loaded by COPY into the schema `retake`."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from ..views import quoted
from .lake import wanted_columns
from .storage import FleetError
from .tables import TABLES, VERSION, Table

_TYPES = {"BIGINT": "bigint", "DOUBLE": "double precision", "VARCHAR": "text", "DATE": "date"}
_LOCK = 0x52544B45


class Postgres:
    """A database in which takes are published."""

    def __init__(self, address: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise FleetError(
                "PostgreSQL needs psycopg: pip install 'retake-takes[fleet]'") from None
        try:
            self.base: Any = psycopg.connect(address, autocommit=True)
        except psycopg.OperationalError as error:
            raise FleetError(f"{address.split('@')[-1]}: {str(error).splitlines()[0]}") from None
        with self.base.transaction():
            self._lock()
            self._migrate()

    def close(self) -> None:
        """Closes the connection."""
        self.base.close()

    def __enter__(self) -> "Postgres":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lock(self) -> None:
        self.base.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))

    def columns(self, name: str) -> list[str]:
        """Returns a table's columns; empty if there is no such table."""
        rows = self.base.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'retake' "
            "AND table_name = %s ORDER BY ordinal_position", (name,)).fetchall()
        return [row[0] for row in rows]

    def _migrate(self) -> None:
        self.base.execute("CREATE SCHEMA IF NOT EXISTS retake")
        self.base.execute("CREATE TABLE IF NOT EXISTS retake.lake_version (version bigint)")
        version = self.base.execute("SELECT max(version) FROM retake.lake_version").fetchone()[0]
        if (version or 0) > VERSION:
            raise FleetError(
                f"the schema retake has version {version} of the tables, and this package writes "
                f"{VERSION}; install a newer retake-takes")
        for table in TABLES:
            present = self.columns(table.name)
            wanted = wanted_columns(table)
            if not present:
                words = ", ".join(f"{quoted(name)} {_TYPES[kind]}" for name, kind in wanted)
                self.base.execute(f"CREATE TABLE retake.{quoted(table.name)} ({words})")
                self.base.execute(f"CREATE INDEX ON retake.{quoted(table.name)} (take)")
                self.base.execute(f"CREATE INDEX ON retake.{quoted(table.name)} (day)")
            for name, kind in wanted:
                if present and name not in present:
                    self.base.execute(
                        f"ALTER TABLE retake.{quoted(table.name)} "
                        f"ADD COLUMN {quoted(name)} {_TYPES[kind]}")
        if (version or 0) < VERSION:
            self.base.execute("INSERT INTO retake.lake_version VALUES (%s)", (VERSION,))

    def known(self) -> tuple[dict[str, str], dict[str, str]]:
        """Returns published sources' stamps, and the sources by their takes' ids."""
        rows = self.base.execute("SELECT source, stamp, take FROM retake.take").fetchall()
        return {row[0]: row[1] for row in rows}, {row[2]: row[0] for row in rows}

    def append(self, paths: Sequence[str]) -> int:
        """Adds the takes in staging files in one transaction; returns how many are new."""
        added = 0
        with self.base.transaction():
            self._lock()
            for path in paths:
                reading = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
                try:
                    added += self._append(reading)
                finally:
                    reading.close()
        return added

    def _append(self, reading: sqlite3.Connection) -> int:
        _, present = self.known()
        rows = reading.execute("SELECT take, source, tags FROM published_take").fetchall()
        new = {take: source for take, source, _ in rows if take not in present}
        if not new:
            return 0
        sources = set(new.values())
        outdated = [take for take, source in present.items() if source in sources]
        keys = sorted({key for take, _, tags in rows if take in new for key in json.loads(tags)})
        there = self.columns("take")
        for key in keys:
            if f"tag_{key}" not in there:
                self.base.execute(f"ALTER TABLE retake.take ADD COLUMN tag_{key} text")
        made = {
            row[0] for row in
            reading.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }
        for table in TABLES:
            if outdated:
                self.base.execute(
                    f"DELETE FROM retake.{quoted(table.name)} WHERE take = ANY(%s)", (outdated,))
            if f"published_{table.name}" in made:
                self._copy(reading, table, new, keys)
        return len(new)

    def _copy(
        self, reading: sqlite3.Connection, table: Table, new: dict[str, str], keys: Sequence[str]
    ) -> None:
        names = [name for name, _ in wanted_columns(table)]
        columns = ", ".join(map(quoted, names))
        tags = keys if table.name == "take" else []
        target = ", ".join([columns, *(f"tag_{key}" for key in tags)])
        rows = reading.execute(f"SELECT {columns} FROM published_{table.name}")
        place = names.index("tags") if tags else 0
        with self.base.cursor() as cursor, cursor.copy(
            f"COPY retake.{quoted(table.name)} ({target}) FROM STDIN"
        ) as copy:
            for row in rows:
                if row[0] in new:
                    said = json.loads(row[place]) if tags else {}
                    # PostgreSQL does not allow NUL in text.
                    values = [
                        value.replace("\0", "\ufffd") if isinstance(value, str) else value
                        for value in row
                    ]
                    copy.write_row([*values, *(said.get(key) for key in tags)])
