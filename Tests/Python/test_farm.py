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
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import demo, fleet, fleet_text
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
    (captures / "broken.pcap").unlink()
    again = fleet("import", captures, "--to", takes)
    assert {row["result"] for row in again["results"]} == {"there"}


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
