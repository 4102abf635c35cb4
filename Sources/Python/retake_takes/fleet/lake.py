"""A lake: tables of many takes as Parquet, partitioned by day, in DuckLake's format.

DuckDB reads and writes it. The lake's catalogue is an SQLite file for a single writer, or a
PostgreSQL database for many.
"""

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..views import quoted
from .storage import FleetError, split_s3
from .tables import TABLES, VERSION, Table, of_name

_TAKE_FRONT = (("source", "VARCHAR"), ("stamp", "VARCHAR"), ("tags", "VARCHAR"))


def database() -> Any:
    """Returns DuckDB with this package's extensions, none of which is downloaded."""
    try:
        import duckdb
        from duckdb_extensions import import_extension
    except ImportError:
        raise FleetError(
            "publishing needs DuckDB: pip install 'retake-takes[fleet]'") from None
    for name in ("sqlite_scanner", "ducklake", "httpfs", "postgres_scanner"):
        import_extension(name)
    duck = duckdb.connect(config={
        "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
    })
    for name in ("sqlite_scanner", "ducklake", "httpfs"):
        duck.execute(f"LOAD {name}")
    return duck


def literal(text: str) -> str:
    """Quotes text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def allow_s3(duck: Any, bucket: str) -> None:
    """Lets DuckDB read and write a bucket, with credentials from the usual variables."""
    settings = {"TYPE": "s3", "SCOPE": literal(f"s3://{bucket}")}
    for name, variable in (
        ("KEY_ID", "AWS_ACCESS_KEY_ID"), ("SECRET", "AWS_SECRET_ACCESS_KEY"),
        ("SESSION_TOKEN", "AWS_SESSION_TOKEN"),
    ):
        if os.environ.get(variable):
            settings[name] = literal(os.environ[variable])
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    settings["REGION"] = literal(region)
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        settings["ENDPOINT"] = literal(host.rstrip("/"))
        settings["USE_SSL"] = "false" if scheme == "http" else "true"
        settings["URL_STYLE"] = "'path'"
    words = ", ".join(f"{name} {value}" for name, value in settings.items())
    duck.execute(f"CREATE OR REPLACE SECRET retake_s3 ({words})")


class Lake:
    """A lake's tables, for one writer or reader at a time."""

    def __init__(self, place: str, catalogue: str | None = None, *, create: bool = False) -> None:
        self.place = place.rstrip("/")
        self._lock = ""
        self.duck = database()
        if self.place.startswith("s3://"):
            allow_s3(self.duck, split_s3(self.place)[0])
            if catalogue is None:
                raise FleetError(
                    f"{place}: name the catalogue of the lake with --catalogue FILE or "
                    "--catalogue postgresql://..., because S3 holds no database")
            data = self.place + "/"
        else:
            self.place = os.path.abspath(self.place)
            data = os.path.join(self.place, "data") + "/"
            catalogue = catalogue or os.path.join(self.place, "catalogue.sqlite")
            if create:
                os.makedirs(data, exist_ok=True)
        if catalogue.startswith(("postgres://", "postgresql://")):
            self.duck.execute("LOAD postgres_scanner")
            address = f"ducklake:postgres:{catalogue}"
        else:
            catalogue = os.path.abspath(catalogue)
            if not create and not os.path.isfile(catalogue):
                raise FleetError(f"{place}: there is no lake; retake-fleet publish makes one")
            self._lock = catalogue + ".lock"
            address = f"ducklake:sqlite:{catalogue}"
        self.duck.execute(
            f"ATTACH {literal(address)} AS lake (DATA_PATH {literal(data)}, "
            "DATA_INLINING_ROW_LIMIT 0)")
        if create:
            with self._alone():
                self._migrate()

    def close(self) -> None:
        """Closes the lake."""
        self.duck.close()

    def __enter__(self) -> "Lake":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Makes other writers wait, so that two that publish the same take leave only one copy."""
        if not self._lock:
            # For a catalogue in PostgreSQL, the database holds the lock until the transaction ends.
            yield
            return
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    # Tables

    def columns(self, name: str) -> list[str]:
        """Returns a table's columns; empty if there is no such table."""
        rows = self.duck.execute(
            "SELECT column_name FROM duckdb_columns() WHERE database_name = 'lake' "
            "AND table_name = ? ORDER BY column_index", [name]).fetchall()
        return [row[0] for row in rows]

    @property
    def version(self) -> int:
        """The tables' version; 0 for an empty lake."""
        if not self.columns("lake_version"):
            return 0
        return self.duck.execute("SELECT max(version) FROM lake.lake_version").fetchone()[0] or 0

    def _migrate(self) -> None:
        """Creates the tables, or adds whatever this version has and the lake lacks."""
        version = self.version
        if version > VERSION:
            raise FleetError(
                f"{self.place}: it has version {version} of the tables, and this package writes "
                f"{VERSION}; install a newer retake-takes")
        self.duck.execute("BEGIN")
        try:
            for table in TABLES:
                wanted = wanted_columns(table)
                present = self.columns(table.name)
                if not present:
                    words = ", ".join(f"{quoted(name)} {kind}" for name, kind in wanted)
                    self.duck.execute(f"CREATE TABLE lake.{quoted(table.name)} ({words})")
                    self.duck.execute(
                        f"ALTER TABLE lake.{quoted(table.name)} SET PARTITIONED BY (day)")
                    continue
                for name, kind in wanted:
                    if name not in present:
                        self.duck.execute(
                            f"ALTER TABLE lake.{quoted(table.name)} "
                            f"ADD COLUMN {quoted(name)} {kind}")
            if version < VERSION:
                self.duck.execute("CREATE TABLE IF NOT EXISTS lake.lake_version (version BIGINT)")
                self.duck.execute(f"INSERT INTO lake.lake_version VALUES ({VERSION})")
            self.duck.execute("COMMIT")
        except Exception:
            self.duck.execute("ROLLBACK")
            raise

    # Publishing

    def known(self) -> tuple[dict[str, str], dict[str, str]]:
        """Returns published sources' stamps, and the sources by their takes' ids."""
        rows = self.duck.execute("SELECT source, stamp, take FROM lake.take").fetchall()
        return {row[0]: row[1] for row in rows}, {row[2]: row[0] for row in rows}

    def append(self, paths: Sequence[str]) -> int:
        """Adds the takes in staging files in one transaction; returns how many are new.

        A take that is already published stays as it is; a take whose source now contains another
        recording is replaced.
        """
        if not paths:
            return 0
        made = [_tables(path) for path in paths]
        for number, path in enumerate(paths):
            self.duck.execute(
                f"ATTACH {literal(path)} AS read{number} (TYPE sqlite, READ_ONLY)")
        try:
            with self._alone():
                return self._append(made)
        finally:
            for number in range(len(paths)):
                self.duck.execute(f"DETACH read{number}")

    def _append(self, made: Sequence[set[str]]) -> int:
        count = len(made)
        union = " UNION ALL ".join(
            f"SELECT take, source, tags, {number} AS file FROM read{number}.published_take"
            for number in range(count))
        rows = self.duck.execute(f"SELECT take, source, tags, file FROM ({union})").fetchall()
        _, present = self.known()
        first: dict[str, tuple[str, int]] = {}
        for take, source, _, file in sorted(rows):
            if take not in present:
                first.setdefault(take, (source, file))
        if not first:
            return 0
        sources = {source for source, _ in first.values()}
        outdated = [take for take, source in present.items() if source in sources]
        keys = sorted({key for row in rows if row[0] in first for key in json.loads(row[2])})
        self.duck.execute("CREATE OR REPLACE TEMP TABLE chosen (take VARCHAR, file BIGINT)")
        self.duck.executemany(
            "INSERT INTO chosen VALUES (?, ?)",
            [[take, file] for take, (_, file) in sorted(first.items())])
        self.duck.execute("BEGIN")
        try:
            there = set(self.columns("take"))
            for key in keys:
                if f"tag_{key}" not in there:
                    self.duck.execute(f"ALTER TABLE lake.take ADD COLUMN tag_{key} VARCHAR")
            for table in TABLES:
                if outdated:
                    marks = ", ".join(map(literal, outdated))
                    self.duck.execute(
                        f"DELETE FROM lake.{quoted(table.name)} WHERE take IN ({marks})")
                self._insert(table, made, keys)
            self.duck.execute("COMMIT")
        except Exception:
            self.duck.execute("ROLLBACK")
            raise
        return len(first)

    def _insert(self, table: Table, made: Sequence[set[str]], keys: Sequence[str]) -> None:
        names = [name for name, _ in wanted_columns(table)]
        columns = ", ".join(
            "CAST(day AS DATE) AS day" if name == "day" else quoted(name) for name in names)
        if table.name == "take":
            for key in keys:
                columns += f", json_extract_string(tags, '$.{key}') AS tag_{key}"
        parts = []
        for number, names_there in enumerate(made):
            if f"published_{table.name}" in names_there:
                parts.append(
                    f"SELECT {columns} FROM read{number}.published_{table.name} AS row "
                    f"WHERE take IN (SELECT take FROM chosen WHERE file = {number})")
        if parts:
            self.duck.execute(
                f"INSERT INTO lake.{quoted(table.name)} BY NAME "
                f"SELECT * FROM ({' UNION ALL '.join(parts)}) ORDER BY day, take")

    def compact(self) -> None:
        """Merges the small files left by many runs, and removes files that no snapshot needs."""
        with self._alone():
            self.duck.execute("CALL ducklake_merge_adjacent_files('lake')")
            self.duck.execute("CALL ducklake_expire_snapshots('lake', older_than => now())")
            self.duck.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")

    # Queries

    def ask(self) -> Any:
        """The DuckDB connection, in which every table can be named as in a take."""
        self.duck.execute("USE lake")
        return self.duck

    def one(self, take: str) -> Any:
        """Returns a connection with one take's rows only, so that queries answer as on that take.

        `take` is the take's id.
        """
        self.duck.execute("USE memory")
        for table in TABLES:
            front = "take, day" + (", source, stamp, tags" if table.name == "take" else "")
            self.duck.execute(
                f"CREATE OR REPLACE TEMP VIEW {quoted(table.name)} AS SELECT * EXCLUDE ({front}) "
                f"FROM lake.{quoted(table.name)} WHERE take = {literal(take)}")
        return self.duck


def _tables(path: str) -> set[str]:
    """Returns a staging file's tables that have rows."""
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        names = [
            row[0] for row in
            base.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return {
            name for name in names
            if base.execute(f"SELECT 1 FROM {quoted(name)} LIMIT 1").fetchone()
        }
    finally:
        base.close()


def wanted_columns(table: Table) -> list[tuple[str, str]]:
    """Returns all columns of a published table, with their types."""
    front = [("take", "VARCHAR"), ("day", "DATE")]
    if table.name == "take":
        front += _TAKE_FRONT
    return [*front, *table.columns]


def is_published(name: str) -> bool:
    """Returns whether a lake has a table with this name."""
    return of_name(name) is not None
