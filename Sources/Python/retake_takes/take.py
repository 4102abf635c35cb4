"""Reads a take's metadata, tables, packets and frames without the executable."""

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
    """Nanoseconds since the take began; for received packets, the kernel's receive time."""
    direction: str
    """`in` or `out`."""
    local: str
    remote: str
    protocol: str
    """The protocol, such as stun, dtls, rtp or rtcp."""
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
    """The unencrypted media; None if the take does not contain it."""


class Take:
    """A take opened for reading; use it with `with`, or call `close`."""

    path: str
    id: str
    """The digest over the whole recording: the same for all copies of it."""
    label: str
    start: datetime.datetime
    """The wall-clock time at the take's beginning."""
    format: int
    tool_version: str
    tags: dict[str, str]
    complete: bool
    """Whether the recording ended properly."""
    duration_ns: int

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._base = views.connect()
        try:
            self._attached = views.Attachment(self._base, self.path)
        except NoTake:
            self.close()
            raise
        try:
            head = self._base.execute(
                "SELECT label, start_unix_ns, format, tool_version, toolchain FROM take"
            ).fetchone()
            if head is None:
                raise NoTake("its take row is missing")
            self.id = views.identity(self._base)
            self.label, start, self.format, self.tool_version, _ = head
            self.start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(
                microseconds=start // 1000)
            self.tags = dict(self.rows("SELECT key, value FROM tag ORDER BY key"))
            self.complete = self.value("SELECT count(*) FROM ending") == 1
            self.duration_ns = self.value(
                "SELECT coalesce((SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape), 0)")
        except NoTake as error:
            self.close()
            raise NoTake(f"{self.path}: {error}") from None
        except views.UNREADABLE as error:
            self.close()
            raise views.invalid(self.path, error) from None

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
        """The names of all tables and views that can be queried, in schema order."""
        known = views.schema()
        return tuple([*known.tables, *known.views])

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Returns a query's rows."""
        return self._base.execute(self._query(query), parameters).fetchall()

    def value(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        """Returns the first column of the first row; None if there is no row."""
        row = self._base.execute(self._query(query), parameters).fetchone()
        return None if row is None else row[0]

    def dicts(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
        """Yields the rows of a query, or of a view by its name, as dicts by column name."""
        cursor = self._base.execute(self._query(query), parameters)
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row))

    def pandas(self, query: str, parameters: Sequence[Any] = ()) -> "PandasFrame":
        """Returns a view by its name, or a query's rows, as a pandas data frame."""
        import pandas

        cursor = self._base.execute(self._query(query), parameters)
        names = [column[0] for column in cursor.description]
        return pandas.DataFrame.from_records(cursor.fetchall(), columns=names)

    def polars(self, query: str, parameters: Sequence[Any] = ()) -> "PolarsFrame":
        """Returns a view by its name, or a query's rows, as a polars data frame."""
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
        """Returns getStats samples as a pandas data frame, with a column per W3C member."""
        import pandas

        return pandas.DataFrame.from_records(list(self._samples(type, peer)))

    def statistics_polars(
        self, type: str | None = None, peer: int | None = None
    ) -> "PolarsFrame":
        """Returns getStats samples as a polars data frame, with a column per W3C member."""
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
        """Yields the datagrams that satisfy an SQL condition, in order.

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
        """Yields the encoded frames that satisfy an SQL condition, in order."""
        rows = self._base.execute(
            "SELECT peer, at_ns, track, kind, direction, codec, ssrc, rtp_time, key, width, "
            f"height, outcome, size, bytes FROM frame WHERE {where} ORDER BY row", parameters)
        for row in rows:
            values = list(row)
            values[8] = bool(row[8])
            yield Frame(*values)


def open(path: str | os.PathLike[str]) -> Take:
    """Opens a take for reading, without the executable.

    Raises `NoTake`, with one sentence, if the file does not exist or is not a take.
    """
    return Take(path)
