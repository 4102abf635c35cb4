"""Tests takes published as tables: the same results, without duplicates, at any destination."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import answers
import pytest
from conftest import CAPTURES, RETAKE, demo, fleet, fleet_text, plain
from queries import FLEET_QUERIES, PACKET_QUERIES, QUERIES
from retake_takes import views
from retake_takes.fleet import lake as lakes
from retake_takes.fleet import reading, storage, tables


def said(take: Path, query: str) -> list:
    done = subprocess.run(
        [RETAKE, "sql", str(take), query, "--json"], capture_output=True, text=True, check=True)
    return [list(row.values()) for row in json.loads(done.stdout or "[]")]


def ids(lake: Path) -> dict[str, str]:
    with lakes.Lake(str(lake)) as one:
        rows = one.ask().execute("SELECT source, take FROM take").fetchall()
    return {Path(source).stem: take for source, take in rows}


def test_fifty_queries_of_a_take_give_the_same_rows(corpus: Path, lake: Path) -> None:
    assert len(QUERIES) >= 50
    known = ids(lake)
    rows = 0
    with lakes.Lake(str(lake)) as one:
        for name in ("call-3", "janus-room", "observed-aiortc", "chromium-peer-offers"):
            duck = one.one(known[name])
            for query in [*QUERIES, *PACKET_QUERIES]:
                wanted = said(corpus / f"{name}.take", columns(duck, query))
                found = duck.execute(query).fetchall()
                assert plain(found) == plain(wanted), f"{name}: {query}"
                rows += len(found)
    assert rows > 2_000


def columns(duck: object, query: str) -> str:
    """Replaces a query's star with the lake's columns, because a take also has columns of bytes."""
    if not query.startswith("SELECT * FROM "):
        return query
    names = [row[0] for row in duck.execute(f"DESCRIBE {query}").fetchall()]
    return query.replace("*", ", ".join(f'"{name}"' for name in names), 1)


def test_answers_over_all_takes_are_those_of_each(corpus: Path, lake: Path) -> None:
    with lakes.Lake(str(lake)) as one:
        duck = one.ask()
        for name, take in ids(lake).items():
            for query in ("SELECT count(*), sum(packets) FROM stream",
                          "SELECT count(*) FROM finding WHERE depth = 0"):
                mine = duck.execute(f"{query} {'AND' if 'WHERE' in query else 'WHERE'} take = "
                                    f"'{take}'").fetchall()
                assert plain(mine) == plain(said(corpus / f"{name}.take", query))
        for title, query in FLEET_QUERIES.items():
            assert duck.execute(query).fetchall(), title
        by_site = duck.execute(
            "SELECT tag_site, count(*) FROM take WHERE tag_site IS NOT NULL GROUP BY 1 ORDER BY 1"
        ).fetchall()
        assert by_site == [("berlin", 3), ("lima", 2), ("osaka", 3)]


def test_all_rows_are_those_of_each_take(corpus: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    fleet("publish", corpus, "--to", lake)
    said: list[str] = []

    def compare() -> bool:
        said.clear()
        return answers.compare(
            corpus, str(lake), RETAKE, FLEET_QUERIES, say=print,
            report=lambda what, value: said.append(f"{what}: {value}"))

    assert compare(), said
    assert len(said) == 1 + len(FLEET_QUERIES) and "11 takes: equal" in said[0]
    with lakes.Lake(str(lake), create=True) as one:
        one.duck.execute("UPDATE lake.quality SET loss_share = loss_share + 1e-6 WHERE peer = 2")
    assert not compare()
    assert said[0].startswith("  rows of quality: DIFFERENT in "), said


@pytest.mark.parametrize("packets", [False, True])
def test_kept_views_have_the_rows_of_the_views(packets: bool, tmp_path: Path) -> None:
    kept = reading.KEPT_WITH_PACKETS if packets else reading.KEPT
    shared, alone = views.connect(kept=reading.KEPT_WITH_PACKETS), views.connect()
    queries = [
        f"SELECT {', '.join(map(views.quoted, table.names))} FROM {views.quoted(table.name)}"
        for table in tables.published(packets) if not table.of_catalogue]
    for path in sorted(CAPTURES.rglob("*.take")):
        # Without the file's own views, a query fails if it needs a view that is not kept.
        bare = tmp_path / path.name
        shutil.copy(path, bare)
        with sqlite3.connect(bare) as base:
            for (name,) in base.execute("SELECT name FROM sqlite_schema WHERE type = 'view'"
                                        ).fetchall():
                base.execute(f"DROP VIEW {views.quoted(name)}")
        base.close()
        with views.Attachment(shared, str(bare)) as take, views.Attachment(alone, str(path)):
            take.keep(kept)
            for query in queries:
                # As text, 1 and 1.0 differ.
                mine, theirs = (repr(base.execute(query).fetchall()) for base in (shared, alone))
                assert mine == theirs, f"{path.name}: {query}"
        bare.unlink()
    shared.close()
    alone.close()


def snapshot(place: Path) -> list[tuple[str, int, int]]:
    return sorted(
        (str(path), path.stat().st_size, path.stat().st_mtime_ns)
        for path in place.rglob("*.parquet"))


def test_publishing_again_changes_nothing(corpus: Path, lake: Path) -> None:
    before = snapshot(lake)
    with lakes.Lake(str(lake)) as one:
        snapshots = one.duck.execute("SELECT count(*) FROM ducklake_snapshots('lake')").fetchone()
    result = fleet("publish", corpus, "--to", lake, "--packets")
    assert (result["added"], result["present"], result["failed"]) == (0, 11, 0)
    assert snapshot(lake) == before
    with lakes.Lake(str(lake)) as one:
        assert one.duck.execute(
            "SELECT count(*) FROM ducklake_snapshots('lake')").fetchone() == snapshots


def test_files_are_partitioned_by_day(lake: Path) -> None:
    days = {path.parent.name for path in (lake / "data").rglob("*.parquet")
            if path.parent.parent.name == "stream"}
    assert "day=2026-01-01" in days and len(days) >= 2
    assert all(day.startswith("day=") for day in days)


def test_copies_count_once_and_a_changed_source_is_replaced(tmp_path: Path) -> None:
    takes, lake = tmp_path / "takes", tmp_path / "lake"
    takes.mkdir()
    demo(takes / "a.take", 1)
    shutil.copy(takes / "a.take", takes / "copy.take")
    assert fleet("publish", takes, "--to", lake)["added"] == 1
    assert fleet("publish", takes, "--to", lake)["present"] == 2
    whole = takes / "whole.take"
    (takes / "a.take").rename(whole)
    demo(takes / "a.take", 2, "--label", "another")
    # The first recording is still in two files, although the file it was read from contains
    # another.
    result = fleet("publish", takes, "--to", lake, "--compact")
    assert (result["added"], result["present"]) == (1, 2)
    with lakes.Lake(str(lake)) as one:
        rows = one.ask().execute("SELECT source, label FROM take ORDER BY label").fetchall()
        assert sorted(Path(source).name for source, _ in rows) == ["a.take", "copy.take"]
    for path in (whole, takes / "copy.take"):
        shutil.copy(takes / "a.take", path)
    # No file contains the first recording any more.
    result = fleet("publish", takes, "--to", lake)
    assert (result["added"], result["present"]) == (0, 3)
    with lakes.Lake(str(lake)) as one:
        assert one.ask().execute("SELECT label FROM take").fetchall() == [("another",)]
        assert one.duck.execute("SELECT count(DISTINCT take) FROM state").fetchone() == (1,)


def test_touched_and_copied_files_are_read_once(tmp_path: Path) -> None:
    takes, lake = tmp_path / "takes", tmp_path / "lake"
    takes.mkdir()
    demo(takes / "a.take", 1)
    fleet("publish", takes, "--to", lake)
    os.utime(takes / "a.take", ns=(0, 0))
    shutil.copy(takes / "a.take", takes / "b.take")
    (takes / "a.take").rename(takes / "c.take")
    for _ in range(2):
        result = fleet("publish", takes, "--to", lake)
        assert (result["added"], result["present"], result["missing"]) == (0, 2, 1)
    with lakes.Lake(str(lake)) as one:
        held = one.held()
        assert all(
            held.is_current(source, False) for source in storage.listing([str(takes)]))


def test_missing_files_are_counted_and_removed_on_request(tmp_path: Path) -> None:
    takes, lake = tmp_path / "takes", tmp_path / "lake"
    for number in range(3):
        (takes / str(number)).mkdir(parents=True)
        demo(takes / str(number) / "a.take", number)
    fleet("publish", takes, "--to", lake)
    (takes / "0" / "a.take").unlink()
    (takes / "1" / "a.take").unlink()
    assert "2 files are gone" in fleet_text("publish", takes, "--to", lake).stdout
    # Only files below the named folders count as missing.
    shutil.copy(takes / "2" / "a.take", takes / "1" / "b.take")
    result = fleet("publish", takes / "1", "--to", lake, "--remove-missing")
    assert (result["missing"], result["removed"], result["present"]) == (1, 1, 1)
    with lakes.Lake(str(lake)) as one:
        assert one.ask().execute("SELECT count(*) FROM take").fetchone() == (2,)
        assert one.duck.execute("SELECT count(DISTINCT take) FROM state").fetchone() == (2,)


def test_packets_are_added_to_published_takes_and_stay(corpus: Path, tmp_path: Path) -> None:
    takes, lake = tmp_path / "takes", tmp_path / "lake"
    takes.mkdir()
    for number in range(2):
        shutil.copy(corpus / f"call-{number}.take", takes)
    fleet("publish", takes, "--to", lake)
    result = fleet("publish", takes, "--to", lake, "--packets")
    assert (result["added"], result["completed"], result["present"]) == (0, 2, 0)

    def packets() -> list[list]:
        with lakes.Lake(str(lake)) as one:
            duck = one.ask()
            return [duck.execute(f"SELECT take, count(*) FROM {name} GROUP BY 1 ORDER BY 1"
                                 ).fetchall() for name in ("packet", "state", "take")]

    before = packets()
    assert sum(count for _, count in before[0]) == sum(
        said(takes / f"call-{number}.take", "SELECT count(*) FROM packet")[0][0]
        for number in range(2))
    assert [count for _, count in before[2]] == [1, 1]
    for words in ((), ("--packets",)):
        assert fleet("publish", takes, "--to", lake, *words)["present"] == 2
    with lakes.Lake(str(lake), create=True) as one:
        one.duck.execute("UPDATE lake.take SET tables_version = 0")
    # Takes that are published again for another reason keep their packets without --packets.
    assert fleet("publish", takes, "--to", lake)["completed"] == 2
    assert packets() == before


def test_every_change_of_the_tables_has_its_version() -> None:
    shape = storage.short_digest(repr([
        (table.name, tables.wanted_columns(table), table.where, table.hides)
        for table in tables.TABLES]))
    # A change without a new version would leave the new columns empty for published takes.
    assert (tables.VERSION, shape) == (3, "69b8e89d21a7c6d5")


UNPUBLISHED = {
    "peer": {"seed", "configuration"}, "actor": {"seed", "configuration"}, "packet": {"bytes"},
    "frame": {"bytes", "digest"},
    # The column holds a drawing for the catalogue's page.
    "take": {"traffic"},
}
"""The columns that stay in the takes: secrets, and payloads."""


def test_all_columns_of_published_tables_are_published(corpus: Path) -> None:
    for table in tables.TABLES:
        if table.of_catalogue:
            (row,) = json.loads(subprocess.run(
                [RETAKE, "sql", str(corpus), f"SELECT * FROM {table.name} LIMIT 1", "--json"],
                capture_output=True, text=True, check=True).stdout)
            known = set(row) - {"take"}
        else:
            known = set(views.schema().columns[table.name])
        assert known - set(table.names) == UNPUBLISHED.get(table.name, set()), table.name


def test_a_lake_may_be_moved_and_read_through_another_path(corpus: Path, tmp_path: Path) -> None:
    takes = tmp_path / "takes"
    takes.mkdir()
    shutil.copy(corpus / "call-0.take", takes)
    fleet("publish", takes, "--to", tmp_path / "lake")
    (tmp_path / "lake").rename(tmp_path / "moved")
    (tmp_path / "link").symlink_to(tmp_path / "moved")
    for place in ("moved", "link"):
        assert fleet("sql", tmp_path / place, "SELECT label FROM take") == [{"label": "call 0"}]
    shutil.copy(corpus / "call-1.take", takes)
    assert fleet("publish", takes, "--to", tmp_path / "moved")["added"] == 1
    assert len(fleet("sql", tmp_path / "link", "SELECT label FROM take")) == 2
    # Files written in another folder would be missing from the lake that the catalogue describes.
    done = fleet_text(
        "publish", takes, "--to", tmp_path / "other", "--catalogue",
        tmp_path / "moved" / "catalogue.sqlite", status=1)
    assert "files that do not exist" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("query", [
    "DELETE FROM take", "DROP TABLE take", "UPDATE take SET label = ''", "CREATE TABLE t (x INT)",
    "CALL ducklake_expire_snapshots('lake', older_than => now())"])
def test_queries_cannot_write(lake: Path, query: str) -> None:
    before = fleet("sql", lake, "SELECT count(*) AS n FROM take")
    done = fleet_text("sql", lake, query, status=1)
    assert "read" in done.stderr.lower() and len(done.stderr.splitlines()) == 1
    assert fleet("sql", lake, "SELECT count(*) AS n FROM take") == before


def test_an_interrupted_run_continues(corpus: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    words = [sys.executable, "-m", "retake_takes.fleet.cli", "publish", str(corpus), "--to",
             str(lake), "--commit-takes", "2", "--jobs", "1", "--batch-seconds", "0.01"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < end:
        if len(list(lake.rglob("*.parquet"))) > 60:
            break
        time.sleep(0.02)
    os.killpg(process.pid, 9)
    process.wait()
    with lakes.Lake(str(lake)) as one:
        there = one.ask().execute("SELECT count(*) FROM take").fetchone()[0]
        assert one.duck.execute("SELECT count(DISTINCT take) FROM state").fetchone()[0] == there
    result = fleet("publish", corpus, "--to", lake)
    assert result["added"] + there == 11
    with lakes.Lake(str(lake)) as one:
        counts = one.ask().execute("SELECT count(*), count(DISTINCT take) FROM take").fetchone()
        assert counts == (11, 11)


def test_two_writers_at_once_leave_each_take_once(corpus: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    # Creates the lake first, so that both writers find its tables.
    lakes.Lake(str(lake), create=True).close()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(
            lambda _: fleet("publish", corpus, "--to", lake, "--jobs", "1"), range(2)))
    assert sum(result["added"] for result in results) == 11
    with lakes.Lake(str(lake)) as one:
        assert one.ask().execute(
            "SELECT count(*), count(DISTINCT take) FROM take").fetchone() == (11, 11)


def test_damaged_takes_affect_no_others(corpus: Path, tmp_path: Path) -> None:
    takes = tmp_path / "takes"
    takes.mkdir()
    shutil.copy(corpus / "call-1.take", takes)
    (takes / "text.take").write_text("this is no take " * 1000)
    whole = (corpus / "call-2.take").read_bytes()
    (takes / "cut.take").write_bytes(whole[: len(whole) // 2])
    shutil.copy(corpus / "call-3.take", takes / "types.take")
    base = sqlite3.connect(takes / "types.take")
    base.execute("UPDATE state SET machine = x'00ff'")
    base.commit()
    base.close()
    # The rows of the altered take can be read, but `retake sql` refuses the take.
    shutil.copy(corpus / "call-4.take", takes / "altered.take")
    base = sqlite3.connect(takes / "altered.take")
    base.execute("UPDATE take SET label = 'another'")
    base.commit()
    base.close()
    done = fleet_text("publish", takes, "--to", tmp_path / "lake", status=1)
    assert "1 takes added" in done.stdout and "4 failed" in done.stdout
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 4
    for name in ("text.take", "cut.take", "types.take", "altered.take"):
        assert sum(f"{takes}/{name}: " in line for line in lines) == 1, done.stderr
    # A failed take leaves no rows: another batch may have an intact copy of it, and the two takes'
    # rows must not mix.
    path = str(tmp_path / "read.sqlite")
    found = reading.read(storage.listing([str(takes)]), path, executable=RETAKE)
    assert len(found.takes) == 1 and len(found.failures) == 4
    base = sqlite3.connect(path)
    for table in tables.published(False):
        rows = base.execute(f"SELECT DISTINCT take FROM published_{table.name}").fetchall()
        assert {row[0] for row in rows} <= set(found.takes), table.name
    base.close()


def test_a_large_take_that_fails_late_affects_no_others(corpus: Path, tmp_path: Path) -> None:
    takes = tmp_path / "takes"
    takes.mkdir()
    for number in range(3):
        shutil.copy(corpus / f"call-{number}.take", takes)
    with sqlite3.connect(takes / "call-1.take") as base:
        # More rows than SQLite holds in memory until a transaction ends.
        base.execute("UPDATE stat SET id = id || hex(zeroblob(100000))")
        base.execute("UPDATE event SET type = x'00ff'")
    base.close()
    done = fleet_text("publish", takes, "--to", tmp_path / "lake", "--jobs", "1", status=1)
    assert "2 takes added" in done.stdout and "1 failed" in done.stdout, done.stderr
    with lakes.Lake(str(tmp_path / "lake")) as one:
        rows = one.ask().execute("SELECT label FROM take ORDER BY label").fetchall()
        assert rows == [("call 0",), ("call 2",)]
        assert one.duck.execute("SELECT count(DISTINCT take) FROM stat").fetchone() == (2,)


def test_secrets_stay_in_the_take(corpus: Path, lake: Path) -> None:
    texts = []
    for name in ("call-1", "janus-room", "chromium-peer-offers"):
        base = sqlite3.connect(corpus / f"{name}.take")
        for (message,) in base.execute("SELECT message FROM signaling"):
            for part in message.split("a=ice-pwd:")[1:]:
                texts.append(part.split("\\")[0].split("\r")[0].split("\n")[0])
        base.close()
    assert texts and all(len(text) >= 22 for text in texts)
    with lakes.Lake(str(lake)) as one:
        duck = one.ask()
        published = " ".join(
            row[0] for row in duck.execute("SELECT message FROM signaling").fetchall())
        assert "a=ice-pwd:(hidden)" in published and "a=fingerprint:" in published
        assert not [text for text in texts if text in published]
        assert duck.execute(
            "SELECT count(*) FROM event WHERE type = 'keylog'").fetchone() == (0,)
        names = {row[0] for row in duck.execute(
            "SELECT column_name FROM duckdb_columns() WHERE database_name = 'lake'").fetchall()}
        assert not names & {"seed", "configuration"}
    hidden = reading.hidden
    assert hidden('{"token":"abc","x":1}') == '{"token":"(hidden)","x":1}'
    assert hidden(r'{"m":"{\"credential\":\"abc\"}"}') == r'{"m":"{\"credential\":\"(hidden)\"}"}'
    assert hidden("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:KEY|2^31") == (
        "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:(hidden)|2^31")
    assert hidden("authorization: Bearer abc") == "authorization: Bearer (hidden)"


def test_a_lake_of_an_older_version_is_migrated(corpus: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    one_take = tmp_path / "one"
    one_take.mkdir()
    shutil.copy(corpus / "call-0.take", one_take)
    fleet("publish", one_take, "--to", lake)
    with lakes.Lake(str(lake), create=True) as one:
        one.duck.execute("DROP TABLE lake.milestone")
        one.duck.execute("DROP TABLE lake.source_file")
        one.duck.execute("ALTER TABLE lake.quality DROP COLUMN level_dbov")
        one.duck.execute("ALTER TABLE lake.take DROP COLUMN tables_version")
        one.duck.execute("ALTER TABLE lake.take DROP COLUMN has_packets")
        one.duck.execute("DELETE FROM lake.lake_version")
        assert one.version == 0
    with lakes.Lake(str(lake)) as one:
        (take,) = ids(lake).values()
        assert one.one(take).execute("SELECT count(*) FROM quality").fetchone()[0] > 0
    # The first take's file still exists, so its missing rows are added.
    result = fleet("publish", corpus, one_take, "--to", lake)
    assert (result["added"], result["completed"], result["failed"]) == (10, 1, 0)
    with lakes.Lake(str(lake)) as one:
        assert one.version == tables.VERSION
        duck = one.ask()
        for query in ("SELECT count(*) FROM milestone", "SELECT count(level_dbov) FROM quality"):
            found = duck.execute(
                f"{query} WHERE take = '{take}'").fetchall()
            assert plain(found) == plain(said(corpus / "call-0.take", query)), query
        assert duck.execute("SELECT count(DISTINCT take) FROM milestone").fetchone()[0] >= 9
        assert duck.execute("SELECT count(*), count(DISTINCT take) FROM take").fetchone() == (
            11, 11)
    with lakes.Lake(str(lake), create=True) as one:
        one.duck.execute("INSERT INTO lake.lake_version VALUES (99)")
    done = fleet_text("publish", corpus, "--to", lake, status=1)
    assert "version 99" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_missing_lake_is_reported_in_one_sentence(tmp_path: Path) -> None:
    done = fleet_text("sql", tmp_path / "nothing", "SELECT 1", status=1)
    assert "there is no lake" in done.stderr and len(done.stderr.splitlines()) == 1
    done = fleet_text("publish", tmp_path / "nothing", "--to", tmp_path / "lake", status=1)
    assert "no such file or folder" in done.stderr and len(done.stderr.splitlines()) == 1
