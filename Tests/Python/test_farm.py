"""Tests batches of thousands of takes: none is lost, and none counts twice."""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import RETAKE, fleet, fleet_text
from retake_takes.fleet import farm, storage
from retake_takes.fleet.storage import Source


def named(count: int) -> list[Source]:
    return [Source(f"take-{number:04d}", "", 0) for number in range(count)]


def echo(sources: Sequence[Source]) -> list[str]:
    return [source.name for source in sources]


def fatal(folder: str, sources: Sequence[Source]) -> list[str]:
    """Ends its process once, in the middle, as if the system had killed it."""
    mark = os.path.join(folder, "died")
    if any(source.name == "take-0021" for source in sources) and not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return echo(sources)


def always_fatal(sources: Sequence[Source]) -> list[str]:
    if any(source.name == "take-0003" for source in sources):
        os.kill(os.getpid(), signal.SIGKILL)
    return echo(sources)


def results(done: list) -> list[str]:
    return sorted(name for one in done if one.result is not None for name in one.result)


def test_every_take_is_processed_once() -> None:
    done = list(farm.LocalFarm(3).run(named(200), echo, 0.05))
    assert results(done) == echo(named(200))
    assert all(one.result is not None for one in done)


def test_a_process_that_dies_loses_nothing(tmp_path: Path) -> None:
    done = list(farm.LocalFarm(2).run(
        named(60), functools.partial(fatal, str(tmp_path)), 0.05))
    assert (tmp_path / "died").exists()
    assert results(done) == echo(named(60))


def test_a_take_that_always_kills_its_process_is_reported() -> None:
    done = list(farm.LocalFarm(1).run(named(8), always_fatal, 0.001))
    failed = [source.name for one in done if one.result is None for source in one.sources]
    assert "take-0003" in failed
    assert sorted(results(done) + failed) == echo(named(8))


class Odd(Exception):
    """An exception that can be pickled, but not read again."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)


def odd(sources: Sequence[Source]) -> list[str]:
    if any(source.name == "take-0003" for source in sources):
        raise Odd("something\nelse", 3)
    return echo(sources)


def test_an_exception_fails_one_take_and_not_its_batch() -> None:
    done = list(farm.LocalFarm(2).run(named(30), odd, 5))
    failed = [one for one in done if one.result is None]
    assert [(one.sources[0].name, len(one.sources), one.reason) for one in failed] == [
        ("take-0003", 1, "Odd: something else")]
    assert results(done) == [name for name in echo(named(30)) if name != "take-0003"]


def sleepy(sources: Sequence[Source]) -> list[str]:
    if any(source.name == "take-0000" for source in sources):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.2)
    return echo(sources)


def test_a_process_that_dies_takes_no_other_batch_with_it() -> None:
    done = list(farm.LocalFarm(3).run(named(12), sleepy, 0.001))
    assert [source.name for one in done if one.result is None for source in one.sources] == [
        "take-0000"]
    assert results(done) == echo(named(12))[1:]


def spoil(folder: Path, corpus: Path) -> Path:
    """Returns a folder with three good takes, a dangling link and a damaged take."""
    folder.mkdir()
    for number in range(3):
        shutil.copy(corpus / f"call-{number}.take", folder)
    (folder / "zz.take").symlink_to("/nonexistent")
    data = bytearray((corpus / "call-3.take").read_bytes())
    # Damages the schema, which SQLite quotes in its message.
    place = data.index(b"CREATE TABLE")
    data[place:place + 12] = b"\xff\xfe" * 6
    (folder / "damaged.take").write_bytes(data)
    return folder


@pytest.mark.parametrize("words", [
    ("verify",), ("findings",), ("whatif", "--jitter-buffer", "200")], ids=lambda words: words[0])
def test_unreadable_takes_fail_alone_with_their_reasons(
    words: tuple[str, ...], corpus: Path, tmp_path: Path
) -> None:
    takes = spoil(tmp_path / "takes", corpus)
    done = fleet_text(*words, takes, "--json", status=1)
    lines = done.stderr.strip().splitlines()
    assert not [line for line in lines if "call-" in line or "Traceback" in line], done.stderr
    found = json.loads(done.stdout)
    assert [line for line in lines if f"{takes}/zz.take: " in line and "no such file" in line]
    if words[0] == "verify":
        results = {Path(row["take"]).stem: row["result"] for row in found["results"]}
        assert [results[f"call-{number}"] for number in range(3)] == ["passed"] * 3
        assert results.get("damaged", "failed") == "failed"
    else:
        assert len([line for line in lines if "damaged.take: " in line]) == 1, done.stderr
    if words[0] == "whatif":
        assert (found["takes"], found["failed"]) == (3, 2)


def test_batches_reach_the_requested_duration() -> None:
    queue = farm.Queue(named(1000), 5, 2)
    first = queue.next()
    assert first is not None and len(first.sources) == 4
    assert queue.finish(first, (0.4, echo(first.sources))) == farm.Done(
        first.sources, echo(first.sources))
    second = queue.next()
    assert second is not None and len(second.sources) == 50
    sizes = []
    while batch := queue.next():
        sizes.append(len(batch.sources))
    # The last batches are shorter, but not so short that starting the executable costs more.
    assert sum(sizes) == 946 and max(sizes) == 50 and sizes == sorted(sizes, reverse=True)
    assert min(sizes[:-1]) == 5 and 1 <= sizes[-1] <= 5


def test_shards_cover_everything() -> None:
    sources = named(23)
    shards = [storage.shard_of(sources, f"{number}/5") for number in range(1, 6)]
    assert Counter(source.name for shard in shards for source in shard) == Counter(echo(sources))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_takes_are_verified_and_searched(corpus: Path, tmp_path: Path) -> None:
    found = fleet("verify", corpus, "--out", tmp_path / "results.parquet")
    assert (found["takes"], found["failed"], found["not_run"]) == (11, 0, 0)
    parts = [fleet("verify", corpus, "--shard", f"{number}/3") for number in (1, 2, 3)]
    assert sorted(row["take"] for part in parts for row in part["results"]) == [
        row["take"] for row in found["results"]]
    causes = fleet("findings", corpus, "--severity", "low")["findings"]
    assert {"loss"} <= {row["id"] for row in causes}
    assert "percent" in fleet_text("findings", corpus).stdout


def test_captures_become_takes_once(tmp_path: Path, corpus: Path) -> None:
    import retake_takes

    captures, takes = tmp_path / "captures", tmp_path / "takes"
    captures.mkdir()
    for number in (1, 2):
        retake_takes.command.run([
            "export", str(corpus / f"call-{number}.take"), "--pcapng",
            str(captures / f"{number}.pcapng")])
    (captures / "broken.pcap").write_text("nothing")
    # A pin is JSON, too, but not a dump.
    (captures / "1.pin.json").write_text('{"mode": "meaning"}')
    done = fleet("import", captures, "--to", takes, "--tag", "source=farm", status=1)
    assert done["failed"] == 1 and len(done["results"]) == 2
    for row in done["results"]:
        with retake_takes.open(row["take"]) as take:
            assert take.tags == {"source": "farm"}
    text = fleet_text("import", captures, "--to", takes, status=1).stderr
    assert text.count("broken.pcap") == 1, text
    (captures / "broken.pcap").unlink()
    again = fleet("import", captures, "--to", takes)
    assert {row["result"] for row in again["results"]} == {"there"}


def stalled(folder: Path) -> Path:
    """Returns an executable that never finishes a take, and records its processes."""
    program = folder / "stalled"
    program.write_text(
        f"""#!/bin/sh
case "$*" in */nonexistent/*) exec {RETAKE} "$@";; esac
echo $PPID >> {folder}/processes
echo $$ >> {folder}/processes
exec sleep 600
""")
    program.chmod(0o755)
    return program


def started(folder: Path, words: Sequence[object]) -> subprocess.Popen[str]:
    """Starts retake-fleet, and returns once both workers run the executable."""
    process = subprocess.Popen(
        [sys.executable, "-m", "retake_takes.fleet.cli", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(folder)})
    wait_for(lambda: len(processes(folder)) == 4)
    return process


def processes(folder: Path) -> list[int]:
    path = folder / "processes"
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def is_running(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


LIMIT = 900
"""The maximum number of seconds that anything may take on a busy machine."""


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_workers_end_with_their_parent(corpus: Path, tmp_path: Path) -> None:
    process = started(tmp_path, (
        "publish", corpus, "--to", tmp_path / "lake", "--jobs", "2", "--retake",
        stalled(tmp_path)))
    process.kill()
    process.wait()
    wait_for(lambda: not any(map(is_running, processes(tmp_path))))
    # The next run removes the folders left behind, except new ones, which their owner may not have
    # locked yet.
    left = list(tmp_path.glob("retake-fleet-*"))
    assert left
    for path in left:
        os.utime(path, (0, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path))
        fleet("verify", corpus / "call-0.take")
    assert not list(tmp_path.glob("retake-fleet-*"))


@pytest.mark.parametrize("words", [("verify",), ("publish", "--to", "LAKE")])
def test_an_interrupt_ends_all_at_once(
    words: tuple[str, ...], corpus: Path, tmp_path: Path
) -> None:
    process = started(tmp_path, (
        *(str(tmp_path / "lake") if word == "LAKE" else word for word in words), corpus,
        "--jobs", "2", "--retake", stalled(tmp_path)))
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 130 and len(errors.splitlines()) == 1, errors
    # Only publish continues where it was interrupted.
    assert ("continues" in errors) == (words[0] == "publish")
    assert not any(map(is_running, processes(tmp_path)))
    assert not list(tmp_path.glob("retake-fleet-*"))


def processor_seconds(process: int) -> float:
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


INTERRUPTED_IMPORT = """
import sys
class Interrupt:
    def find_spec(self, name, *rest):
        if name == "retake_takes.fleet.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from retake_takes.start import main
main()
"""


def test_an_interrupt_while_modules_are_imported_is_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "retake-fleet: it was interrupted\n")


def test_an_interrupted_query_ends(lake: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "retake_takes.fleet.cli", "sql", str(lake),
         "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        # Starting needs far less processor time than this.
        wait_for(lambda: processor_seconds(process.pid) > 8)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    assert (process.returncode, errors) == (130, "retake-fleet: it was interrupted\n")


@pytest.mark.parametrize("words, part", [
    (("whatif", "--jitter-buffer", "abc"), "abc"),
    (("whatif", "--jitter-buffer", "60", "--set", "nonsense=4"), "there is no setting nonsense"),
    (("whatif", "--drop", "garbage("), "garbage("),
    (("whatif", "--build", RETAKE, "--build", "nosuch"), "nosuch: there is no such program"),
    (("whatif", "--build", RETAKE, "--build", "/bin/true"), "/bin/true: it is not retake"),
    (("import", "--to", "TAKES", "--tag", "Bad=x"), "Bad=x"),
    (("import", "--to", "TAKES", "--keys", "/nonexistent"), "--keys"),
    (("verify", "--retake", "/bin/true"), "/bin/true: it is not retake"),
    (("verify", "--retake", "nosuch"), "--retake FILE"),
    (("findings", "--ray", "127.0.0.1:1"), "no cluster answers"),
    (("findings", "--ray", "nonsense"), "HOST:PORT"),
])
def test_a_wrong_option_is_reported_once(
    corpus: Path, tmp_path: Path, words: tuple[str, ...], part: str
) -> None:
    captures = tmp_path / "captures"
    captures.mkdir()
    for number in range(3):
        (captures / f"{number}.pcap").write_bytes(b"")
    place = captures if words[0] == "import" else corpus
    done = fleet_text(
        words[0], place, *(tmp_path / "takes" if word == "TAKES" else word for word in words[1:]),
        status=1)
    assert part in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert "executable=" not in done.stderr
    assert not (tmp_path / "takes").exists()


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "soon"])
def test_a_batch_has_a_duration(corpus: Path, seconds: str) -> None:
    assert "--batch-seconds" in fleet_text(
        "verify", corpus, "--batch-seconds", seconds, status=2).stderr
