"""Compares published tables with the answers of each take by itself.

`retake sql --each` opens every take and runs the query on it alone, in one process for all takes;
publishing reads takes through this package's views and a folder's catalogue. So both sides share
the takes and the SQL of their views, and nothing that lies between.
"""

import hashlib
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retake_takes.fleet.lake import Lake, database
from retake_takes.fleet.reading import hidden
from retake_takes.fleet.tables import TABLES, Table, of_name

ASKED = ("quality", "finding", "connection", "milestone", "selected_pair")
"""The tables from which the questions are answered, beside the takes' heads."""
_EACH = tuple(table for table in TABLES if table.name != "take" and not table.on_request)
_HEAD = """
SELECT 'head' AS relation, json_array(
  (SELECT lower(hex(substr(digest, 1, 16))) FROM ending),
  date(start_unix_ns / 1000000000, 'unixepoch'),
  (SELECT json_group_object(key, value) FROM tag)) AS line FROM take
"""
_SAY_SECONDS = 10


def query(tables: tuple[Table, ...] = _EACH) -> str:
    """Returns one query for the rows of several tables of a take, each row as a JSON list."""
    parts = [_HEAD]
    for table in tables:
        names = ", ".join(f'"{name}"' for name in table.names)
        where = f" WHERE {table.where}" if table.where else ""
        parts.append(
            f"SELECT '{table.name}', json_array({names}) FROM \"{table.name}\"{where}")
    return " UNION ALL ".join(parts)


@dataclass
class Rows:
    """One take's rows, by table, and the head: id, day and tags."""

    path: str
    tables: dict[str, list[list[Any]]] = field(default_factory=dict)

    @property
    def head(self) -> tuple[str, str, dict[str, str]]:
        """The take's id, its day, and its tags."""
        id, day, tags = self.tables["head"][0]
        return id, day, tags


def each(takes: Path, program: str, count: int, say: Callable[[str], None]) -> Iterator[Rows]:
    """Yields the rows of each take, read by itself."""
    process = subprocess.Popen(
        [program, "sql", str(takes), query(), "--each", "--format", "jsonl"],
        stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    began = said = time.monotonic()
    done, rows = 0, Rows("")
    for line in process.stdout:
        row = json.loads(line)
        # The rows are grouped by take, so another path starts the next take.
        if row["take"] != rows.path:
            if rows.path:
                yield rows
                done += 1
            rows = Rows(row["take"])
            now = time.monotonic()
            if now - said > _SAY_SECONDS:
                said = now
                left = (now - began) / max(done, 1) * (count - done)
                say(f"{done} of {count} takes read one by one, {left:.0f} s left")
        rows.tables.setdefault(row["relation"], []).append(json.loads(row["line"]))
    if rows.path:
        yield rows
    if process.wait():
        raise RuntimeError(f"retake sql ended with {process.returncode}")


def cell(value: Any) -> Any:
    """Returns a value as both sides write it: numbers with nine digits, since sums may differ in
    their last bits, and whole ones as integers."""
    if isinstance(value, float):
        # SQLite's JSON has fifteen digits, so both sides are first rounded to fifteen digits.
        value = float(f"{float(f'{value:.15g}'):.9g}")
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        # A view's JSON is part of the row's JSON.
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if isinstance(value, list):
        return [cell(one) for one in value]
    return int(value) if isinstance(value, bool) else value


def mark(row: list[Any]) -> int:
    """Returns a number for a row, such that sums of them tell sets of rows apart."""
    text = repr([cell(value) for value in row]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


Sums = dict[tuple[str, str], tuple[int, int]]
"""How many rows a table has of a take, and the sum of their marks."""


def add(sums: Sums, table: str, take: str, rows: list[list[Any]]) -> None:
    """Adds rows to a table's sum."""
    count, total = sums.get((table, take), (0, 0))
    sums[table, take] = (
        count + len(rows), (total + sum(map(mark, rows))) & 0xFFFF_FFFF_FFFF_FFFF)


def published(lake: Lake) -> Sums:
    """Returns the sums of a lake's tables."""
    sums: Sums = {}
    duck = lake.ask()
    for table in _EACH:
        names = ", ".join(f'"{name}"' for name in table.names)
        cursor = duck.execute(f'SELECT take, {names} FROM "{table.name}"')
        while rows := cursor.fetchmany(10_000):
            for take, *row in rows:
                add(sums, table.name, take, [row])
    return sums


def compare(
    takes: Path, place: str, program: str, questions: dict[str, str],
    say: Callable[[str], None], report: Callable[[str, str], None],
) -> bool:
    """Compares all rows of all takes, and the answers to questions; returns whether all are equal.
    """
    with Lake(place) as lake:
        count = lake.ask().execute("SELECT count(*) FROM take").fetchone()[0]
        duck = database()
        sums: Sums = {}
        ids: dict[str, str] = {}
        with tempfile.TemporaryDirectory() as folder:
            files = {name: open(f"{folder}/{name}.jsonl", "w") for name in ("head", *ASKED)}
            for rows in each(takes, program, count, say):
                id, day, tags = rows.head
                if id in ids:
                    continue
                ids[id] = rows.path
                front = {"take": id, "day": day}
                files["head"].write(json.dumps(
                    {**front, **{f"tag_{key}": value for key, value in tags.items()}}) + "\n")
                for table in _EACH:
                    found = rows.tables.get(table.name, [])
                    for column in table.hides:
                        index = table.names.index(column)
                        for row in found:
                            row[index] = hidden(row[index])
                    if found:
                        add(sums, table.name, id, found)
                    if table.name in files:
                        files[table.name].writelines(
                            json.dumps({**front, **dict(zip(table.names, row))}) + "\n"
                            for row in found)
            for file in files.values():
                file.close()
            load(duck, folder)
        equal = same_rows(sums, published(lake), ids, report)
        asked = lake.ask()
        for title, question in questions.items():
            mine, theirs = (
                sorted(([cell(part) for part in row] for row in base.execute(question).fetchall()),
                       key=repr)
                for base in (duck, asked))
            equal &= mine == theirs
            report(f"  {title}", "equal" if mine == theirs else f"DIFFERENT: {mine} {theirs}")
    return equal


def load(duck: Any, folder: str) -> None:
    """Creates the tables for the questions from files of rows.

    The columns of `take` that questions name are derived from its connections and streams, which a
    catalogue does by itself.
    """
    front = {"take": "VARCHAR", "day": "DATE"}
    for name in ("head", *ASKED):
        table = of_name(name)
        tags = {f"tag_{key}": "VARCHAR" for key in ("site", "build", "network")}
        columns = front | (dict(table.columns) if table else tags)
        duck.execute(
            f"CREATE TABLE {name} AS SELECT * FROM read_json('{folder}/{name}.jsonl', "
            f"format = 'newline_delimited', columns = {columns})")
    duck.execute(
        """
        CREATE TABLE take AS SELECT head.*, coalesce(pair.relay, 0) AS relay, pair.connected_ns,
          pair.round_trip_ms, media.loss_share
        FROM head
        LEFT JOIN (
          SELECT take, max((local_type = 'relay' OR remote_type = 'relay')::BIGINT) AS relay,
            max(connected_ns) AS connected_ns, max(round_trip_ms) AS round_trip_ms
          FROM connection GROUP BY take) AS pair USING (take)
        LEFT JOIN (SELECT take, max(loss_share) AS loss_share FROM quality GROUP BY take) AS media
          USING (take)
        """)


def same_rows(
    mine: Sums, theirs: Sums, paths: dict[str, str], report: Callable[[str, str], None]
) -> bool:
    """Reports the tables whose rows differ, with the takes."""
    differing: dict[str, list[str]] = {}
    for table, take in mine.keys() | theirs.keys():
        if mine.get((table, take)) != theirs.get((table, take)):
            differing.setdefault(table, []).append(paths.get(take, take))
    total = sum(count for count, _ in mine.values())
    for table, takes in sorted(differing.items()):
        report(f"  rows of {table}", f"DIFFERENT in {len(takes)} takes: {sorted(takes)[:3]}")
    report(f"  {total} rows of {len(_EACH)} tables, {len(paths)} takes",
           "DIFFERENT" if differing else "equal")
    return not differing
