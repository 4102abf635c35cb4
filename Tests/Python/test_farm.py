"""Tests thousands of takes in batches: none is lost, and none counts twice."""

import functools
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import RETAKE, demo, fleet, fleet_text
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
    # In the schema, where SQLite quotes what it finds.
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
    """Returns an executable that runs for ever over takes, and records its processes."""
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


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
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
    # The next run removes what it left; of what has just begun, nobody knows yet whose it is.
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
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and len(errors.splitlines()) == 1, errors
    # Only publish goes on where it was.
    assert ("goes on" in errors) == (words[0] == "publish")
    assert not any(map(is_running, processes(tmp_path)))
    assert not list(tmp_path.glob("retake-fleet-*"))


def test_an_interrupted_query_ends(lake: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "retake_takes.fleet.cli", "sql", str(lake),
         "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(5)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, errors) == (130, "retake-fleet: it was interrupted\n")


@pytest.mark.parametrize("words, part", [
    (("whatif", "--jitter-buffer", "abc"), "abc"),
    (("whatif", "--jitter-buffer", "60", "--set", "nonsense=4"), "there is no setting nonsense"),
    (("whatif", "--drop", "garbage("), "garbage("),
    (("whatif", "--build", RETAKE, "--build", "nosuch"), "nosuch: the program is not there"),
    (("whatif", "--build", RETAKE, "--build", "/bin/true"), "/bin/true: it is another program"),
    (("import", "--to", "TAKES", "--tag", "Bad=x"), "Bad=x"),
    (("import", "--to", "TAKES", "--keys", "/nonexistent"), "--keys"),
    (("verify", "--retake", "/bin/true"), "/bin/true: it is another program"),
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
    began = time.monotonic()
    done = fleet_text(
        words[0], place, *(tmp_path / "takes" if word == "TAKES" else word for word in words[1:]),
        status=1)
    assert part in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert "executable=" not in done.stderr and time.monotonic() - began < 60
    assert not (tmp_path / "takes").exists()


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "soon"])
def test_a_batch_has_a_duration(corpus: Path, seconds: str) -> None:
    assert "--batch-seconds" in fleet_text(
        "verify", corpus, "--batch-seconds", seconds, status=2).stderr


# Ray: two nodes on this machine


def ray_program() -> str:
    pytest.importorskip("ray")
    return os.path.join(os.path.dirname(sys.executable), "ray")


class Cluster:
    """Two nodes with one core each; the head has none, so that each node can be ended."""

    def __init__(self, folder: Path) -> None:
        self.nodes: list[set[int]] = []
        self.environment = {
            **os.environ, "RAY_USAGE_STATS_ENABLED": "0",
            # A cluster's nodes and drivers share a token.
            "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        try:
            self.start("--head", f"--port={port}", "--num-cpus=0", "--include-dashboard=false",
                       f"--temp-dir={folder}")
            for _ in range(2):
                self.start(f"--address={self.address}", "--num-cpus=1")
        except BaseException:
            self.stop()
            raise

    def start(self, *words: str) -> None:
        before = raylets()
        done = subprocess.run(
            [ray_program(), "start", *words, "--node-ip-address=127.0.0.1",
             "--object-store-memory=100000000"],
            env=self.environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        self.nodes.append(raylets() - before)

    def kill(self, number: int) -> None:
        """Kills a node as if its machine lost power."""
        for process in self.nodes[number]:
            os.kill(process, signal.SIGKILL)

    def stop(self) -> None:
        """Ends the processes that it started, and no others."""
        for process in children_of(self.folder):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass


def raylets() -> set[int]:
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    command = file.read().split(b"\0")[0]
            except OSError:
                continue
            if command.endswith(b"/raylet"):
                found.add(int(name))
    return found


def children_of(folder: Path) -> list[int]:
    """Returns a cluster's processes: their command lines contain its folder."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if str(folder).encode() in file.read():
                        found.append(int(name))
            except OSError:
                continue
    return found


def test_a_node_that_is_killed_loses_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    ray_program()
    takes = tmp_path_factory.mktemp("takes")
    for number in range(30):
        demo(takes / f"{number:02d}.take", number, seconds="1")
    # Ray's sockets are in its folder, and their paths must be short.
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder:
        cluster = Cluster(Path(folder))
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "retake_takes.fleet.cli", "verify", str(takes), "--ray",
                 cluster.address, "--batch-seconds", "0.5", "--json"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=cluster.environment)
            # By then some batches are done and others run, on both nodes.
            time.sleep(8)
            cluster.kill(2)
            output, errors = process.communicate(timeout=300)
        finally:
            cluster.stop()
    assert process.returncode == 0, errors
    found = json.loads(output)
    names = [row["take"] for row in found["results"]]
    assert names == sorted(str(path) for path in takes.glob("*.take"))
    assert found["failed"] == 0 and found["not_run"] == 0
