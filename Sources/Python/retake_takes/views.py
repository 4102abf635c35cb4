"""This version's views over takes of any format.

A take carries the views of the version that recorded it. This package reads the take through its
own temporary views instead: the same SQL that Retake itself uses, from the same files.
"""

import functools
import os
import re
import sqlite3
import urllib.parse
from collections.abc import Collection, Iterable
from dataclasses import dataclass

APPLICATION_ID = 0x52544B45
"""The application_id of a take: "RTKE"."""
OLDEST_FORMAT = 2

_BEFORE = {("peer", "actor"): "peer"}
"""Replacements for columns missing in older takes: each peer was its own actor."""

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sql")


class NoTake(ValueError):
    """A file that cannot be read as a take; the text is one sentence that names it."""


UNREADABLE = (sqlite3.Error, UnicodeError, ArithmeticError, TypeError)
"""The exceptions that reading a damaged file raises.

SQLite quotes damaged names in its messages, which then are not always UTF-8; a damaged instant is
outside the calendar, and a damaged number may be text.
"""


def invalid(path: str, error: Exception) -> NoTake:
    """Returns the error for a damaged file."""
    text = " ".join(str(error).split())
    reason = "a text in it is not UTF-8" if isinstance(error, UnicodeError) else text
    return NoTake(f"{path}: it is not a valid take: {reason}")


@dataclass(frozen=True)
class Schema:
    """The tables and views that the schema's files define."""

    tables: dict[str, str]
    """Each table's CREATE statement."""
    views: dict[str, str]
    """Each view's CREATE statement, in order."""
    columns: dict[str, tuple[str, ...]]
    """The column names of each table and view."""


@functools.cache
def schema() -> Schema:
    """Returns this version's schema."""
    statements: list[str] = []
    if not os.path.isdir(_FOLDER):
        raise RuntimeError(
            f"{_FOLDER}: the schema is missing; it is a link into Retake's repository, so install "
            "this package from a complete copy of that")
    for name in sorted(os.listdir(_FOLDER)):
        if not name.endswith(".sql"):
            continue
        lines: list[str] = []
        with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
            for line in file.read().split("\n"):
                if lines or re.match(r"(CREATE (TABLE|VIEW)|ALTER TABLE) ", line):
                    lines.append(line)
                    code = line.split("--")[0].rstrip()
                    if code.endswith(";"):
                        statements.append("\n".join(lines))
                        lines = []
    base = sqlite3.connect(":memory:")
    tables: dict[str, str] = {}
    views: dict[str, str] = {}
    for statement in statements:
        base.execute(statement)
        words = statement.split()
        if words[0] == "CREATE":
            (tables if words[1] == "TABLE" else views)[words[2].strip('"')] = statement
    columns = {
        name: tuple(row[1] for row in base.execute(f"PRAGMA table_xinfo({quoted(name)})"))
        for name in [*tables, *views]
    }
    base.close()
    return Schema(tables, views, columns)


def quoted(name: str) -> str:
    """Quotes a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def connect(path: str = "", kept: Collection[str] = ()) -> sqlite3.Connection:
    """Opens a database in memory, or a file to write, with this version's views.

    Those in `kept` can be read only after `Attachment.keep`.
    """
    place = "file:" + urllib.parse.quote(os.path.abspath(path)) if path else "file::memory:"
    base = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False)
    base.execute("PRAGMA trusted_schema = OFF")
    for name, statement in schema().views.items():
        query = statement.partition(" AS\n")[2]
        place = _hidden(name) if name in kept else quoted(name)
        base.execute(f"CREATE TEMP VIEW {place} AS\n{query}")
    return base


def _hidden(name: str) -> str:
    """Returns the quoted name of a view that leaves its own name to the table of its rows."""
    return quoted(f"{name} of the take")


class Attachment:
    """A take attached to a database from `connect`, which reads it through its own views.

    Tables and columns that the take's format lacks are empty. Use it with `with`.
    """

    def __init__(self, base: sqlite3.Connection, path: str) -> None:
        self.base = base
        self.path = path
        self._made: list[str] = []
        if not os.path.isfile(path):
            raise NoTake(f"{path}: there is no such file")
        place = "file:" + urllib.parse.quote(os.path.abspath(path)) + "?mode=ro"
        try:
            base.execute("ATTACH ? AS source", (place,))
        except UNREADABLE as error:
            raise invalid(path, error) from None
        try:
            self._check()
            self._fill()
        except NoTake:
            self.close()
            raise
        except UNREADABLE as error:
            self.close()
            raise invalid(path, error) from None

    def _check(self) -> None:
        mark = self.base.execute("PRAGMA source.application_id").fetchone()[0]
        if mark != APPLICATION_ID:
            raise NoTake(f"{self.path}: it is not a take; retake import makes takes from captures")
        format = self.base.execute("PRAGMA source.user_version").fetchone()[0]
        if format < OLDEST_FORMAT:
            raise NoTake(f"{self.path}: it has format {format}; retake upgrade recreates it")

    def _fill(self) -> None:
        known = schema()
        present: dict[str, set[str]] = {}
        marks = ", ".join("?" * len(known.tables))
        # One query for all tables takes half as long as one query per table.
        for name, column in self.base.execute(
            "SELECT made.name, part.name FROM source.sqlite_schema AS made, "
            "pragma_table_xinfo(made.name, 'source') AS part "
            f"WHERE made.type = 'table' AND made.name IN ({marks})", list(known.tables)
        ):
            present.setdefault(name, set()).add(column)
        for name, statement in known.tables.items():
            if name not in present:
                self.base.execute(statement.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
                self._made.append(f"DROP TABLE temp.{quoted(name)}")
                continue
            missing = [column for column in known.columns[name] if column not in present[name]]
            if missing:
                nothing = ", ".join(
                    f"{_BEFORE.get((name, column), 'NULL')} AS {quoted(column)}"
                    for column in missing)
                self.base.execute(
                    f"CREATE TEMP VIEW {quoted(name)} AS "
                    f"SELECT *, {nothing} FROM source.{quoted(name)}")
                self._made.append(f"DROP VIEW temp.{quoted(name)}")

    def keep(self, names: Iterable[str]) -> None:
        """Computes views once each, into tables that other views then read in their place.

        They must be those named to `connect`, each after those that it reads itself.
        """
        for name in names:
            self.base.execute(
                f"CREATE TEMP TABLE {quoted(name)} AS SELECT * FROM {_hidden(name)}")
            self._made.append(f"DROP TABLE temp.{quoted(name)}")

    def close(self) -> None:
        """Detaches the take."""
        # An open transaction would keep the file attached, and no other file could be attached.
        if self.base.in_transaction:
            self.base.execute("ROLLBACK")
        failure: Exception | None = None
        for statement in [*self._made, "DETACH source"]:
            try:
                self.base.execute(statement)
            except UNREADABLE as error:
                failure = failure or error
        self._made = []
        if failure:
            raise invalid(self.path, failure) from None

    def __enter__(self) -> "Attachment":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def identity(base: sqlite3.Connection) -> str:
    """Returns the attached take's id: the digest over the whole recording, in hexadecimal.

    Two files have the same id if they contain the same recording.
    """
    row = base.execute(
        "SELECT digest FROM ending UNION ALL "
        "SELECT digest FROM (SELECT digest FROM tape ORDER BY first_step DESC LIMIT 1) "
        "UNION ALL SELECT digest FROM take LIMIT 1").fetchone()
    if row is None or not isinstance(row[0], bytes):
        raise NoTake("it has no digest, so nothing says which recording it is")
    return row[0].hex()[:32]
