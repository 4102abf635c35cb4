"""Tests takes published as tables: the same results, without duplicates, at any destination."""

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterator

import pytest
from conftest import CAPTURES, RETAKE, demo, fleet, fleet_text
from queries import FLEET_QUERIES, PACKET_QUERIES, QUERIES
from retake_takes.fleet import lake as lakes
from retake_takes.fleet import reading, storage, tables


def plain(rows: list) -> list:
    """Converts rows so that 1 equals 1.0, and sorts them."""
    def cell(value: object) -> object:
        if isinstance(value, bool) or value is None or isinstance(value, str):
            return value
        return float(f"{float(value):.9g}")
    return sorted((tuple(cell(value) for value in row) for row in rows), key=repr)


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
    """Replaces the star of a query by the lake's columns: a take also has columns of bytes."""
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
    (takes / "a.take").unlink()
    (takes / "copy.take").unlink()
    demo(takes / "a.take", 2, "--label", "another")
    # If copy.take was the source that the lake kept, the new a.take is simply added.
    result = fleet("publish", takes, "--to", lake, "--compact")
    assert result["added"] == 1
    with lakes.Lake(str(lake)) as one:
        labels = one.ask().execute("SELECT source, label FROM take ORDER BY label").fetchall()
        assert [label for source, label in labels if source.endswith("a.take")] == ["another"]
        takes_of = {row[0] for row in one.duck.execute("SELECT take FROM state").fetchall()}
        assert len(takes_of) == len(labels)


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
    done = fleet_text("publish", takes, "--to", tmp_path / "lake", status=1)
    assert "1 takes added" in done.stdout and "3 failed" in done.stdout
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 3
    for name in ("text.take", "cut.take", "types.take"):
        assert sum(f"{takes}/{name}: " in line for line in lines) == 1, done.stderr


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
    with lakes.Lake(str(lake)) as one:
        one.duck.execute("DROP TABLE lake.milestone")
        one.duck.execute("ALTER TABLE lake.quality DROP COLUMN level_dbov")
        one.duck.execute("DELETE FROM lake.lake_version")
        assert one.version == 0
    assert fleet("publish", corpus, "--to", lake)["added"] == 10
    with lakes.Lake(str(lake)) as one:
        assert one.version == tables.VERSION
        duck = one.ask()
        assert duck.execute("SELECT count(DISTINCT take) FROM milestone").fetchone()[0] >= 9
        assert duck.execute(
            "SELECT count(DISTINCT take) FROM quality WHERE level_dbov IS NOT NULL"
        ).fetchone()[0] >= 5
        one.duck.execute("INSERT INTO lake.lake_version VALUES (99)")
    done = fleet_text("publish", corpus, "--to", lake, status=1)
    assert "version 99" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_missing_lake_is_reported_in_one_sentence(tmp_path: Path) -> None:
    done = fleet_text("sql", tmp_path / "nothing", "SELECT 1", status=1)
    assert "there is no lake" in done.stderr and len(done.stderr.splitlines()) == 1
    done = fleet_text("publish", tmp_path / "nothing", "--to", tmp_path / "lake", status=1)
    assert "no such file or folder" in done.stderr and len(done.stderr.splitlines()) == 1


# Other places


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """Returns an S3 server on this machine, with an empty bucket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    variables = {
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": address,
    }
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        storage.s3_client().create_bucket(Bucket="calls")
        yield variables
    finally:
        server.terminate()
        server.wait()
        os.environ.clear()
        os.environ.update(before)


def test_takes_and_tables_may_both_be_in_a_bucket(
    s3: dict[str, str], corpus: Path, tmp_path: Path
) -> None:
    client = storage.s3_client()
    for number in range(3):
        client.upload_file(str(corpus / f"call-{number}.take"), "calls", f"takes/{number}.take")
    done = fleet_text("publish", "s3://calls/takes", "--to", "s3://calls/lake", status=1)
    assert "--catalogue" in done.stderr
    catalogue = tmp_path / "catalogue.sqlite"
    words = ("publish", "s3://calls/takes", "--to", "s3://calls/lake", "--catalogue", catalogue)
    assert fleet(*words)["added"] == 3
    assert fleet(*words)["present"] == 3
    keys = [entry["Key"] for entry in client.list_objects_v2(
        Bucket="calls", Prefix="lake/")["Contents"]]
    assert any("/stream/day=2026-01-01/" in key and key.endswith(".parquet") for key in keys)
    rows = fleet(
        "sql", "s3://calls/lake", "--catalogue", catalogue,
        "SELECT source, label FROM take ORDER BY label")
    assert [row["source"] for row in rows] == [f"s3://calls/takes/{n}.take" for n in range(3)]
    assert fleet("verify", "s3://calls/takes", "--jobs", "1")["failed"] == 0


def binaries() -> str:
    folder = Path("/usr/lib/postgresql/15/bin")
    if not (folder / "initdb").exists():
        pytest.skip("PostgreSQL 15 is not there; apt-get install postgresql brings it")
    return str(folder)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Returns a PostgreSQL server for these tests only."""
    programs = binaries()
    folder = tmp_path_factory.mktemp("postgres")
    data = folder / "data"
    prefix: list[str] = []
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root.
        shutil.chown(folder, "nobody")
        for parent in list(folder.parents)[:2]:
            parent.chmod(0o755)
        prefix = ["setpriv", "--reuid=nobody", "--clear-groups"]
    run = lambda *words: subprocess.run(  # noqa: E731
        [*prefix, *words], check=True, capture_output=True, cwd=folder)
    run(f"{programs}/initdb", "-D", str(data), "-U", "retake", "-A", "trust", "--no-sync")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    subprocess.run(
        [*prefix, f"{programs}/pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o",
         f"-p {port} -h 127.0.0.1 -k {folder} -F", "start"],
        check=True, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        yield f"postgresql://retake@127.0.0.1:{port}/postgres"
    finally:
        run(f"{programs}/pg_ctl", "-D", str(data), "-m", "immediate", "stop")


def test_postgresql_has_the_same_tables(corpus: Path, lake: Path, postgres: str) -> None:
    import psycopg

    assert fleet("publish", corpus, "--to", postgres, "--packets")["added"] == 11
    again = fleet("publish", corpus, "--to", postgres, "--packets")
    assert (again["added"], again["present"]) == (0, 11)
    with psycopg.connect(postgres) as base, lakes.Lake(str(lake)) as one:
        duck = one.ask()
        for table in tables.TABLES:
            names = ", ".join(f'"{name}"' for name, _ in lakes.wanted_columns(table)
                              if name not in ("day", "source", "stamp"))
            query = f'SELECT {names} FROM {{}}"{table.name}"'
            mine = base.execute(query.format("retake.")).fetchall()
            assert plain(mine) == plain(duck.execute(query.format("")).fetchall()), table.name
        assert base.execute(
            "SELECT tag_site, count(*) FROM retake.take WHERE tag_site IS NOT NULL "
            "GROUP BY 1 ORDER BY 1").fetchall() == [("berlin", 3), ("lima", 2), ("osaka", 3)]


def test_postgresql_may_be_the_catalogue_of_a_lake(
    corpus: Path, tmp_path: Path, postgres: str
) -> None:
    words = ("publish", corpus, "--to", tmp_path / "lake", "--catalogue", postgres)
    assert fleet(*words)["added"] == 11
    assert fleet(*words)["added"] == 0
    rows = fleet(
        "sql", tmp_path / "lake", "--catalogue", postgres, "SELECT count(*) AS n FROM take")
    assert rows == [{"n": 11}]


def test_clickhouse_reads_the_same_files(lake: Path) -> None:
    chdb = pytest.importorskip("chdb")
    with lakes.Lake(str(lake)) as one:
        wanted = one.ask().execute(
            "SELECT direction, count(*) AS streams, sum(packets) AS packets FROM stream "
            "GROUP BY direction ORDER BY direction").fetchall()
    text = str(chdb.query(
        "SELECT direction, count() AS streams, sum(packets) AS packets "
        f"FROM file('{lake}/data/main/stream/*/*.parquet', Parquet) "
        "GROUP BY direction ORDER BY direction", "CSV"))
    found = [line.replace('"', "").split(",") for line in text.strip().splitlines()]
    assert [(row[0], int(row[1]), int(row[2])) for row in found] == wanted
