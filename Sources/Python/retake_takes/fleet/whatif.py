"""Runs a corpus of takes under other settings, and compares each take with itself."""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..command import UNMET, CommandError, WhatIf, whatif_of
from ..take import Take
from .bootstrap import Bootstrap, Interval, Spread, spread
from .farm import reason_of
from .storage import FleetError, Source, local


_RECEIVING = ("jitterBufferMinimum", "decoders")
"""Settings that only change what a peer does with received packets."""


@dataclass(frozen=True)
class Setting:
    """One change: its name in the table, and its arguments for `retake whatif`."""

    name: str
    words: tuple[str, ...]
    program: str | None = None
    """The executable to run, if builds are compared."""

    @property
    def is_of_senders(self) -> bool:
        """Whether the setting changes what is sent or agreed, to which the remote peer would react.

        What the take received then shows nothing, because it was sent without the change.
        """
        return self.words[0] == "--set" and (
            self.words[1].partition("=")[0] not in _RECEIVING)

    def answers(self, measure: "Measure") -> bool:
        """Returns whether running the take alone, in open loop, shows the change in a measure."""
        return measure.is_sent or not self.is_of_senders

    @property
    def is_of_receivers(self) -> bool:
        """Whether the setting's effect can be computed for calls that were only observed."""
        return self.words[0] in ("--jitter-buffer", "--build") or (
            self.words[1].startswith("jitterBufferMinimum="))


def settings_of(
    *, jitter_buffer: Iterable[str] = (), assignments: Iterable[str] = (),
    selectors: Iterable[tuple[str, str]] = (), builds: Sequence[str] = (), seed: int = 1,
) -> list[Setting]:
    """Returns the requested settings, one per option value."""
    found: list[Setting] = []
    for value in jitter_buffer:
        found.append(Setting(f"jitter buffer {value} ms", ("--jitter-buffer", value)))
    for assignment in assignments:
        name, separator, values = assignment.partition("=")
        if not (name and separator and values):
            raise FleetError(f"--set {assignment}: it is NAME=VALUE, or NAME=VALUE,VALUE")
        for value in values.split(","):
            found.append(Setting(f"{name}={value}", ("--set", f"{name}={value}")))
    for option, selector in selectors:
        found.append(Setting(
            f"{option} {selector}", (f"--{option}", selector, "--seed", str(seed))))
    if builds:
        if len(builds) < 2:
            raise FleetError(
                "--build: name two builds or more; the first is compared with the rest")
        first = os.path.abspath(builds[0])
        for build in builds[1:]:
            path = os.path.abspath(build)
            found.append(Setting(f"build {build}", ("--build", path), first))
    if not found:
        raise FleetError(
            "there is no setting to try: give --jitter-buffer 60,120, --set NAME=VALUE, "
            "--drop SELECTOR or --build A --build B")
    return found


@dataclass(frozen=True)
class Measure:
    """A number for a take, and how its peers' outcomes combine into it."""

    name: str
    pattern: re.Pattern[str]
    is_mean: bool = False
    """Whether the number is a mean over streams rather than a sum."""
    is_sent: bool = False
    """Whether the measure describes sent media, to which the remote peer would have reacted."""
    better: int = -1
    """Whether less (-1) or more (1) is better."""


def _measure(
    name: str, pattern: str, *, is_mean: bool = False, is_sent: bool = False, better: int = -1
) -> Measure:
    return Measure(name, re.compile(pattern), is_mean, is_sent, better)


# In an observed call, a stream's mid may be unknown.
_STREAM = r"(?:mid|ssrc) \S+"
MEASURES: tuple[Measure, ...] = (
    _measure("freezes", r"track \d+ video freezes"),
    _measure("frozen_ms", r"track \d+ video frozen ms"),
    _measure("frames_shown", r"track \d+ video frames shown", better=1),
    _measure("concealed_ms", rf"{_STREAM} audio concealed ms"),
    _measure(
        "audio_delay_ms", rf"{_STREAM} audio mean delay in the jitter buffer ms", is_mean=True),
    _measure(
        "video_delay_ms", rf"{_STREAM} video mean delay in the jitter buffer ms", is_mean=True),
    _measure("packets_discarded", rf"{_STREAM} \S+ packets discarded"),
    _measure("sent_kbit_s", r"sent kbit/s", is_sent=True, better=1),
)


def measures_of(result: WhatIf) -> dict[str, tuple[float, float]]:
    """Returns a take's measures, recorded and changed; those that no peer has are left out."""
    found: dict[str, tuple[float, float]] = {}
    for measure in MEASURES:
        pairs = [
            pair for peer in result.peers for outcome in peer.outcomes
            if measure.pattern.fullmatch(outcome.name) and (pair := outcome.numbers)
        ]
        if not pairs:
            continue
        count = len(pairs) if measure.is_mean else 1
        found[measure.name] = (
            math.fsum(pair[0] for pair in pairs) / count,
            math.fsum(pair[1] for pair in pairs) / count)
    return found


@dataclass
class TakeRun:
    """One take's results: its measures by setting."""

    take: str
    measures: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    """Machines that were not run."""
    not_counted: int = 0
    """Freezes that disappear only because fewer frames are shown."""
    unanswered: dict[str, list[str]] = field(default_factory=dict)
    """By setting, the measures that depend on how the remote peer would have reacted."""
    failure: str = ""


def run(
    settings: Sequence[Setting], executable: str | None, sources: Sequence[Source]
) -> list[TakeRun]:
    """Runs takes under all settings, as one task."""
    runs = []
    with local(sources) as (_, paths):
        for source, path in zip(sources, paths):
            one = TakeRun(source.name)
            try:
                with Take(path) as take:
                    # Observed peers are not endpoints, although the view actor lists them.
                    endpoints = take.value(
                        "SELECT count(*) FROM peer WHERE actor NOT IN "
                        "(SELECT actor FROM actor_store)")
                    kinds = {
                        row[0] for row in
                        take.rows("SELECT kind FROM actor WHERE kind <> 'endpoint'")
                    }
                # For an observed call, the stack runs on the packets that its ends received.
                answered = [
                    setting for setting in settings
                    if endpoints or ("observer" in kinds and setting.is_of_receivers)]
                if len(answered) < len(settings):
                    one.left_out = [
                        f"only endpoints are run, and the take is only of: {kind}"
                        for kind in sorted(kinds) or ["nothing"]]
                for setting in answered:
                    try:
                        result = whatif_of(
                            ["whatif", path, *setting.words], setting.program or executable)
                    except CommandError as error:
                        # The observer may have seen no call.
                        if endpoints or error.status != UNMET:
                            raise
                        one.left_out = ["only endpoints are run, and the take is only of: observer"]
                        continue
                    found = measures_of(result)
                    one.measures[setting.name] = {
                        measure.name: found[measure.name] for measure in MEASURES
                        if measure.name in found and setting.answers(measure)}
                    unanswered = [name for name in found if name not in one.measures[setting.name]]
                    if unanswered:
                        one.unanswered[setting.name] = unanswered
                    if result.left_out:
                        one.left_out = [
                            f"only endpoints are run, but not the take's {kind}"
                            for kind in sorted(kinds)]
                    one.not_counted += sum(peer.freezes_not_counted for peer in result.peers)
            except Exception as error:
                reason = reason_of(error).replace(path, source.name)
                one.failure = reason.removeprefix(source.name + ": ")
            runs.append(one)
    return runs


@dataclass(frozen=True)
class Line:
    """One measure under one setting, over all takes that have it."""

    setting: str
    measure: str
    takes: int
    recorded: float
    """The mean over takes, as recorded."""
    changed: float
    """The mean over takes, under the setting."""
    difference: Interval
    """The mean of the differences, take by take."""
    recorded_spread: Spread
    changed_spread: Spread
    spread: Spread
    """The distribution of the differences."""
    better: int
    """The number of takes in which the measure is better."""
    worse: int


@dataclass(frozen=True)
class Extreme:
    """One of the takes that gain or lose most under a setting."""

    setting: str
    measure: str
    take: str
    recorded: float
    changed: float


@dataclass
class Report:
    """The results over a corpus."""

    lines: list[Line] = field(default_factory=list)
    gains: list[Extreme] = field(default_factory=list)
    losses: list[Extreme] = field(default_factory=list)
    takes: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    """Reasons for missing results, with the number of affected takes."""
    failures: list[tuple[str, str]] = field(default_factory=list)


def report(runs: Iterable[TakeRun], settings: Sequence[Setting], seed: int) -> Report:
    """Returns the distributions over a corpus; the order in which takes ran does not matter."""
    ordered = sorted(runs, key=lambda one: one.take)
    good = [one for one in ordered if not one.failure]
    found = Report(
        takes=len(good), failures=[(one.take, one.failure) for one in ordered if one.failure])
    for one in good:
        for reason in one.left_out:
            _count(found.left_out, reason)
        for setting_name, names in one.unanswered.items():
            for name in names:
                _count(found.left_out, f"{name} under {setting_name}, because nobody knows what the "
                       "remote peer would then have sent")
        if one.not_counted:
            _count(found.left_out, "freezes gone only because fewer frames are shown")
    bootstrap = Bootstrap(seed)
    for setting in settings:
        for measure in MEASURES:
            pairs = [
                (one.take, *one.measures[setting.name][measure.name]) for one in good
                if measure.name in one.measures.get(setting.name, {})
            ]
            if not pairs:
                continue
            differences = [changed - recorded for _, recorded, changed in pairs]
            signs = [difference * measure.better for difference in differences]
            found.lines.append(Line(
                setting.name, measure.name, len(pairs),
                math.fsum(pair[1] for pair in pairs) / len(pairs),
                math.fsum(pair[2] for pair in pairs) / len(pairs),
                bootstrap.mean(differences),
                spread(pair[1] for pair in pairs), spread(pair[2] for pair in pairs),
                spread(differences),
                sum(sign > 0 for sign in signs), sum(sign < 0 for sign in signs)))
        _extremes(found, setting, good)
    return found


def _extremes(found: Report, setting: Setting, good: Sequence[TakeRun]) -> None:
    for measure in MEASURES:
        if measure.name not in ("frozen_ms", "concealed_ms"):
            continue
        pairs = []
        for one in good:
            pair = one.measures.get(setting.name, {}).get(measure.name)
            if pair:
                pairs.append((pair[1] - pair[0], one.take, pair))
        pairs.sort(key=lambda pair: (pair[0], pair[1]))
        for difference, take, pair in pairs[:3]:
            if difference < 0:
                found.gains.append(Extreme(setting.name, measure.name, take, *pair))
        for difference, take, pair in reversed(pairs[-3:]):
            if difference > 0:
                found.losses.append(Extreme(setting.name, measure.name, take, *pair))


def _count(counts: dict[str, int], reason: str) -> None:
    counts[reason] = counts.get(reason, 0) + 1


def rows(runs: Iterable[TakeRun]) -> list[Mapping[str, object]]:
    """Returns a row for each take, setting and measure."""
    return [
        {
            "take": one.take, "setting": setting, "measure": measure, "recorded": pair[0],
            "changed": pair[1],
        }
        for one in sorted(runs, key=lambda one: one.take)
        for setting, found in one.measures.items() for measure, pair in found.items()
    ]
