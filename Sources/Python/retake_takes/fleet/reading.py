"""Reads takes into one SQLite file, in the format in which they are published.

This is one task's work: SQLite itself runs each take's views, and one call of `retake sql` for all
takes returns findings and statistics.
"""

import datetime
import json
import os
import re
import sqlite3
import subprocess
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from .. import views
from ..command import CommandError, find_program
from .farm import reason_of
from .storage import Source, local
from .tables import TABLES, TAKE_FRONT, VERSION, Table, published

KEPT = ("path_end", "rtp", "loss", "stream", "speaker", "participant_speaker")
"""Views that other published views read; each follows those that it reads itself."""
KEPT_WITH_PACKETS = (*KEPT, "loss_burst")
"""The same for takes whose packets are published too."""

_TYPES = {"BIGINT": "INTEGER", "DOUBLE": "REAL", "VARCHAR": "TEXT"}
_TAG_KEY = re.compile(r"[a-z_][a-z0-9_]{0,63}")
_MOST_TAGS = 32

Said = dict[str, dict[str, list[list[object]]]]
"""The rows that `retake sql` computed, by file and table."""

_SECRETS = re.compile(
    r'''(?ix)
    ( \\*" (?: [a-z_.]* \. )? (?: credential | password | apisecret | secret | token | pin
        | access_token | authorization ) \\*" \s* : \s* \\*" ) [^"\\]*
    | ( a=ice-pwd: ) [^\s\\"]+
    | ( inline: ) [^\s\\"|]+
    | ( bearer \s+ ) [^\s\\"]+
    ''')


def hidden(text: str | int | float | bytes | None) -> str | int | float | bytes | None:
    """Returns text without secrets: ICE passwords, SDES keys, tokens, credentials."""
    if not isinstance(text, str):
        return text
    return _SECRETS.sub(
        lambda found: next(part for part in found.groups() if part) + "(hidden)", text)


@dataclass
class Reading:
    """The takes that were read, by id, and those that could not be read, with the reasons."""

    takes: dict[str, str] = field(default_factory=dict)
    """The sources' names by their takes' ids."""
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    """All readable files, including those of takes that need not be read: name, stamp, take."""
    failures: list[tuple[str, str]] = field(default_factory=list)
    bytes: int = 0
    """The size of all takes' files."""


@dataclass(frozen=True)
class Known:
    """The takes that the target of publishing already has."""

    complete: frozenset[str] = frozenset()
    """The takes that need not be read."""
    with_packets: frozenset[str] = frozenset()
    """The takes whose packets are published, and remain published."""


def staging_columns(table: Table) -> str:
    """Returns the columns of a table in the file, for its CREATE statement."""
    columns = ["take TEXT NOT NULL", "day TEXT NOT NULL"]
    if table.name == "take":
        columns += [f"{name} {_TYPES[kind]} NOT NULL" for name, kind in TAKE_FRONT]
    columns += [f"{views.quoted(name)} {_TYPES[kind]}" for name, kind in table.columns]
    return ", ".join(columns)


def read(
    sources: Sequence[Source], path: str, *, packets: bool = False, executable: str | None = None,
    known: Known = Known(),
) -> Reading:
    """Reads takes into a new file, except those that are published completely."""
    reading = Reading()
    base = views.connect(path, kept=KEPT_WITH_PACKETS)
    try:
        base.execute("PRAGMA journal_mode = MEMORY")
        base.execute("PRAGMA synchronous = OFF")
        base.create_function("hidden", 1, hidden, deterministic=True)
        for table in TABLES:
            base.execute(f"CREATE TABLE published_{table.name} ({staging_columns(table)}) STRICT")
        base.execute("CREATE TABLE published_source_file (source TEXT, stamp TEXT, take TEXT)")
        with local(sources) as (folder, paths):
            drafts: list[_Draft] = []
            for source, place in zip(sources, paths):
                draft = _draft(base, source, place, packets, known, reading.takes)
                if draft.front:
                    reading.takes[draft.id] = source.name
                elif not draft.failure:
                    reading.seen.append((source.name, source.stamp, draft.id))
                    os.unlink(place)
                    continue
                drafts.append(draft)
            said, reasons = _catalogue(
                folder, [table for table in TABLES if table.of_catalogue], executable,
            ) if drafts else ({}, {})
        base.execute("BEGIN")
        _add_computed(base, reading, drafts, said, reasons)
        # Copies of an unreadable take are left out, so that the next run reads them.
        reading.seen = [
            one for one in reading.seen if one[2] in reading.takes or one[2] in known.complete]
        base.executemany("INSERT INTO published_source_file VALUES (?, ?, ?)", reading.seen)
        base.execute("COMMIT")
    finally:
        base.close()
    return reading


@dataclass
class _Draft:
    """A take whose own rows are in the file, and whose other rows `retake sql` computes."""

    source: Source
    file: str
    """The file's name for `retake sql`."""
    id: str = ""
    front: list[object] = field(default_factory=list)
    """The first values of its row in the table `take`; none if no rows were written."""
    failure: str = ""


def _draft(
    base: sqlite3.Connection, source: Source, place: str, packets: bool, known: Known,
    there: Container[str],
) -> _Draft:
    """Writes the rows of a take's own tables and views, unless the take is known or was read."""
    draft = _Draft(source, os.path.basename(place))
    try:
        with views.Attachment(base, place) as take:
            draft.id = views.identity(base)
            if draft.id not in known.complete and draft.id not in there:
                draft.front = _add_own(base, take, draft, packets or draft.id in known.with_packets)
    except Exception as error:
        text = reason_of(error).replace(place, source.name)
        draft.failure = text.removeprefix(source.name + ": ")
    return draft


def _add_own(
    base: sqlite3.Connection, take: views.Attachment, draft: _Draft, has_packets: bool
) -> list[object]:
    """Writes the rows of an attached take's tables and views; returns its `front`."""
    take.keep(KEPT_WITH_PACKETS if has_packets else KEPT)
    (nanoseconds,) = base.execute("SELECT start_unix_ns FROM source.take").fetchone()
    day = day_of(nanoseconds)
    tags = {
        key: value for key, value in
        base.execute("SELECT key, value FROM tag ORDER BY key LIMIT ?", (_MOST_TAGS,))
        if isinstance(value, str) and _TAG_KEY.fullmatch(key)
    }
    base.execute("BEGIN")
    for table in published(has_packets):
        if table.of_catalogue:
            continue
        columns = ", ".join(
            f"hidden({views.quoted(name)})" if name in table.hides else views.quoted(name)
            for name in table.names)
        where = f" WHERE {table.where}" if table.where else ""
        base.execute(
            f"INSERT INTO published_{table.name} SELECT ?, ?, {columns} "
            f"FROM {views.quoted(table.name)}{where}", (draft.id, day))
    base.execute("COMMIT")
    return [
        draft.id, day, draft.source.name, draft.source.stamp, json.dumps(tags, sort_keys=True),
        VERSION, int(has_packets)]


def _add_computed(
    base: sqlite3.Connection, reading: Reading, drafts: Sequence[_Draft], said: Said,
    reasons: dict[str, str],
) -> None:
    """Writes the rows that `retake sql` computed, and removes those of takes that it refused."""
    for draft in drafts:
        if draft.file not in said:
            draft.failure = reasons.get(draft.file, "retake sql did not report it")
        elif not draft.failure:
            try:
                for name, rows in said[draft.file].items():
                    front = draft.front if name == "take" else draft.front[:2]
                    marks = ", ".join("?" * (len(front) + len(rows[0])))
                    base.executemany(
                        f"INSERT INTO published_{name} VALUES ({marks})",
                        [[*front, *row] for row in rows])
            except sqlite3.Error as error:
                draft.failure = reason_of(error)
        if draft.failure:
            reading.failures.append((draft.source.name, draft.failure))
            continue
        reading.seen.append((draft.source.name, draft.source.stamp, draft.id))
        reading.bytes += draft.source.size
    lost = [draft.id for draft in drafts if draft.failure and draft.front]
    for id in lost:
        del reading.takes[id]
    for table in TABLES if lost else ():
        base.execute(
            f"DELETE FROM published_{table.name} WHERE take IN (SELECT value FROM json_each(?))",
            [json.dumps(lost)])


def join(path: str, other: str) -> None:
    """Moves another file's rows into this one; a take in both is kept once."""
    if not os.path.exists(path):
        os.rename(other, path)
        return
    base = sqlite3.connect(path, isolation_level=None)
    try:
        base.execute("PRAGMA journal_mode = OFF")
        base.execute("PRAGMA synchronous = OFF")
        base.execute("ATTACH ? AS other", (other,))
        names = [
            row[0] for row in
            base.execute("SELECT name FROM other.sqlite_schema WHERE name LIKE 'published_%'")
        ]
        base.execute("BEGIN")
        base.execute(
            "CREATE TEMP TABLE fresh AS SELECT take FROM other.published_take "
            "WHERE take NOT IN (SELECT take FROM main.published_take)")
        for name in names:
            # Copies are recorded too, so that the next run does not read them.
            which = "" if name == "published_source_file" else (
                " WHERE take IN (SELECT take FROM fresh)")
            base.execute(
                f"INSERT INTO main.{views.quoted(name)} "
                f"SELECT * FROM other.{views.quoted(name)}{which}")
        base.execute("COMMIT")
    finally:
        base.close()
    os.unlink(other)


def day_of(nanoseconds: int) -> str:
    """Returns an instant's UTC day, such as 2026-01-31."""
    epoch = datetime.date(1970, 1, 1).toordinal()
    number = min(max(epoch + nanoseconds // 86_400_000_000_000, 1), 3_652_059)
    return datetime.date.fromordinal(number).isoformat()


def catalogue_query(tables: Sequence[Table]) -> str:
    """Returns one query for the rows of several tables, each row as a JSON list."""
    parts = []
    for table in tables:
        columns = ", ".join(views.quoted(name) for name in table.names)
        parts.append(
            f"SELECT take, '{table.name}' AS relation, json_array({columns}) AS line "
            f"FROM {views.quoted(table.name)}")
    return " UNION ALL ".join(parts)


def _catalogue(
    folder: str, tables: Sequence[Table], executable: str | None
) -> tuple[Said, dict[str, str]]:
    """Runs `retake sql` on a folder's takes; returns rows by file and table, and failures."""
    words = [find_program(executable), "sql", folder, catalogue_query(tables), "--format", "jsonl"]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace")
    said: Said = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        name = os.path.basename(row["take"])
        said.setdefault(name, {}).setdefault(row["relation"], []).append(json.loads(row["line"]))
    reasons: dict[str, str] = {}
    for line in done.stderr.splitlines():
        found = re.search(r"(\d{5}\.take)(?::| )\s*(.*)", line)
        if found:
            reasons.setdefault(found[1], found[2])
    if done.returncode not in (0, 65, 66, 74, 1) or (done.returncode and not said and not reasons):
        text = (done.stderr.strip().splitlines() or ["it ended without a message"])[-1]
        raise CommandError(text.removeprefix("retake: "), done.returncode)
    return said, reasons
