"""A take as a value: its head, tables, packets and frames, read without the executable."""

import datetime
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import views
from .views import NoTake

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame

__all__ = ["Frame", "NoTake", "Packet", "Take", "open"]


@dataclass(frozen=True, slots=True)
class Packet:
    """One datagram."""

    peer: int
    at_ns: int
    """Nanoseconds since the take began; of a received one, by the kernel."""
    direction: str
    """`in` or `out`."""
    local: str
    remote: str
    protocol: str
    """stun, dtls, rtp, rtcp or another one."""
    size: int
    ssrc: int | None
    payload_type: int | None
    sequence: int | None
    rtp_time: int | None
    marker: bool | None
    bytes: bytes
    """The UDP payload, as it was on the wire."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One encoded frame of video, or the payload of an audio packet."""

    peer: int
    at_ns: int
    track: int
    kind: str
    direction: str
    codec: str
    ssrc: int
    rtp_time: int
    key: bool
    width: int | None
    height: int | None
    outcome: str
    size: int
    bytes: bytes | None
    """The media in the clear; None where the take keeps no copy of it."""


class Take:
    """A take that is open for reading; use it with `with`, or call `close`."""

    path: str
    id: str
    """The digest over all that was recorded: the same for copies of one recording."""
    label: str
    start: datetime.datetime
    """The wall clock at its beginning."""
    format: int
    tool_version: str
    tags: dict[str, str]
    complete: bool
    """Whether the recording ended in order."""
    duration_ns: int

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._base = views.connect()
        self._attached = views.Attachment(self._base, self.path)
        try:
            head = self._base.execute(
                "SELECT label, start_unix_ns, format, tool_version, toolchain FROM take"
            ).fetchone()
            self.id = views.identity(self._base)
        except Exception as error:
            self.close()
            if isinstance(error, NoTake):
                raise NoTake(f"{self.path}: {error}") from None
            raise NoTake(f"{self.path}: it is not a valid take: {error}") from None
        if head is None:
            self.close()
            raise NoTake(f"{self.path}: it has no head")
        self.label, start, self.format, self.tool_version, _ = head
        self.start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(
            microseconds=start // 1000)
        self.tags = dict(self.rows("SELECT key, value FROM tag ORDER BY key"))
        self.complete = self.value("SELECT count(*) FROM ending") == 1
        self.duration_ns = self.value(
            "SELECT coalesce((SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape), 0)")

    def close(self) -> None:
        """Closes the file."""
        self._base.close()

    def __enter__(self) -> "Take":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Take({self.path!r}, {self.label!r}, {self.duration_ns / 1e9:.3f} s)"

    # Tables

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the tables and views that can be asked, in the order of the schema."""
        known = views.schema()
        return tuple([*known.tables, *known.views])

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self._base.execute(self._query(query), parameters).fetchall()

    def value(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        """The first column of the first row; None where there is no row."""
        row = self._base.execute(self._query(query), parameters).fetchone()
        return None if row is None else row[0]

    def dicts(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
        """The rows of a query, or of a view by its name, each by its columns."""
        cursor = self._base.execute(self._query(query), parameters)
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row))

    def pandas(self, query: str, parameters: Sequence[Any] = ()) -> "PandasFrame":
        """A view by its name, or the rows of a query, as a data frame of pandas."""
        import pandas

        cursor = self._base.execute(self._query(query), parameters)
        names = [column[0] for column in cursor.description]
        return pandas.DataFrame.from_records(cursor.fetchall(), columns=names)

    def polars(self, query: str, parameters: Sequence[Any] = ()) -> "PolarsFrame":
        """A view by its name, or the rows of a query, as a data frame of polars."""
        import polars

        cursor = self._base.execute(self._query(query), parameters)
        names = [column[0] for column in cursor.description]
        return polars.DataFrame(
            cursor.fetchall(), schema=names, orient="row", infer_schema_length=None)

    def _query(self, text: str) -> str:
        known = views.schema().columns
        return f"SELECT * FROM {views.quoted(text)}" if text in known else text

    # Statistics

    def statistics(self, type: str | None = None, peer: int | None = None) -> "PandasFrame":
        """The samples of getStats as a data frame of pandas: a column for each member (W3C)."""
        import pandas

        return pandas.DataFrame.from_records(list(self._samples(type, peer)))

    def statistics_polars(
        self, type: str | None = None, peer: int | None = None
    ) -> "PolarsFrame":
        """The same as a data frame of polars."""
        import polars

        return polars.DataFrame(list(self._samples(type, peer)), infer_schema_length=None)

    def _samples(self, type: str | None, peer: int | None) -> Iterator[dict[str, Any]]:
        found = self.rows(
            "SELECT peer, at_ns, id, type, members FROM stat "
            "WHERE (?1 IS NULL OR type = ?1) AND (?2 IS NULL OR peer = ?2) ORDER BY row",
            (type, peer))
        for number, at_ns, id, kind, members in found:
            row = {"peer": number, "at_ns": at_ns, "id": id, "type": kind}
            for name, value in json.loads(members).items():
                row.setdefault(
                    name, json.dumps(value) if isinstance(value, dict | list) else value)
            yield row

    # Packets and frames

    def packets(self, where: str = "1", parameters: Sequence[Any] = ()) -> Iterator[Packet]:
        """The datagrams that meet a condition of SQL, in their order.

            take.packets("protocol = 'rtp' AND direction = 'in'")
        """
        rows = self._base.execute(
            "SELECT peer, at_ns, direction, local, remote, protocol, size, ssrc, payload_type, "
            f"sequence, rtp_time, marker, bytes FROM packet WHERE {where} ORDER BY row",
            parameters)
        for row in rows:
            values = list(row)
            values[11] = None if row[11] is None else bool(row[11])
            yield Packet(*values)

    def frames(self, where: str = "1", parameters: Sequence[Any] = ()) -> Iterator[Frame]:
        """The encoded frames that meet a condition of SQL, in their order."""
        rows = self._base.execute(
            "SELECT peer, at_ns, track, kind, direction, codec, ssrc, rtp_time, key, width, "
            f"height, outcome, size, bytes FROM frame WHERE {where} ORDER BY row", parameters)
        for row in rows:
            values = list(row)
            values[8] = bool(row[8])
            yield Frame(*values)


def open(path: str | os.PathLike[str]) -> Take:
    """Opens a take for reading, without the executable.

    Raises `NoTake` with one sentence where the file is not there or is no take.
    """
    return Take(path)
