"""Tests how the package runs the executable."""

import importlib
import inspect
import pickle
import pkgutil
from pathlib import Path

import pytest
import retake_takes as retake
from conftest import CAPTURES, RETAKE, retake_json

LOSSY = CAPTURES / "virtual-heavy-loss.take"


def test_findings_are_those_of_the_command() -> None:
    found = retake.findings(LOSSY)
    said = retake_json("findings", LOSSY)["findings"]
    assert [cause.id for cause in found] == [one["id"] for one in said]
    assert found.causes[0].symptoms and found.causes[0].severity == said[0]["severity"]
    for cause, one in zip(found, said):
        for name in ("side", "confidence", "reservation", "explanation"):
            assert getattr(cause, name) == one.get(name)
    assert found.causes[0].side == "network" and found.causes[0].confidence == "certain"
    # Symptoms state no side, because their cause states it.
    assert found.causes[0].symptoms[0].side is None
    likely = retake.Finding.of({
        "id": "loss", "severity": "low", "confidence": "likely",
        "reservation": "seen only at one end"})
    assert (likely.confidence, likely.reservation) == ("likely", "seen only at one end")


def test_a_take_replays_identical() -> None:
    assert retake.replay(CAPTURES / "virtual-loss.take").identical
    assert retake.replay(CAPTURES / "virtual-loss.take", skip_codecs=True).identical


def test_takes_are_verified(tmp_path: Path) -> None:
    result = retake.verify(CAPTURES / "virtual-loss.take", jobs=1, reports=tmp_path)
    assert (result.takes, result.failed) == (1, 0)
    assert result.results[0]["result"] == "passed"


def test_what_if_returns_numbers() -> None:
    result = retake.whatif(LOSSY, jitter_buffer=300)
    numbers = {
        outcome.name: outcome.numbers for outcome in result.peers[0].outcomes if outcome.numbers}
    recorded, changed = numbers["mid 0 audio mean delay in the jitter buffer ms"]
    assert changed > recorded and changed > 250
    assert "Open loop" in result.meaning


def test_a_capture_becomes_a_tagged_take(tmp_path: Path) -> None:
    capture, out = tmp_path / "call.pcapng", tmp_path / "call.take"
    from retake_takes import command

    command.run(["export", str(CAPTURES / "virtual-loss.take"), "--pcapng", str(capture)])
    made = retake.import_(capture, out, decode=True, tags={"site": "berlin"}, label="imported")
    with retake.open(made.take) as take:
        assert (take.label, take.tags) == ("imported", {"site": "berlin"})
    with pytest.raises(retake.CommandError) as refused:
        retake.import_(capture, out)
    assert refused.value.status != 0 and str(out) in str(refused.value)


def test_errors_have_the_executables_messages(tmp_path: Path) -> None:
    with pytest.raises(retake.CommandError) as missing:
        retake.findings(tmp_path / "missing.take")
    assert missing.value.status == 66 and "missing.take" in str(missing.value)
    with pytest.raises(retake.CommandError) as absent:
        retake.replay(LOSSY, executable=tmp_path / "no-retake")
    assert "no-retake" in str(absent.value)
    assert retake.executable(RETAKE) == RETAKE


def exceptions() -> list[type[Exception]]:
    """Returns all classes of exceptions that the package defines."""
    found = set()
    for module in pkgutil.walk_packages(retake.__path__, "retake_takes."):
        for _, one in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(one, Exception) and one.__module__.startswith("retake_takes"):
                found.add(one)
    return sorted(found, key=lambda one: one.__name__)


@pytest.mark.parametrize("kind", exceptions(), ids=lambda kind: kind.__name__)
def test_exceptions_survive_the_way_between_processes(kind: type[Exception]) -> None:
    more = list(inspect.signature(kind.__init__).parameters.values())[2:]
    values = [66 for one in more if one.kind is one.POSITIONAL_OR_KEYWORD]
    error = kind("call.take: it is gone", *values)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (kind, str(error), vars(error))


def test_the_packages_exceptions_are_found() -> None:
    assert {"CommandError", "FleetError", "NoTake"} <= {one.__name__ for one in exceptions()}
