"""Published tables in PostgreSQL, loaded by COPY into the schema `retake`."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..views import quoted
from .publishing import Change, Held, Rows, Staged
from .storage import FleetError, without_passwords
from .tables import SOURCE_FILE, TABLES, VERSION, Table, wanted_columns

_TYPES = {"BIGINT": "bigint", "DOUBLE": "double precision", "VARCHAR": "text", "DATE": "date"}
_LOCK = 0x52544B45


def connect(address: str) -> Any:
    """Connects to a database, or raises an error with one sentence that says why it cannot."""
    try:
        import psycopg
    except ImportError:
        raise FleetError(
            "PostgreSQL needs psycopg: pip install 'retake-takes[fleet]'") from None
    with postgres_errors(address):
        return psycopg.connect(address, autocommit=True, connect_timeout=10)


@contextmanager
def postgres_errors(address: str) -> Iterator[None]:
    """Turns PostgreSQL's errors into one sentence, which does not repeat the password."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise FleetError(f"{without_passwords(address)}: {text}") from None


@contextmanager
def postgres_lock(address: str) -> Iterator[None]:
    """Makes other writers of a lake wait, if its catalogue is in a database."""
    base = connect(address)
    try:
        base.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        yield
    finally:
        base.close()


def ask(address: str, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Runs a query, which cannot write, over published tables; returns its columns and rows."""
    base = connect(address)
    try:
        with postgres_errors(address):
            base.execute("SET default_transaction_read_only = on")
            base.execute("SET search_path = retake")
            cursor = base.execute(query)
            if cursor.description is None:
                raise FleetError(f"{query!r}: it is not a query that returns rows")
            return [column.name for column in cursor.description], cursor.fetchall()
    finally:
        base.close()


class Postgres:
    """A database in which takes are published."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.base = connect(address)
        with postgres_errors(address), self.base.transaction():
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
                f"the schema retake has version {version} of the tables, but this package writes "
                f"{VERSION}; install a newer retake-takes")
        before = self.columns("take")
        is_altered = False
        for table in TABLES:
            present = self.columns(table.name)
            wanted = wanted_columns(table)
            if not present:
                is_altered = True
                words = ", ".join(f"{quoted(name)} {_TYPES[kind]}" for name, kind in wanted)
                self.base.execute(f"CREATE TABLE retake.{quoted(table.name)} ({words})")
                self.base.execute(f"CREATE INDEX ON retake.{quoted(table.name)} (take)")
                self.base.execute(f"CREATE INDEX ON retake.{quoted(table.name)} (day)")
            for name, kind in wanted:
                if present and name not in present:
                    is_altered = True
                    self.base.execute(
                        f"ALTER TABLE retake.{quoted(table.name)} "
                        f"ADD COLUMN {quoted(name)} {_TYPES[kind]}")
        if before and is_altered:
            # The additions are empty for takes published earlier, so these are published again.
            self.base.execute("UPDATE retake.take SET tables_version = 0")
        if not self.columns("source_file"):
            words = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in SOURCE_FILE)
            self.base.execute(f"CREATE TABLE retake.source_file ({words}, PRIMARY KEY (source))")
            self.base.execute(
                "INSERT INTO retake.source_file SELECT source, stamp, take FROM retake.take")
        if (version or 0) < VERSION:
            self.base.execute("INSERT INTO retake.lake_version VALUES (%s)", (VERSION,))

    def held(self) -> Held:
        """Returns the files that were seen, and the takes that are published."""
        sources = self.base.execute(
            "SELECT source, stamp, take FROM retake.source_file").fetchall()
        takes = self.base.execute(
            "SELECT take, source, stamp, coalesce(tables_version, 0), coalesce(has_packets, 0) "
            "FROM retake.take").fetchall()
        return Held(
            {row[0]: (row[1], row[2]) for row in sources},
            {row[0]: Rows(row[1], row[2], row[3], bool(row[4])) for row in takes})

    def append(self, path: str) -> Change:
        """Publishes the takes in a staging file in one transaction; returns what that changed."""
        reading = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            with postgres_errors(self.address), self.base.transaction():
                self._lock()
                rows = reading.execute(
                    "SELECT take, has_packets, tags FROM published_take ORDER BY take").fetchall()
                seen = reading.execute("SELECT source, stamp, take FROM published_source_file")
                change = self.held().change(
                    [Staged(row[0], bool(row[1])) for row in rows], seen.fetchall())
                new = set(change.insert)
                keys = sorted({key for row in rows if row[0] in new for key in json.loads(row[2])})
                self._apply(change)
                self._load(reading, new, keys)
                return change
        finally:
            reading.close()

    def forget(self, names: Sequence[str]) -> Change:
        """Drops files that no longer exist, and the takes that only they contained."""
        with postgres_errors(self.address), self.base.transaction():
            self._lock()
            change = self.held().change(forgotten=names)
            self._apply(change)
            return change

    def _apply(self, change: Change) -> None:
        if change.delete:
            for table in TABLES:
                self.base.execute(
                    f"DELETE FROM retake.{quoted(table.name)} WHERE take = ANY(%s)",
                    (change.delete,))
        for take, source, stamp in change.moved:
            self.base.execute(
                "UPDATE retake.take SET source = %s, stamp = %s WHERE take = %s",
                (source, stamp, take))
        unseen = [*change.forgotten, *(one[0] for one in change.seen)]
        if unseen:
            self.base.execute("DELETE FROM retake.source_file WHERE source = ANY(%s)", (unseen,))
        if change.seen:
            with self.base.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO retake.source_file VALUES (%s, %s, %s)", change.seen)

    def _load(self, reading: sqlite3.Connection, new: set[str], keys: Sequence[str]) -> None:
        if not new:
            return
        there = self.columns("take")
        for key in keys:
            if f"tag_{key}" not in there:
                self.base.execute(f"ALTER TABLE retake.take ADD COLUMN tag_{key} text")
        made = {
            row[0] for row in
            reading.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }
        for table in TABLES:
            if f"published_{table.name}" in made:
                self._copy(reading, table, new, keys)

    def _copy(
        self, reading: sqlite3.Connection, table: Table, new: set[str], keys: Sequence[str]
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
