"""Decides what publishing changes, in the same way for lakes and for PostgreSQL.

A target knows every file that it has seen, with its stamp and the take in it. A take stays for as
long as one of these files contains it, and is published again if its rows are incomplete.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .storage import Source
from .tables import VERSION


@dataclass(frozen=True, slots=True)
class Rows:
    """A take's rows in a target."""

    source: str
    stamp: str
    version: int
    """The tables' version when the rows were written; 0 if tables or columns were added since."""
    has_packets: bool

    def is_complete(self, packets: bool) -> bool:
        """Returns whether the rows have everything that a run with or without packets writes."""
        return self.version == VERSION and (self.has_packets or not packets)


@dataclass(frozen=True)
class Staged:
    """A take in a staging file."""

    take: str
    has_packets: bool


@dataclass
class Change:
    """What one transaction changes."""

    insert: list[str] = field(default_factory=list)
    """Takes whose rows come from the staging file."""
    delete: list[str] = field(default_factory=list)
    """Takes whose rows are removed first: no file contains them any more, or new rows follow."""
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    """Files with new stamps or other takes: name, stamp, take."""
    forgotten: list[str] = field(default_factory=list)
    """Files that no longer exist."""
    moved: list[tuple[str, str, str]] = field(default_factory=list)
    """Takes whose source is now another file, or the same file with another stamp."""
    added: int = 0
    completed: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing has to be written."""
        return not (self.insert or self.delete or self.seen or self.forgotten or self.moved)


@dataclass
class Held:
    """The files and takes that a target already has."""

    sources: dict[str, tuple[str, str]]
    """Each file's stamp and take."""
    takes: dict[str, Rows]

    def is_current(self, source: Source, packets: bool) -> bool:
        """Returns whether a file need not be read."""
        stamp, take = self.sources.get(source.name, ("", ""))
        rows = self.takes.get(take)
        return bool(stamp) and stamp == source.stamp and rows is not None and (
            rows.is_complete(packets))

    def complete(self, packets: bool) -> frozenset[str]:
        """Returns the takes whose rows need not be read again."""
        return frozenset(take for take, rows in self.takes.items() if rows.is_complete(packets))

    def with_packets(self) -> frozenset[str]:
        """Returns the takes whose packets are published, and remain published."""
        return frozenset(take for take, rows in self.takes.items() if rows.has_packets)

    def missing(self, places: Sequence[str], present: Iterable[Source]) -> list[str]:
        """Returns the known files below `places` that no longer exist."""
        names = {source.name for source in present}
        fronts = tuple(place.rstrip("/") + "/" for place in places)
        return sorted(
            name for name in self.sources
            if name not in names and (name in places or name.startswith(fronts)))

    def change(
        self, staged: Iterable[Staged] = (), seen: Iterable[tuple[str, str, str]] = (),
        forgotten: Iterable[str] = (),
    ) -> Change:
        """Returns the changes to make for staged takes, files seen and files gone."""
        change = Change()
        for one in staged:
            rows = self.takes.get(one.take)
            # Another writer may have published the take meanwhile.
            if rows is None or not rows.is_complete(one.has_packets):
                change.insert.append(one.take)
                change.added += rows is None
                change.completed += rows is not None
        change.seen = [one for one in seen if self.sources.get(one[0]) != one[1:]]
        change.forgotten = [name for name in forgotten if name in self.sources]
        after = {**self.sources, **{name: (stamp, take) for name, stamp, take in change.seen}}
        for name in change.forgotten:
            after.pop(name, None)
        touched = {
            self.sources[name][1] for name in (*change.forgotten, *(one[0] for one in change.seen))
            if name in self.sources
        }
        files: dict[str, list[str]] = {take: [] for take in touched}
        for name, (_, take) in after.items():
            if take in files:
                files[take].append(name)
        inserted = set(change.insert)
        for take in sorted(touched - inserted):
            rows = self.takes.get(take)
            if rows is None:
                continue
            if not files[take]:
                change.delete.append(take)
                continue
            name = rows.source if rows.source in files[take] else min(files[take])
            if (name, after[name][0]) != (rows.source, rows.stamp):
                change.moved.append((take, name, after[name][0]))
        change.delete += [take for take in change.insert if take in self.takes]
        return change
