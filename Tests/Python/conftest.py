"""The tests' common fixtures: the executable, and a small corpus made with it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Sources/Python"))
# Processes that tests and farms start need the package's path, too.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT / "Sources/Python"), os.environ.get("PYTHONPATH", "")])
SITES = ("berlin", "osaka", "lima")


def find_retake() -> str:
    wanted = os.environ.get("RETAKE")
    places = [wanted] if wanted else [
        str(ROOT / ".build/debug/retake"), str(ROOT / ".build/release/retake")]
    for place in places:
        if os.access(place, os.X_OK):
            return place
    raise RuntimeError("the executable is not there: make test-python builds it")


RETAKE = find_retake()
os.environ["RETAKE"] = RETAKE
CAPTURES = ROOT / "Captures"


def demo(path: Path, seed: int, *words: str, loss: int = 0, seconds: str = "1.5") -> Path:
    """Returns a short call in virtual time."""
    subprocess.run(
        [RETAKE, "record", "demo", "--seconds", seconds, "--seed", str(seed), "--loss", str(loss),
         "--jitter", "30", "--delay", "20", "--size", "64x64", "--frame-rate", "10",
         "--out", str(path), *words],
        check=True, capture_output=True)
    return path


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns tagged takes of calls with and without loss, of a room, and of observed calls."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(8):
        demo(
            folder / f"call-{number}.take", number + 1, "--label", f"call {number}",
            "--tag", f"site={SITES[number % 3]}", "--tag", f"build={40 + number // 4}",
            "--tag", f"network={'wifi' if number % 2 else 'cellular'}",
            loss=[0, 4, 8, 12][number % 4])
    for name in ("janus-room", "observed-aiortc", "chromium-peer-offers"):
        shutil.copy(CAPTURES / f"{name}.take", folder / f"{name}.take")
    return folder


@pytest.fixture(scope="session")
def lake(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the corpus published with packets."""
    place = tmp_path_factory.mktemp("lake")
    assert fleet("publish", corpus, "--to", place, "--packets")["added"] == 11
    return place


def fleet_text(*words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs retake-fleet."""
    done = subprocess.run(
        [sys.executable, "-m", "retake_takes.fleet.cli", *map(str, words)],
        capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def fleet(*words: object, status: int = 0) -> dict:
    """Runs retake-fleet with --json and returns its parsed output."""
    import json

    return json.loads(fleet_text(*words, "--json", status=status).stdout)


def retake_json(*words: object) -> object:
    """Returns the parsed JSON output of the executable itself."""
    import json

    done = subprocess.run(
        [RETAKE, *map(str, words), "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def plain(rows: list) -> list:
    """Converts rows so that 1 equals 1.0, and sorts them."""
    def cell(value: object) -> object:
        if isinstance(value, bool) or value is None or isinstance(value, str):
            return value
        return float(f"{float(value):.9g}")
    return sorted((tuple(cell(value) for value in row) for row in rows), key=repr)
