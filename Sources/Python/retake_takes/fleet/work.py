"""The work that a farm's task does on a batch of takes."""

import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..command import ABSENT_PROGRAM, NO_INPUT, USAGE, CommandError, run
from .reading import Known, Reading, _catalogue, read
from .storage import FleetError, Source, local, short_digest, workspace
from .tables import of_name


_ABSENT = "/nonexistent/retake.take"


def check(program: str, verb: Sequence[str], options: Sequence[str] = ()) -> None:
    """Refuses options that the executable refuses for every take, and other programs."""
    try:
        run([*verb, _ABSENT, *options], executable=program)
    except CommandError as error:
        if error.status == NO_INPUT:
            return
        if error.status == USAGE:
            # Drops the reference to the executable's help, which does not apply to this command.
            text = str(error).split(" (see retake ")[0]
            raise FleetError(text) from None
        if error.status == ABSENT_PROGRAM:
            raise FleetError(f"{program}: there is no such program") from None
    except OSError as error:
        raise FleetError(f"{program}: it cannot be run: {error.strerror}") from None
    raise FleetError(f"{program}: it is not retake")


@dataclass
class Outcome:
    """A batch's outcome: rows for the results table, and takes that failed."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)


def verify(
    executable: str | None, mode: str | None, reports: str | None, sources: Sequence[Source]
) -> Outcome:
    """Runs takes as tests."""
    outcome = Outcome()
    with local([source for source in sources if source.is_remote]) as (folder, fetched):
        remote = iter(fetched)
        # Local takes are verified in place, because a pin may be next to them.
        names = {
            next(remote) if source.is_remote else source.name: source.name for source in sources}
        place = reports or os.path.join(folder, "reports")
        words = ["verify", *names, "--jobs", "1", "--json", "--reports", place, "--force"]
        words += ["--mode", mode] if mode else []
        _, text = run(words, executable=executable, good=(0, 1, 65))
        for result in json.loads(text)["results"]:
            name = names.get(result["take"], result["take"])
            outcome.rows.append({
                "take": name, "result": result["result"], "kind": result["kind"],
                "mode": result["mode"], "steps": result["steps"],
                "duration_ns": result["duration_ns"], "elapsed_ns": result["elapsed_ns"],
                "reason": result.get("reason", ""),
            })
    return outcome


def rows_of(table: str, executable: str | None, sources: Sequence[Source]) -> Outcome:
    """Returns the rows that `retake sql` computes per take for a table: `finding` or `take`."""
    outcome = Outcome()
    wanted = of_name(table)
    if wanted is None:
        raise FleetError(f"{table}: there is no such table")
    tables = [wanted]
    head = of_name("take")
    if head is not None and table != "take":
        tables.append(head)
    with local(sources) as (folder, paths):
        said, reasons = _catalogue(folder, tables, executable)
        for source, path in zip(sources, paths):
            name = os.path.basename(path)
            if name not in said:
                reason = reasons.get(name, "retake sql did not report it")
                outcome.failures.append((source.name, reason))
                continue
            for row in said[name].get(table, []):
                outcome.rows.append({"take": source.name, **dict(zip(wanted.names, row))})
    return outcome


def heads(executable: str | None, sources: Sequence[Source]) -> Outcome:
    """Returns each take's row of the table `take`, with its tags as further columns."""
    outcome = Outcome()
    tables = [table for name in ("take", "tag") if (table := of_name(name))]
    with local(sources) as (folder, paths):
        said, reasons = _catalogue(folder, tables, executable)
        for source, path in zip(sources, paths):
            name = os.path.basename(path)
            if name not in said:
                reason = reasons.get(name, "retake sql did not report it")
                outcome.failures.append((source.name, reason))
                continue
            tags = {f"tag_{key}": value for key, value in said[name].get("tag", [])}
            for row in said[name]["take"]:
                outcome.rows.append(
                    {"take": source.name, **dict(zip(tables[0].names, row)), **tags})
    return outcome


def import_(
    executable: str | None, out: str, options: tuple[str, ...], sources: Sequence[Source]
) -> Outcome:
    """Imports captures and dumps as takes; existing takes stay as they are."""
    outcome = Outcome()
    for source in sources:
        name = os.path.basename(source.name) + "-" + short_digest(source.name)[:8] + ".take"
        target = os.path.join(out, name)
        row = {"capture": source.name, "take": target, "result": "there"}
        if not os.path.exists(target):
            with local([source], suffix="") as (_, paths):
                try:
                    run(["import", paths[0], "--out", target, *options], executable=executable)
                    row["result"] = "made"
                except CommandError as error:
                    outcome.failures.append(
                        (source.name, str(error).replace(paths[0], source.name)))
                    continue
        outcome.rows.append(row)
    return outcome


@dataclass
class Staged:
    """Takes that were read, with a compressed file of their rows."""

    reading: Reading
    file: bytes


def stage(
    executable: str | None, packets: bool, known: Known, sources: Sequence[Source]
) -> Staged:
    """Reads takes for publishing."""
    with workspace() as folder:
        path = os.path.join(folder, "read.sqlite")
        reading = read(sources, path, packets=packets, executable=executable, known=known)
        with open(path, "rb") as file:
            return Staged(reading, zlib.compress(file.read(), 1))
