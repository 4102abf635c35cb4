"""Tests takes and tables in a bucket or a database, and places that cannot be used."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest
from conftest import fleet, fleet_text, plain
from retake_takes.fleet import lake as lakes
from retake_takes.fleet import storage, tables


@pytest.mark.parametrize("words, part", [
    (("publish", "TAKES", "--to", "ftp://host/lake"), "ftp://host/lake"),
    (("publish", "TAKES", "--to", ""), "not an address"),
    (("publish", "TAKES", "--to", "s3://"), "has no bucket name"),
    (("publish", "TAKES", "--to", "S3://bucket/lake"), "--catalogue"),
    (("publish", "TAKES", "--to", "/proc/nope/lake"), "/proc/nope"),
    (("publish", "TAKES", "--to", "FILE"), "FILE"),
    (("publish", "TAKES", "--to", "LAKE", "--catalogue", "FILE"), "not a database"),
    (("publish", "TAKES", "--to", "LAKE", "--catalogue", "TAKES"), "it is a folder"),
    (("publish", "TAKES", "--to", "LAKE", "--remove-missing", "--shard", "1/2"), "shard"),
    (("publish", "TAKES", "--to", "LAKE", "--catalogue",
      "postgresql://me:sesame@127.0.0.1:1/x"), "127.0.0.1"),
    (("publish", "TAKES", "--to", "postgresql://me:sesame@127.0.0.1:1/x"), "127.0.0.1"),
    (("publish", "", "--to", "LAKE"), "not an address"),
    (("verify", "ftp://host/takes"), "ftp://host/takes"),
    (("verify", "TAKES", "--out", "/nope/x.parquet"), "--out"),
    (("verify", "TAKES", "--out", "TAKES"), "--out"),
    (("import", "TAKES", "--to", "s3://bucket/takes"), "a folder"),
    (("sql", "", "SELECT 1"), "not an address"),
    (("sql", "LAKE", ""), "not a query"),
    (("sql", "LAKE", "SELECT nonsense FROM take"), "Candidate bindings"),
])
def test_wrong_places_are_refused_in_one_sentence(
    corpus: Path, lake: Path, tmp_path: Path, words: tuple[str, ...], part: str
) -> None:
    file = tmp_path / "FILE"
    file.write_text("this is no database " * 100)
    places = {"TAKES": corpus, "LAKE": lake if words[0] == "sql" else tmp_path / "lake",
              "FILE": file}
    done = fleet_text(*(places.get(word, word) for word in words), status=1)
    assert part in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "sesame" not in done.stderr and done.stdout == ""


def test_no_answer_of_s3_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    done = fleet_text("verify", "s3://bucket/takes", status=1)
    assert "credentials" in done.stderr and len(done.stderr.splitlines()) == 1
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    done = fleet_text("verify", "s3://bucket/takes", status=1)
    assert "127.0.0.1:1" in done.stderr and len(done.stderr.splitlines()) == 1


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

    assert fleet("publish", corpus, "--to", postgres)["added"] == 11
    assert fleet("publish", corpus, "--to", postgres, "--packets")["completed"] == 11
    again = fleet("publish", corpus, "--to", postgres, "--packets")
    assert (again["added"], again["present"]) == (0, 11)
    with psycopg.connect(postgres) as base, lakes.Lake(str(lake)) as one:
        duck = one.ask()
        for table in tables.TABLES:
            names = ", ".join(f'"{name}"' for name, _ in tables.wanted_columns(table)
                              if name not in ("day", "source", "stamp"))
            query = f'SELECT {names} FROM {{}}"{table.name}"'
            mine = base.execute(query.format("retake.")).fetchall()
            assert plain(mine) == plain(duck.execute(query.format("")).fetchall()), table.name
        assert base.execute(
            "SELECT tag_site, count(*) FROM retake.take WHERE tag_site IS NOT NULL "
            "GROUP BY 1 ORDER BY 1").fetchall() == [("berlin", 3), ("lima", 2), ("osaka", 3)]
    query = "SELECT label FROM take WHERE tag_site = 'lima' ORDER BY label"
    assert fleet("sql", postgres, query) == fleet("sql", lake, query)
    for words in ("DELETE FROM take", "DROP TABLE take", "COMMIT; DELETE FROM take"):
        done = fleet_text("sql", postgres, words, status=1)
        assert "read-only" in done.stderr and len(done.stderr.splitlines()) == 1


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
