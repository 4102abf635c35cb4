"""Tests reading takes without the executable."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import retake_takes as retake
from conftest import CAPTURES, RETAKE, ROOT, retake_json

TAKES = [
    "chromium-peer-offers", "janus-room", "observed-aiortc", "virtual-heavy-loss",
    *(f"formats/{path.stem}" for path in sorted((CAPTURES / "formats").glob("*.take"))),
]


@pytest.mark.parametrize("name", TAKES)
def test_every_format_has_every_view_of_this_version(name: str) -> None:
    with retake.open(CAPTURES / f"{name}.take") as take:
        assert len(take.id) == 32 and take.duration_ns > 0
        for view in take.views:
            take.value(f'SELECT count(*) FROM (SELECT * FROM "{view}" LIMIT 50)')
        assert take.value("SELECT count(*) FROM state") > 0


def test_the_schema_of_the_package_is_that_of_retake() -> None:
    from retake_takes import views

    names = set(views.schema().tables) | set(views.schema().views)
    assert {"packet", "stream", "milestone", "tag", "presence"} <= names
    files = sorted((ROOT / "Schema").glob("*.sql"))
    packaged = sorted((ROOT / "Sources/Python/retake_takes/sql").glob("*.sql"))
    assert [path.read_bytes() for path in files] == [path.read_bytes() for path in packaged]


def test_a_copy_without_the_schema_is_refused(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "Sources/Python", tmp_path / "Python", symlinks=True)
    done = subprocess.run(
        [sys.executable, "setup.py", "--version"], cwd=tmp_path / "Python", capture_output=True,
        text=True)
    assert done.returncode == 1 and "complete copy" in done.stderr
    done = subprocess.run(
        [sys.executable, "-c", "import retake_takes; retake_takes.open('x.take')"],
        cwd=tmp_path / "Python", env={**os.environ, "PYTHONPATH": "."}, capture_output=True,
        text=True)
    assert "complete copy" in done.stderr
    done = subprocess.run(
        [sys.executable, "setup.py", "--version"], cwd=ROOT / "Sources/Python",
        capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, retake.__version__), done.stderr


def test_rows_are_those_of_the_executable() -> None:
    path = CAPTURES / "virtual-heavy-loss.take"
    with retake.open(path) as take:
        for view in ("stream", "loss", "milestone", "freeze", "inbound_rtp", "selected_pair"):
            mine = sorted(map(repr, (_plain(row) for row in take.dicts(view))))
            theirs = retake_json("sql", path, f'SELECT * FROM "{view}"')
            assert mine == sorted(map(repr, (_plain(row) for row in theirs))), view


def _plain(row: dict) -> dict:
    return {
        name: round(float(value), 6) if isinstance(value, int | float) else value
        for name, value in row.items()}


def test_packets_and_frames_are_read_one_by_one() -> None:
    with retake.open(CAPTURES / "chromium-peer-offers.take") as take:
        packets = list(take.packets("protocol = 'rtp' AND direction = 'in'"))
        assert packets and all(len(packet.bytes) == packet.size for packet in packets)
        assert packets[0].bytes[0] >> 6 == 2
        assert packets == sorted(packets, key=lambda packet: packet.at_ns) or len(packets) > 1
        first = next(take.frames("kind = 'video' AND key = 1"))
        assert first.bytes is not None and len(first.bytes) == first.size and first.key
        assert take.value("SELECT count(*) FROM frame") == sum(1 for _ in take.frames())


def test_data_frames_of_both_kinds_are_equal() -> None:
    with retake.open(CAPTURES / "chromium-peer-offers.take") as take:
        for query in ("bitrate", "SELECT peer, to_state FROM state ORDER BY row"):
            one, other = take.pandas(query), take.polars(query)
            assert list(one.columns) == other.columns
            # A missing value is NaN in pandas and null in polars.
            assert len(one) == len(other) > 0
            assert one.iloc[0].tolist()[0] == other.row(0)[0]
        statistics = take.statistics("inbound-rtp", peer=1)
        assert {"packetsReceived", "jitter", "at_ns"} <= set(statistics.columns)
        assert statistics["packetsReceived"].max() > 0
        assert take.statistics_polars("inbound-rtp", peer=1).height == len(statistics)


def test_tags_are_read(corpus: Path) -> None:
    with retake.open(corpus / "call-4.take") as take:
        assert take.tags == {"build": "41", "network": "cellular", "site": "osaka"}
        assert take.label == "call 4" and take.complete
        assert take.start.isoformat() == "2026-01-01T00:00:00+00:00"


def test_views_in_the_file_are_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "altered.take"
    shutil.copy(CAPTURES / "virtual-loss.take", path)
    base = sqlite3.connect(path)
    base.execute("DROP VIEW stream")
    base.execute("CREATE VIEW stream AS SELECT 'nonsense' AS peer")
    base.commit()
    base.close()
    with retake.open(path) as take:
        assert take.value("SELECT peer FROM stream") == 1
        with pytest.raises(sqlite3.OperationalError):
            take.rows("DELETE FROM source.state")


def test_other_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    nonsense = tmp_path / "text.take"
    nonsense.write_text("this is no take" * 100)
    other = tmp_path / "other.take"
    sqlite3.connect(other).execute("CREATE TABLE t (x)").connection.close()
    cut = tmp_path / "cut.take"
    cut.write_bytes((CAPTURES / "virtual-loss.take").read_bytes()[:20_000])
    for path in (nonsense, other, cut, tmp_path / "missing.take"):
        with pytest.raises(retake.NoTake) as refused:
            with retake.open(path) as take:
                take.pandas("packet")
        text = str(refused.value)
        assert text.startswith(str(path)) and "\n" not in text


def test_damage_anywhere_is_refused_as_no_take(tmp_path: Path) -> None:
    path = tmp_path / "damaged.take"
    whole = (CAPTURES / "virtual-loss.take").read_bytes()
    chance = random.Random(5)
    refused = 0
    for number in range(300):
        data = bytearray(whole)
        # Most changes are in the first page, which has the schema with all names.
        for _ in range(chance.choice((3, 30, 200))):
            data[chance.randrange(100, 4096 if number % 3 else len(data))] = chance.randrange(256)
        path.write_bytes(data)
        try:
            retake.open(path).close()
        except retake.NoTake as error:
            refused += 1
            assert str(error).startswith(str(path)) and "\n" not in str(error)
    assert refused > 50


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.take"
    shutil.copy(CAPTURES / "virtual-loss.take", path)
    base = sqlite3.connect(path)
    base.execute("UPDATE take SET label = CAST(x'ff80' AS TEXT)")
    base.commit()
    base.close()
    with pytest.raises(retake.NoTake, match="odd.take"):
        retake.open(path)


def cells(name: str) -> list[str]:
    """Returns the lines of a notebook's code."""
    notebook = json.loads((ROOT / "Sources/Python/notebooks" / name).read_text())
    return [
        line if line.endswith("\n") else line + "\n"
        for cell in notebook["cells"] if cell["cell_type"] == "code" for line in cell["source"]]


@pytest.fixture
def notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the current folder, in which charts are drawn without a screen."""
    import matplotlib

    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RETAKE", RETAKE)
    return tmp_path


def test_the_notebook_of_a_take_runs(notebooks: Path) -> None:
    shutil.copy(CAPTURES / "virtual-heavy-loss.take", notebooks / "call.take")
    lines = cells("a-take.ipynb")
    assert sum(bool(line.strip()) for line in lines) <= 10
    exec("".join(lines), {})
    assert (notebooks / "bitrate.png").stat().st_size > 5_000


def test_the_notebook_of_a_fleet_runs(notebooks: Path, corpus: Path) -> None:
    (notebooks / "takes").symlink_to(corpus)
    space: dict = {}
    exec("".join(cells("a-fleet.ipynb")), space)
    assert len(space["times"]) == 8 and list(space["delays"].columns) == [
        "jitter buffer 200 ms", "jitter buffer 60 ms"]
    for name in ("setup.png", "delays.png"):
        assert (notebooks / name).stat().st_size > 5_000
