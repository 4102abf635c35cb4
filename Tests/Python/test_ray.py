"""Tests farms of several machines with Ray: two nodes on this one."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import RETAKE, demo
from retake_takes.fleet import probe
from test_farm import LIMIT, processes, wait_for


def ray_program() -> str:
    pytest.importorskip("ray")
    return os.path.join(os.path.dirname(sys.executable), "ray")


class Cluster:
    """Two nodes with one core each; the head has none, so that each node can be ended."""

    def __init__(self, folder: Path, *, has_package: bool = True) -> None:
        """Starts the nodes; without the package, their Python cannot import it."""
        self.nodes: list[set[int]] = []
        # The environment of drivers.
        self.environment = {
            **os.environ, "RAY_USAGE_STATS_ENABLED": "0",
            # A cluster's nodes and drivers share a token.
            "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }
        self.node_environment = {
            name: value for name, value in self.environment.items()
            if has_package or name != "PYTHONPATH"}
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
            env=self.node_environment, capture_output=True, text=True, timeout=LIMIT)
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


def run_on(cluster: Cluster, *words: object) -> subprocess.CompletedProcess[str]:
    """Runs retake-fleet on a cluster."""
    return subprocess.run(
        [sys.executable, "-m", "retake_takes.fleet.cli", *map(str, words), "--ray",
         cluster.address], capture_output=True, text=True, env=cluster.environment, timeout=LIMIT)


def test_a_node_without_the_package_is_named(corpus: Path) -> None:
    ray_program()
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder:
        cluster = Cluster(Path(folder), has_package=False)
        try:
            done = run_on(cluster, "verify", corpus)
        finally:
            cluster.stop()
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    for words in (
        f"the package retake-takes is missing on node {socket.gethostname()} (",
        "No module named 'retake_takes'", " -m pip install 'RETAKE/Sources/Python[fleet,ray]'",
    ):
        assert words in done.stderr, done.stderr
    assert not done.stdout


@pytest.mark.parametrize("missing, words", [
    (("package", "No module named 'retake_takes'", "/usr/bin/python3"),
     "the package retake-takes is missing on node b (10.0.0.2) (No module named 'retake_takes'): "
     "/usr/bin/python3 -m pip install"),
    (("version", "0.0.9", "/usr/bin/python3"),
     "node b (10.0.0.2) has version 0.0.9 of the package retake-takes, and this machine 0.1.0: "
     "/usr/bin/python3 -m pip install"),
    (("program", "/opt/retake", "/usr/bin/python3"),
     "the program /opt/retake is missing on node b (10.0.0.2): install Retake there"),
])
def test_what_a_node_lacks_is_one_sentence(missing: tuple[str, str, str], words: str) -> None:
    text = probe.sentence("b (10.0.0.2)", missing, "0.1.0")
    assert text.startswith(words) and "\n" not in text


def test_a_node_lacks_another_version_or_a_program() -> None:
    import retake_takes

    version = retake_takes.__version__
    assert probe.lack(version, [RETAKE]) is None
    assert probe.lack("0.0.0", [RETAKE]) == ("version", version, sys.executable)
    assert probe.lack(version, ["/nonexistent"]) == (
        "program", "/nonexistent", sys.executable)


def counting(folder: Path) -> Path:
    """Returns an executable that records each start on takes, and then runs Retake."""
    program = folder / "counting"
    program.write_text(
        f"""#!/bin/sh
case "$*" in */nonexistent/*) ;; *) echo $$ >> {folder}/processes;; esac
exec {RETAKE} "$@"
""")
    program.chmod(0o755)
    return program


def test_a_node_that_is_killed_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
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
                 cluster.address, "--batch-seconds", "0.5", "--json", "--retake",
                 str(counting(tmp_path))],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=cluster.environment)
            # By then both nodes have begun a batch, and some are done.
            wait_for(lambda: len(processes(tmp_path)) >= 4)
            cluster.kill(2)
            output, errors = process.communicate(timeout=LIMIT)
        finally:
            cluster.stop()
    assert process.returncode == 0, errors
    found = json.loads(output)
    names = [row["take"] for row in found["results"]]
    assert names == sorted(str(path) for path in takes.glob("*.take"))
    assert found["failed"] == 0 and found["not_run"] == 0
