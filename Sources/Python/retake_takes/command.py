"""Functions that need the stack: they call the program `retake` with `--json`."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PathLike = str | os.PathLike[str]
USAGE, NO_INPUT, ABSENT_PROGRAM = 64, 66, 127
UNMET = 2
"""The exit status if a take does not contain what was asked about."""


class CommandError(RuntimeError):
    """The program failed; the text is its error message."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
        """The exit status: 64 wrong usage, 65 no valid take, 66 no such file, 74 I/O."""

    def __reduce__(self) -> tuple[type["CommandError"], tuple[str, int]]:
        # By default, an exception is pickled with its arguments, which are only the text here; a
        # farm's processes also need the status.
        return type(self), (str(self), self.status)


def find_program(path: PathLike | None = None) -> str:
    """Returns the program's path: the given path, or from the variable RETAKE, or from PATH."""
    wanted = os.fspath(path) if path else os.environ.get("RETAKE", "retake")
    found = shutil.which(wanted)
    if not found:
        raise CommandError(
            f"{wanted}: there is no such program; put retake on PATH, name it in RETAKE, or give "
            "executable=", ABSENT_PROGRAM)
    return os.path.abspath(found)


executable = find_program


def run(
    words: Sequence[str], *, executable: PathLike | None = None, good: Iterable[int] = (0,),
    input: str | None = None, timeout: float | None = None,
) -> tuple[int, str]:
    """Runs the program; returns its status and output, or raises its error message."""
    program = find_program(executable)
    done = subprocess.run(
        [program, *words], input=input or "", capture_output=True, encoding="utf-8",
        errors="replace", timeout=timeout)
    if done.returncode not in good:
        lines = done.stderr.strip().splitlines() or [
            f"retake {' '.join(words)}: it ended without a message"]
        status = done.returncode
        raise CommandError(lines[-1].removeprefix("retake: "), status)
    return done.returncode, done.stdout


def _json(
    words: Sequence[str], executable: PathLike | None, good: Iterable[int] = (0,)
) -> tuple[int, dict[str, Any]]:
    status, text = run([*words, "--json"], executable=executable, good=good)
    try:
        result = json.loads(text)
    except ValueError:
        raise CommandError(f"retake {words[0]}: its output is not JSON", status) from None
    if not isinstance(result, dict):
        raise CommandError(f"retake {words[0]}: its output is not a JSON object", status)
    return status, result


@dataclass(frozen=True)
class Finding:
    """A problem: a cause with its symptoms."""

    id: str
    severity: str
    """critical, high, medium, low or info."""
    text: str
    symptoms: tuple["Finding", ...]
    data: Mapping[str, Any] = field(repr=False)
    """The finding as the program reported it."""
    side: str | None = None
    """Where the cause is: network, server, signaling, sender, receiver, end or other-end; None if
    the take does not show it, and for symptoms."""
    confidence: str | None = None
    """certain, likely or possible."""
    reservation: str | None = None
    """Why the finding is not certain, in words."""
    explanation: str | None = None
    """What would have helped, according to a replay; None unless it was requested."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Finding":
        symptoms = tuple(cls.of(one) for one in data.get("symptoms", []))
        return cls(
            data["id"], data["severity"], data.get("text", ""), symptoms, data, data.get("side"),
            data.get("confidence"), data.get("reservation"), data.get("explanation"))


@dataclass(frozen=True)
class Findings:
    """The causes in a take, the most costly first."""

    take: str
    causes: tuple[Finding, ...]
    unseen: tuple[str, ...]
    """What the take does not show, in words."""

    def __iter__(self) -> Any:
        return iter(self.causes)

    def __len__(self) -> int:
        return len(self.causes)


def findings(path: PathLike, *, executable: PathLike | None = None) -> Findings:
    """Returns the findings in a take."""
    _, data = _json(["findings", os.fspath(path)], executable)
    return Findings(
        data["take"], tuple(Finding.of(one) for one in data["findings"]),
        tuple(data.get("unseen", [])))


@dataclass(frozen=True)
class ReplayResult:
    """The result of a replay."""

    identical: bool
    data: Mapping[str, Any] = field(repr=False)


def replay(
    path: PathLike, *, substitute: bool = False, skip_codecs: bool = False,
    executable: PathLike | None = None,
) -> ReplayResult:
    """Runs the complete stack from a take again and compares everything it does."""
    words = ["replay", os.fspath(path)]
    words += ["--substitute"] if substitute else []
    words += ["--skip-codecs"] if skip_codecs else []
    status, data = _json(words, executable, good=(0, 1))
    return ReplayResult(status == 0, data)


@dataclass(frozen=True)
class VerifyResult:
    """The result of running takes as tests."""

    takes: int
    failed: int
    in_part: int
    """How many could be replayed only partly on this machine."""
    results: tuple[Mapping[str, Any], ...]


def verify(
    *paths: PathLike, jobs: int | None = None, reports: PathLike | None = None,
    executable: PathLike | None = None,
) -> VerifyResult:
    """Runs takes or folders of takes as tests."""
    words = ["verify", *(os.fspath(path) for path in paths)]
    words += ["--jobs", str(jobs)] if jobs else []
    words += ["--reports", os.fspath(reports), "--force"] if reports else []
    _, data = _json(words, executable, good=(0, 1))
    return VerifyResult(
        data["takes"], data["failed"], data.get("in_part", 0), tuple(data["results"]))


@dataclass(frozen=True)
class Outcome:
    """One compared outcome."""

    name: str
    recorded: str
    changed: str

    @property
    def numbers(self) -> tuple[float, float] | None:
        """Both values, if they are numbers."""
        try:
            return float(self.recorded), float(self.changed)
        except ValueError:
            return None


@dataclass(frozen=True)
class PeerComparison:
    """One peer's outcomes, as recorded and as changed."""

    peer: int
    label: str
    outcomes: tuple[Outcome, ...]
    freezes_not_counted: int
    data: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class WhatIf:
    """A take run as recorded and with changes."""

    changes: tuple[str, ...]
    meaning: str
    """What the comparison can and cannot show."""
    peers: tuple[PeerComparison, ...]
    left_out: tuple[str, ...]
    """Machines that were not run, described in words."""


def whatif(
    path: PathLike, *, jitter_buffer: int | None = None, drop: Iterable[str] = (),
    delay: Iterable[str] = (), duplicate: Iterable[str] = (), corrupt: Iterable[str] = (),
    set: Mapping[str, Any] | None = None, build: PathLike | None = None, peer: int | None = None,
    seed: int | None = None, executable: PathLike | None = None,
) -> WhatIf:
    """Runs a take with other packets, settings or another build, and compares the outcomes."""
    words = ["whatif", os.fspath(path)]
    words += ["--jitter-buffer", str(jitter_buffer)] if jitter_buffer is not None else []
    for name, selectors in (
        ("--drop", drop), ("--delay", delay), ("--duplicate", duplicate), ("--corrupt", corrupt)
    ):
        for selector in selectors:
            words += [name, selector]
    for key, value in (set or {}).items():
        words += ["--set", f"{key}={value}"]
    words += ["--build", os.fspath(build)] if build else []
    words += ["--peer", str(peer)] if peer is not None else []
    words += ["--seed", str(seed)] if seed is not None else []
    return whatif_of(words, executable)


def whatif_of(words: Sequence[str], executable: PathLike | None) -> WhatIf:
    """Runs `retake whatif` with command-line arguments."""
    # Status 1 means that the takes differ, which is a valid result here.
    _, data = _json(words, executable, good=(0, 1))
    peers = []
    for one in data["peers"]:
        outcomes = tuple(
            Outcome(row["outcome"], row["recorded"], row["changed"]) for row in one["outcomes"])
        peers.append(
            PeerComparison(
                one["peer"], one["label"], outcomes, len(one.get("freezes_not_counted", [])), one))
    return WhatIf(
        tuple(data["changes"]), data["meaning"], tuple(peers), tuple(data.get("left_out", [])))


@dataclass(frozen=True)
class ImportResult:
    """An imported take."""

    take: str
    data: Mapping[str, Any] = field(repr=False)


def import_(
    capture: PathLike, out: PathLike, *, keys: Iterable[PathLike] = (), decode: bool = False,
    tags: Mapping[str, str] | None = None, label: str | None = None, options: Sequence[str] = (),
    force: bool = False, executable: PathLike | None = None,
) -> ImportResult:
    """Imports a packet capture, or another stack's reports, as a take.

    `options` are further arguments for `retake import`.
    """
    words = ["import", os.fspath(capture), "--out", os.fspath(out), *options]
    for path in keys:
        words += ["--keys", os.fspath(path)]
    for key, value in (tags or {}).items():
        words += ["--tag", f"{key}={value}"]
    words += ["--label", label] if label else []
    words += ["--decode"] if decode else []
    words += ["--force"] if force else []
    _, data = _json(words, executable)
    return ImportResult(os.fspath(out), data)
