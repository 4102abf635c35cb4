"""A lake: tables of many takes as Parquet, partitioned by day, in DuckLake's format.

DuckDB reads and writes it. The lake's catalogue is an SQLite file for a single writer, or a
PostgreSQL database for many.
"""

import fcntl
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

from ..views import quoted
from .postgres import postgres_lock
from .publishing import Change, Held, Rows, Staged
from .storage import FleetError, place_of, split_s3
from .tables import SOURCE_FILE, TABLES, TAKE_FRONT, VERSION, Table, wanted_columns

_TRIES = 5
"""How many times a transaction is tried if it conflicts with another writer's."""


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


@contextmanager
def duck_errors(what: str) -> Iterator[None]:
    """Turns DuckDB's errors into one sentence, and an interrupted query into KeyboardInterrupt."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        # The rest of the message repeats the query, with a caret below it.
        text = str(error).split("\nLINE ")[0]
        raise FleetError(f"{what}: " + " ".join(text.split())) from None
    except RuntimeError as error:
        if "interrupted" in str(error) and not isinstance(error, FleetError):
            raise KeyboardInterrupt from None
        raise


def interruptible(duck: Any, query: str) -> Any:
    """Runs a query in a thread, because DuckDB looks for Ctrl-C only between a query's steps."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(duck.execute, query)
        try:
            return future.result()
        except KeyboardInterrupt:
            duck.interrupt()
            raise


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
    """A lake's tables: writable by one process at a time with `create`, otherwise read-only."""

    def __init__(self, place: str, catalogue: str | None = None, *, create: bool = False) -> None:
        kind, self.place = place_of(place, "a lake", ("folder", "s3"))
        self._lock = self._server = ""
        self.duck = database()
        if kind == "s3":
            self.place = self.place.rstrip("/")
            if catalogue is None:
                raise FleetError(
                    f"{place}: name the lake's catalogue with --catalogue FILE or "
                    "--catalogue postgresql://..., because S3 cannot hold a database")
            allow_s3(self.duck, split_s3(self.place)[0])
            data = self.place + "/"
        else:
            self.place = os.path.abspath(self.place)
            data = os.path.join(self.place, "data") + "/"
            catalogue = catalogue or os.path.join(self.place, "catalogue.sqlite")
        kind, catalogue = place_of(catalogue, "a catalogue", ("folder", "postgresql"))
        if kind == "postgresql":
            self._server = catalogue
            self.duck.execute("LOAD postgres_scanner")
            address = f"ducklake:postgres:{catalogue}"
        else:
            catalogue = os.path.abspath(catalogue)
            if not create and not os.path.isfile(catalogue):
                raise FleetError(f"{place}: there is no lake; create one with retake-fleet publish")
            if os.path.isdir(catalogue):
                raise FleetError(f"{catalogue}: it is a folder, not a lake's catalogue")
            self._lock = catalogue + ".lock"
            address = f"ducklake:sqlite:{catalogue}"
        if create and not data.startswith("s3://"):
            os.makedirs(data, exist_ok=True)
        with self._alone() if create else nullcontext():
            self._attach(place, address, data, create)

    def _attach(self, place: str, address: str, data: str, create: bool) -> None:
        with duck_errors(f"{place}: its catalogue cannot be used"):
            # The catalogue stores the files' path at its creation, perhaps on another machine.
            self.duck.execute(
                f"ATTACH {literal(address)} AS lake (DATA_PATH {literal(data)}, "
                "OVERRIDE_DATA_PATH true, DATA_INLINING_ROW_LIMIT 0"
                f"{'' if create else ', READ_ONLY'})")
        if self.columns("take"):
            with duck_errors(f"{place}: its catalogue lists files that do not exist"):
                self.duck.execute("SELECT take FROM lake.take LIMIT 1").fetchall()
        if create:
            with duck_errors(place):
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
        if self._server:
            with postgres_lock(self._server):
                yield
            return
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.duck.execute("BEGIN")
        try:
            yield
            self.duck.execute("COMMIT")
        except BaseException:
            try:
                self.duck.execute("ROLLBACK")
            except Exception:
                # A commit that failed has ended the transaction.
                pass
            raise

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
                f"{self.place}: it has version {version} of the tables, but this package writes "
                f"{VERSION}; install a newer retake-takes")
        with self._transaction():
            before = self.columns("take")
            is_altered = False
            for table in TABLES:
                wanted = wanted_columns(table)
                present = self.columns(table.name)
                if not present:
                    is_altered = True
                    words = ", ".join(f"{quoted(name)} {kind}" for name, kind in wanted)
                    self.duck.execute(f"CREATE TABLE lake.{quoted(table.name)} ({words})")
                    self.duck.execute(
                        f"ALTER TABLE lake.{quoted(table.name)} SET PARTITIONED BY (day)")
                    continue
                for name, kind in wanted:
                    if name not in present:
                        is_altered = True
                        self.duck.execute(
                            f"ALTER TABLE lake.{quoted(table.name)} "
                            f"ADD COLUMN {quoted(name)} {kind}")
            if before and is_altered:
                # The additions are empty for takes published earlier, so these are published again.
                self.duck.execute("UPDATE lake.take SET tables_version = 0")
            if not self.columns("source_file"):
                words = ", ".join(f"{name} {kind}" for name, kind in SOURCE_FILE)
                self.duck.execute(f"CREATE TABLE lake.source_file ({words})")
                if before:
                    self.duck.execute(
                        "INSERT INTO lake.source_file SELECT source, stamp, take FROM lake.take")
            if version < VERSION:
                self.duck.execute("CREATE TABLE IF NOT EXISTS lake.lake_version (version BIGINT)")
                self.duck.execute(f"INSERT INTO lake.lake_version VALUES ({VERSION})")

    # Publishing

    def held(self) -> Held:
        """Returns the files that were seen, and the takes that are published."""
        sources = self.duck.execute("SELECT source, stamp, take FROM lake.source_file").fetchall()
        takes = self.duck.execute(
            "SELECT take, source, stamp, coalesce(tables_version, 0), coalesce(has_packets, 0) "
            "FROM lake.take").fetchall()
        return Held(
            {row[0]: (row[1], row[2]) for row in sources},
            {row[0]: Rows(row[1], row[2], row[3], bool(row[4])) for row in takes})

    def append(self, path: str) -> Change:
        """Publishes the takes in a staging file in one transaction; returns what that changed.

        Completely published takes stay as they are; takes that no file contains any more are
        removed.
        """
        made = staging_tables(path)
        with duck_errors(self.place):
            self.duck.execute(f"ATTACH {literal(path)} AS read (TYPE sqlite, READ_ONLY)")
            try:
                return self._write(lambda: self._append(made))
            finally:
                self.duck.execute("DETACH read")

    def forget(self, names: Sequence[str]) -> Change:
        """Drops files that no longer exist, and the takes that only they contained."""
        def write() -> Change:
            change = self.held().change(forgotten=names)
            self._apply(change, frozenset(), ())
            return change

        with duck_errors(self.place):
            return self._write(write)

    def _write(self, write: Callable[[], Change]) -> Change:
        import duckdb

        with self._alone():
            for attempt in range(_TRIES):
                try:
                    return write()
                except duckdb.TransactionException:
                    # Another program is writing to this lake without this package's lock.
                    if attempt == _TRIES - 1:
                        raise
        raise AssertionError

    def _append(self, made: frozenset[str]) -> Change:
        staged = self.duck.execute("SELECT take, has_packets FROM read.published_take").fetchall()
        seen = self.duck.execute(
            "SELECT source, stamp, take FROM read.published_source_file").fetchall()
        change = self.held().change([Staged(row[0], bool(row[1])) for row in sorted(staged)], seen)
        self._load("chosen", change.insert)
        tags = self.duck.execute(
            "SELECT DISTINCT tags FROM read.published_take WHERE take IN (SELECT name FROM chosen)"
        ).fetchall()
        self._apply(change, made, sorted({key for row in tags for key in json.loads(row[0])}))
        return change

    def _load(self, table: str, names: Sequence[str]) -> None:
        self.duck.execute(f"CREATE OR REPLACE TEMP TABLE {table} (name VARCHAR)")
        if names:
            self.duck.execute(f"INSERT INTO {table} SELECT unnest(?)", [list(names)])

    def _apply(self, change: Change, made: frozenset[str], keys: Sequence[str]) -> None:
        if change.is_empty:
            return
        self._load("deleted", change.delete)
        self._load("unseen", [*change.forgotten, *(one[0] for one in change.seen)])
        with self._transaction():
            there = set(self.columns("take"))
            for key in keys:
                if f"tag_{key}" not in there:
                    self.duck.execute(f"ALTER TABLE lake.take ADD COLUMN tag_{key} VARCHAR")
            for table in TABLES:
                if change.delete:
                    self.duck.execute(
                        f"DELETE FROM lake.{quoted(table.name)} "
                        "WHERE take IN (SELECT name FROM deleted)")
                if f"published_{table.name}" in made:
                    self._insert(table, keys)
            for take, source, stamp in change.moved:
                self.duck.execute(
                    "UPDATE lake.take SET source = ?, stamp = ? WHERE take = ?",
                    [source, stamp, take])
            self.duck.execute(
                "DELETE FROM lake.source_file WHERE source IN (SELECT name FROM unseen)")
            if change.seen:
                columns = [list(column) for column in zip(*change.seen)]
                self.duck.execute(
                    "INSERT INTO lake.source_file SELECT unnest(?), unnest(?), unnest(?)", columns)

    def _insert(self, table: Table, keys: Sequence[str]) -> None:
        columns = ", ".join(
            "CAST(day AS DATE) AS day" if name == "day" else quoted(name)
            for name, _ in wanted_columns(table))
        if table.name == "take":
            for key in keys:
                columns += f", json_extract_string(tags, '$.{key}') AS tag_{key}"
        self.duck.execute(
            f"INSERT INTO lake.{quoted(table.name)} BY NAME "
            f"SELECT {columns} FROM read.published_{table.name} AS row "
            "WHERE take IN (SELECT name FROM chosen) ORDER BY day, take")

    def compact(self) -> None:
        """Merges the small files left by many runs, and removes files that no snapshot needs."""
        with duck_errors(self.place), self._alone():
            self.duck.execute("CALL ducklake_merge_adjacent_files('lake')")
            self.duck.execute("CALL ducklake_expire_snapshots('lake', older_than => now())")
            self.duck.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")

    # Queries

    def ask(self) -> Any:
        """The DuckDB connection, in which every table can be named as in a take."""
        self.duck.execute("USE lake")
        return self.duck

    def one(self, take: str) -> Any:
        """Returns a connection with one take's rows only, for queries written for a take.

        `take` is the take's id.
        """
        self.duck.execute("USE memory")
        for table in TABLES:
            # A lake that an older version wrote lacks some tables and columns.
            present = self.columns(table.name)
            if not present:
                continue
            more = [name for name, _ in TAKE_FRONT if name in present]
            front = ", ".join(["take", "day", *(more if table.name == "take" else [])])
            self.duck.execute(
                f"CREATE OR REPLACE TEMP VIEW {quoted(table.name)} AS SELECT * EXCLUDE ({front}) "
                f"FROM lake.{quoted(table.name)} WHERE take = {literal(take)}")
        return self.duck


def staging_tables(path: str) -> frozenset[str]:
    """Returns a staging file's tables that have rows."""
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        names = [
            row[0] for row in
            base.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return frozenset(
            name for name in names
            if base.execute(f"SELECT 1 FROM {quoted(name)} LIMIT 1").fetchone())
    finally:
        base.close()
