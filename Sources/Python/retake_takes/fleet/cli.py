"""The command `retake-fleet`."""

import argparse
import functools
import json
import os
import sqlite3
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from .. import __version__
from ..command import CommandError, find_program
from ..views import NoTake
from . import whatif as corpus
from . import work
from .farm import Done, make_farm
from .lake import Lake, database, duck_errors, interruptible, literal
from .postgres import Postgres, ask
from .reading import Known, join
from .storage import (
    FleetError, Source, listing, place_of, remove_stale_workspaces, shard_of, without_passwords,
    workspace,
)

_DESCRIPTION = """\
Work with thousands of takes: publish them as tables, verify them, list what went wrong, import
captures, and ask what would have been. On the cores of this machine, or of several with Ray.
"""
_EXAMPLES = """\
examples:
  retake-fleet publish takes/ --to lake/
  retake-fleet sql lake/ "SELECT day, count(*) FROM take GROUP BY day ORDER BY day"
  retake-fleet publish takes/ --to postgresql://localhost/calls
  retake-fleet verify takes/ --shard 3/10
  retake-fleet findings takes/ --ray auto --out findings.parquet
  retake-fleet import captures/ --to takes/
  retake-fleet whatif takes/ --jitter-buffer 60,120,200 --grep 'relay or round_trip > 200'
"""
CAPTURES = (
    ".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz", ".pcap.zst", ".pcapng.zst", ".cap", ".mjr",
    ".rtpdump", ".txt", ".json", ".json.gz", ".gz",
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="retake-fleet", description=_DESCRIPTION, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, help: str, places: str = "takes, and folders or s3:// addresses of them",
             is_work: bool = True) -> argparse.ArgumentParser:
        one = verbs.add_parser(name, help=help, description=help)
        if is_work:
            one.add_argument("places", nargs="+", metavar="FOLDER", help=places)
            one.add_argument("--shard", metavar="3/10",
                             help="only this part of the takes, such as the third of ten")
            one.add_argument("--jobs", type=_whole(1, 1024), metavar="N",
                             help="processes at once; default: one per core")
            one.add_argument("--ray", nargs="?", const="local", metavar="ADDRESS",
                             help="run on Ray: auto for this machine's cluster, a cluster's "
                             "address, or no value to start one here")
            one.add_argument("--batch-seconds", type=_seconds, default=5.0, metavar="S",
                             help="about how long a task should take; default: 5")
            if name != "publish":
                one.add_argument("--out", metavar="FILE", help="write the results as Parquet")
        one.add_argument("--retake", metavar="FILE",
                         help="the retake executable; default: the environment variable RETAKE, "
                         "or retake on PATH")
        one.add_argument("--json", action="store_true", help="print JSON for programs")
        return one

    one = verb("publish", "Publish takes as tables for queries.")
    one.add_argument("--to", required=True, metavar="PLACE",
                     help="a folder, s3://BUCKET/FOLDER, or postgresql://...")
    one.add_argument("--catalogue", metavar="FILE|postgresql://...",
                     help="the catalogue of the lake; default: catalogue.sqlite in its folder")
    one.add_argument("--packets", action="store_true",
                     help="also publish packets, frames, RTCP and levels, a row for each")
    one.add_argument("--compact", action="store_true",
                     help="join small files at the end, and remove replaced ones")
    one.add_argument("--remove-missing", action="store_true",
                     help="remove the takes of files that are no longer in the folders")
    one.add_argument("--commit-takes", type=_whole(1, 1_000_000), default=2000, metavar="N",
                     help="how many takes are written at once; default: 2000")

    one = verb("verify", "Run takes as tests: each must replay as it was recorded or pinned.")
    one.add_argument("--mode", choices=["exact", "meaning"], help="how to compare")
    one.add_argument("--reports", metavar="FOLDER", help="keep the reports of takes that fail")

    one = verb("findings", "List what went wrong, the causes of each take.")
    one.add_argument("--severity", choices=["critical", "high", "medium", "low", "info"],
                     default="medium", help="this severity or worse; default: medium")

    one = verb("import", "Make takes from captures and from reports of other stacks.",
               "captures and dumps, and folders of them")
    one.add_argument("--to", required=True, metavar="FOLDER", help="the folder for the takes")
    one.add_argument("--tag", action="append", default=[], metavar="KEY=VALUE",
                     help="a tag for all of them")
    one.add_argument("--keys", action="append", default=[], metavar="FILE", help="a key log")
    one.add_argument("--decode", action="store_true", help="decode what the ends receive")

    one = verb("whatif", "Run takes with other settings and print the changes over all of them.")
    one.add_argument("--jitter-buffer", default="", metavar="MS,MS",
                     help="the minimum target of all jitter buffers; each value is a setting")
    one.add_argument("--set", action="append", default=[], metavar="NAME=VALUE,VALUE",
                     help="a setting of the peers' configuration")
    for option in ("drop", "delay", "duplicate", "corrupt"):
        one.add_argument(f"--{option}", action="append", default=[], metavar="SELECTOR",
                         help="as in retake whatif")
    one.add_argument("--build", action="append", default=[], metavar="FILE",
                     help="an executable; give two or more, the others are compared with the first")
    one.add_argument("--grep", metavar="CONDITION",
                     help="only takes that match: SQL over the columns of take and its tags, "
                     "as in 'relay or round_trip > 200' or \"tag_site = 'lima'\"")
    one.add_argument("--seed", type=_whole(0, 2**63 - 1), default=1, metavar="N",
                     help="the random seed for selectors and intervals; default: 1")

    one = verb("sql", "Query a lake; its tables are those of a take, with an added column take.",
               is_work=False)
    one.add_argument("lake", metavar="LAKE",
                     help="where the takes were published: a folder, s3:// or postgresql://")
    one.add_argument("query", metavar="QUERY")
    one.add_argument("--catalogue", metavar="FILE|postgresql://...")
    one.add_argument("--take", metavar="ID",
                     help="only the rows of one take, as if querying that take")
    return parser


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(word: str) -> int:
        if word.isdigit() and low <= int(word) <= high:
            return int(word)
        raise argparse.ArgumentTypeError(f"{word}: it must be a whole number from {low} to {high}")
    return read


def _seconds(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = 0
    if not 0 < number <= 3600:
        raise argparse.ArgumentTypeError(f"{word}: it must be a time up to 3600 seconds")
    return number


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Runs the command."""
    options = _parser().parse_args(words)
    try:
        remove_stale_workspaces()
        _check_outputs(options)
        status = _VERBS[options.verb](options)
    except (FleetError, CommandError, NoTake, OSError) as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        text = str(error)
        if isinstance(error, OSError) and error.strerror:
            text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        print(f"retake-fleet: {without_passwords(text)}", file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        more = "; the same command continues where it stopped" if options.verb in _RESUMED else ""
        print(f"retake-fleet: it was interrupted{more}", file=sys.stderr)
        status = 130
    sys.exit(status)


_RESUMED = ("publish", "import")


def _check_outputs(options: argparse.Namespace) -> None:
    """Refuses files that could not be written, before the work."""
    out = getattr(options, "out", None)
    if out is not None:
        place_of(out, "a file of results", ("folder",))
        folder = os.path.dirname(os.path.abspath(out))
        if os.path.isdir(out) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise FleetError(f"--out {out}: no file can be written there")
    if getattr(options, "reports", None) is not None:
        place_of(options.reports, "reports", ("folder",))
        os.makedirs(options.reports, exist_ok=True)


def _program(options: argparse.Namespace) -> str:
    """Returns the executable's path, after checking that it is Retake."""
    try:
        program = find_program(options.retake)
    except CommandError:
        raise FleetError(
            f"{options.retake or os.environ.get('RETAKE', 'retake')}: there is no such program; "
            "put retake on PATH, name it in RETAKE, or give --retake FILE") from None
    work.check(program, ["info"])
    return program


# Work in batches


class Progress:
    """A progress line on a terminal: how many takes are done, and how long the rest will need."""

    def __init__(self, verb: str, count: int, place: str) -> None:
        self._verb, self._count = verb, count
        self._began = time.monotonic()
        self._is_shown = sys.stderr.isatty()
        self.done = 0
        if self._is_shown:
            print(f"{verb}: {count} takes on {place}", file=sys.stderr)

    @property
    def seconds(self) -> float:
        """The time elapsed so far."""
        return time.monotonic() - self._began

    def add(self, count: int, failed: int) -> None:
        """Counts further takes as done, and updates the line."""
        self.done += count
        if self._is_shown:
            rate = self.done / max(self.seconds, 0.001)
            left = (self._count - self.done) / max(rate, 0.001)
            print(f"\r{self._verb}: {self.done} of {self._count}, {failed} failed, "
                  f"{rate:.1f} a second, {left:.0f} s left   ", end="", file=sys.stderr)

    def end(self) -> None:
        """Ends the line."""
        if self._is_shown:
            print(file=sys.stderr)


def _sources(options: argparse.Namespace, endings: Sequence[str] = (".take",)) -> list[Source]:
    places = options.places
    # A pin is a JSON file, as some dumps are, but contains the checks for the take next to it.
    sources = shard_of(listing(places, endings, without=(".pin.json",)), options.shard)
    if not sources and options.shard is None:
        raise FleetError(f"{' '.join(places)}: it contains no file that ends in "
                         + " or ".join(endings))
    return sources


def _run(
    options: argparse.Namespace, sources: Sequence[Source],
    task: Callable[[Sequence[Source]], Any],
) -> Iterator[tuple[Done[Any], Progress]]:
    if not sources:
        return
    programs = [find_program(options.retake), *map(os.path.abspath, getattr(options, "build", []))]
    farm = make_farm(options.ray, options.jobs, programs)
    progress = Progress(options.verb, len(sources), farm.name)
    failed = 0
    for done in farm.run(sources, task, options.batch_seconds):
        failed += len(done.sources) if done.result is None else 0
        progress.add(len(done.sources), failed)
        yield done, progress
    progress.end()


def _outcome(
    options: argparse.Namespace, sources: Sequence[Source],
    task: Callable[[Sequence[Source]], work.Outcome],
) -> tuple[work.Outcome, float]:
    """Returns all results of a verb, in take order, and how many seconds it ran."""
    total = work.Outcome()
    seconds = 0.0
    for done, progress in _run(options, sources, task):
        if done.result is None:
            total.failures += [(source.name, done.reason) for source in done.sources]
        else:
            total.rows += done.result.rows
            total.failures += done.result.failures
        seconds = progress.seconds
    total.rows.sort(key=lambda row: (row["take"], row.get("number", 0)))
    total.failures.sort()
    return total, seconds


def _say_failures(failures: Iterable[tuple[str, str]]) -> None:
    for name, reason in failures:
        # Most messages of the executable begin with the file's name.
        text = without_passwords(reason.removeprefix(name + ": "))
        print(f"retake-fleet: {name}: {text}", file=sys.stderr)


def parquet(rows: Sequence[Mapping[str, Any]], path: str) -> None:
    """Writes rows to one Parquet file."""
    duck = database()
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
        file.flush()
        if rows:
            duck.execute(
                f"COPY (SELECT * FROM read_json({literal(file.name)}, format = "
                f"'newline_delimited', sample_size = -1)) TO {literal(path)} (FORMAT parquet)")
        else:
            duck.execute(
                f"COPY (SELECT NULL AS take WHERE false) TO {literal(path)} (FORMAT parquet)")


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Formats rows as aligned text, with numbers right-aligned."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [
        bool(cells) and all(_is_number(row[place]) for row in cells)
        for place in range(len(columns))]
    widths = [
        max([len(name), *(len(row[place]) for row in cells)])
        for place, name in enumerate(columns)]

    def line(values: Sequence[str]) -> str:
        return "  ".join(
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(values, widths, numeric)).rstrip()

    return "\n".join([line(columns), line(["-" * width for width in widths]), *map(line, cells)])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    text = str(value)
    return "".join(
        letter if letter.isprintable() else f"\\u{{{ord(letter):x}}}" for letter in text)


def _is_number(text: str) -> bool:
    try:
        float(text or "0")
        return True
    except ValueError:
        return False


# Verbs


def _publish(options: argparse.Namespace) -> int:
    program = _program(options)
    kind, to = place_of(options.to, "published takes", ("folder", "s3", "postgresql"))
    if options.remove_missing and options.shard:
        raise FleetError("--remove-missing: a shard does not list all files, so leave out --shard")
    began = time.monotonic()
    sources = _sources(options)
    target: Lake | Postgres
    target = Postgres(to) if kind == "postgresql" else Lake(to, options.catalogue, create=True)
    with target:
        held = target.held()
        new = [source for source in sources if not held.is_current(source, options.packets)]
        task = functools.partial(
            work.stage, program, options.packets,
            Known(held.complete(options.packets), held.with_packets()))
        failures: list[tuple[str, str]] = []
        added, completed, removed, read, waiting = 0, 0, 0, 0, 0
        with workspace() as folder:
            staged = os.path.join(folder, "staged.sqlite")
            for done, _ in _run(options, new, task):
                if done.result is None:
                    failures += [(source.name, done.reason) for source in done.sources]
                    continue
                failures += done.result.reading.failures
                if not done.result.reading.seen:
                    continue
                read += done.result.reading.bytes
                waiting += len(done.result.reading.takes)
                path = os.path.join(folder, "read.sqlite")
                with open(path, "wb") as file:
                    file.write(zlib.decompress(done.result.file))
                join(staged, path)
                if waiting >= options.commit_takes:
                    change = target.append(staged)
                    added, completed = added + change.added, completed + change.completed
                    os.unlink(staged)
                    waiting = 0
            if os.path.exists(staged):
                change = target.append(staged)
                added, completed = added + change.added, completed + change.completed
        missing = held.missing(_absolute(options.places), sources)
        if options.remove_missing:
            removed = len(target.forget(missing).delete)
        if options.compact and isinstance(target, Lake):
            target.compact()
    _say_failures(sorted(failures))
    result = {
        "to": without_passwords(options.to), "takes": len(sources), "added": added,
        "completed": completed, "present": len(sources) - added - completed - len(failures),
        "failed": len(failures), "missing": len(missing), "removed": removed, "read_bytes": read,
        "elapsed_seconds": round(time.monotonic() - began, 3),
    }
    if options.json:
        print(json.dumps(result))
    else:
        words = [f"{added} takes added", f"{result['present']} already there"]
        words += [f"{completed} completed"] if completed else []
        words += [f"{removed} removed"] if removed else []
        words += [f"{len(missing)} files are gone, but their takes stay (--remove-missing)"] if (
            missing and not options.remove_missing) else []
        print(f"{result['to']}: {', '.join(words)}, {len(failures)} failed, "
              f"{result['elapsed_seconds']:.1f} s")
    return 1 if failures else 0


def _absolute(places: Sequence[str]) -> list[str]:
    """Returns places with absolute paths for folders, which their files' names begin with."""
    kinds = [place_of(place, "takes", ("folder", "s3")) for place in places]
    return [place if kind == "s3" else os.path.abspath(place) for kind, place in kinds]


def _verify(options: argparse.Namespace) -> int:
    task = functools.partial(
        work.verify, _program(options), options.mode, options.reports)
    sources = _sources(options)
    total, seconds = _outcome(options, sources, task)
    failed = [row for row in total.rows if row["result"] == "failed"]
    if options.out:
        parquet(total.rows, options.out)
    _say_failures(total.failures)
    if options.json:
        print(json.dumps({
            "takes": len(total.rows), "failed": len(failed), "not_run": len(total.failures),
            "elapsed_seconds": round(seconds, 3), "results": total.rows}))
    else:
        if failed:
            columns = ("take", "kind", "reason")
            print(table(columns, [[row[name] for name in columns] for row in failed]))
        print(f"{len(total.rows)} takes, {len(failed)} failed, {len(total.failures)} not run, "
              f"{seconds:.1f} s")
    return 1 if failed or total.failures else 0


_SEVERITIES = ("critical", "high", "medium", "low", "info")


def _findings(options: argparse.Namespace) -> int:
    task = functools.partial(work.rows_of, "finding", _program(options))
    sources = _sources(options)
    total, seconds = _outcome(options, sources, task)
    wanted = _SEVERITIES[:_SEVERITIES.index(options.severity) + 1]
    causes = [row for row in total.rows if not row["depth"] and row["severity"] in wanted]
    if options.out:
        parquet(total.rows, options.out)
    _say_failures(total.failures)
    if options.json:
        print(json.dumps({"findings": causes, "not_run": len(total.failures)}))
        return 1 if total.failures else 0
    counts: dict[tuple[str, str], set[str]] = {}
    for row in causes:
        counts.setdefault((row["id"], row["severity"]), set()).add(row["take"])
    ordered = sorted(counts.items(), key=lambda one: (-len(one[1]), one[0]))
    print(table(
        ("takes", "percent", "finding", "severity"),
        [[len(takes), 100 * len(takes) / len(sources), *key] for key, takes in ordered]))
    print(f"{len(sources)} takes, {len({row['take'] for row in causes})} with findings, "
          f"{seconds:.1f} s")
    return 1 if total.failures else 0


def _import(options: argparse.Namespace) -> int:
    program = _program(options)
    place_of(options.to, "imported takes", ("folder",))
    words: list[str] = []
    for tag in options.tag:
        words += ["--tag", tag]
    for path in options.keys:
        if not os.path.isfile(path):
            raise FleetError(f"--keys {path}: there is no such file")
        words += ["--keys", os.path.abspath(path)]
    words += ["--decode"] if options.decode else []
    work.check(program, ["import"], ["--out", "/nonexistent/retake.take", *words])
    os.makedirs(options.to, exist_ok=True)
    task = functools.partial(
        work.import_, program, os.path.abspath(options.to), tuple(words))
    total, seconds = _outcome(options, _sources(options, CAPTURES), task)
    if options.out:
        parquet(total.rows, options.out)
    _say_failures(total.failures)
    made = sum(row["result"] == "made" for row in total.rows)
    if options.json:
        print(json.dumps({"results": total.rows, "failed": len(total.failures)}))
    else:
        print(f"{options.to}: {made} takes made, {len(total.rows) - made} already there, "
              f"{len(total.failures)} captures failed, {seconds:.1f} s")
    return 1 if total.failures else 0


def _whatif(options: argparse.Namespace) -> int:
    settings = corpus.settings_of(
        jitter_buffer=[word for word in options.jitter_buffer.split(",") if word],
        assignments=options.set,
        selectors=[(name, selector) for name in ("drop", "delay", "duplicate", "corrupt")
                   for selector in getattr(options, name)],
        builds=options.build, seed=options.seed)
    program = _program(options)
    for build in options.build:
        work.check(os.path.abspath(build), ["info"])
    for setting in settings:
        work.check(setting.program or program, ["whatif"], setting.words)
    sources = _sources(options)
    runs: list[corpus.TakeRun] = []
    if options.grep:
        sources, failures = _chosen(options, program, sources)
        runs += [corpus.TakeRun(name, failure=reason) for name, reason in failures]
    task = functools.partial(corpus.run, settings, program)
    seconds = 0.0
    for done, progress in _run(options, sources, task):
        seconds = progress.seconds
        runs += done.result if done.result is not None else [
            corpus.TakeRun(source.name, failure=done.reason) for source in done.sources]
    found = corpus.report(runs, settings, options.seed)
    if options.out:
        parquet(corpus.rows(runs), options.out)
    _say_failures(found.failures)
    if options.json:
        print(json.dumps({
            "takes": found.takes, "failed": len(found.failures),
            "lines": [
                {"setting": line.setting, "measure": line.measure, "takes": line.takes,
                 "recorded": line.recorded, "changed": line.changed,
                 "difference": line.difference.mean, "low": line.difference.low,
                 "high": line.difference.high, "median": line.spread.median,
                 "recorded_spread": vars(line.recorded_spread),
                 "changed_spread": vars(line.changed_spread), "spread": vars(line.spread),
                 "better": line.better, "worse": line.worse} for line in found.lines],
            "gains": [vars(one) for one in found.gains],
            "losses": [vars(one) for one in found.losses], "left_out": found.left_out}))
        return 1 if found.failures else 0
    print(table(
        ("setting", "measure", "takes", "recorded", "what if", "difference", "from", "to",
         "better", "worse"),
        [[line.setting, line.measure, line.takes, line.recorded, line.changed,
          line.difference.mean, line.difference.low, line.difference.high, line.better, line.worse]
         for line in found.lines]))
    print("\nMeans over takes; the difference is paired by take, with its 95 % bootstrap interval.")
    print()
    print(table(
        ("setting", "measure", *(f"{name} {part}" for name in ("recorded", "what if", "difference")
                                 for part in ("10 %", "median", "90 %"))),
        [[line.setting, line.measure, *(
            value for spread in (line.recorded_spread, line.changed_spread, line.spread)
            for value in (spread.low, spread.median, spread.high))] for line in found.lines]))
    print("\nQuantiles over takes; those of the difference are also paired by take.")
    for title, extremes in (("gain", found.gains), ("lose", found.losses)):
        if extremes:
            print(f"\nTakes that {title} most:")
            print(table(
                ("setting", "measure", "recorded", "what if", "take"),
                [[one.setting, one.measure, one.recorded, one.changed, one.take]
                 for one in extremes]))
    if found.left_out:
        print("\nLeft out:")
        for reason, count in sorted(found.left_out.items()):
            print(f"  {count} takes: {reason}")
    print("\nOpen loop: the inputs are the recorded ones; what the remote peer would have sent in "
          f"response is unknown.\n{found.takes} takes, {len(found.failures)} failed, "
          f"{seconds:.1f} s")
    return 1 if found.failures else 0


def _chosen(
    options: argparse.Namespace, program: str, sources: Sequence[Source]
) -> tuple[list[Source], list[tuple[str, str]]]:
    """Returns the takes that satisfy the condition of --grep, and those that cannot be read."""
    total, _ = _outcome(options, sources, functools.partial(work.heads, program))
    names = select(total.rows, options.grep)
    chosen = [source for source in sources if source.name in names]
    if not chosen:
        _say_failures(total.failures)
        raise FleetError(f"--grep {options.grep!r}: none of {len(sources)} takes matches")
    return chosen, total.failures


def select(rows: Sequence[Mapping[str, Any]], condition: str) -> set[str]:
    """Returns the takes whose rows satisfy an SQL condition; `round_trip` and `jitter` are in
    milliseconds, `loss` in per cent."""
    if not rows:
        return set()
    # Not all takes have the same tags.
    columns = list(dict.fromkeys(name for row in rows for name in row))
    base = sqlite3.connect(":memory:")
    names = ", ".join(f'"{name}"' for name in columns)
    base.execute(f"CREATE TABLE rows ({names})")
    base.executemany(
        f"INSERT INTO rows VALUES ({', '.join('?' * len(columns))})",
        [[row.get(name) for name in columns] for row in rows])
    base.execute(
        "CREATE VIEW take AS SELECT *, round_trip_ms AS round_trip, jitter_ms AS jitter, "
        "100.0 * loss_share AS loss, 100.0 * concealed_share AS concealed, "
        "frozen_ns / 1e6 AS frozen FROM rows")
    base.execute("PRAGMA query_only = ON")
    try:
        found = base.execute(f"SELECT take FROM take WHERE ({condition})").fetchall()
    except sqlite3.Error as error:
        raise FleetError(
            f"--grep {condition!r}: {error}; a condition names columns of take, as in "
            "'relay or round_trip > 200'") from None
    return {row[0] for row in found}


def _sql(options: argparse.Namespace) -> int:
    kind, place = place_of(options.lake, "published takes", ("folder", "s3", "postgresql"))
    if kind == "postgresql":
        if options.take:
            raise FleetError("--take: a database's tables have the column take instead")
        columns, rows = ask(place, options.query)
    else:
        columns, rows = _ask_lake(options)
    if options.json:
        print(json.dumps([dict(zip(columns, row)) for row in rows], default=str))
    else:
        print(table(columns, rows))
    return 0


def _ask_lake(options: argparse.Namespace) -> tuple[list[str], list[tuple[Any, ...]]]:
    with Lake(options.lake, options.catalogue) as lake:
        duck = lake.one(options.take) if options.take else lake.ask()
        with duck_errors(options.lake):
            cursor = interruptible(duck, options.query)
            if cursor is None or cursor.description is None:
                raise FleetError(f"{options.query!r}: it is not a query that returns rows")
            return [column[0] for column in cursor.description], cursor.fetchall()


_VERBS: dict[str, Callable[[argparse.Namespace], int]] = {
    "publish": _publish, "verify": _verify, "findings": _findings, "import": _import,
    "whatif": _whatif, "sql": _sql,
}

if __name__ == "__main__":
    main()
