"""Finds takes in folders, files, and S3 buckets."""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


class FleetError(RuntimeError):
    """A fleet command cannot continue; the text is one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Source:
    """A take or capture, with a stamp that changes when the file does."""

    name: str
    """The path, or the address as s3://bucket/key."""
    stamp: str
    """The file's size and modification time."""
    size: int

    @property
    def is_remote(self) -> bool:
        """Whether the source must be downloaded before it can be read."""
        return self.name.startswith("s3://")


def split_s3(address: str) -> tuple[str, str]:
    """Splits an address into bucket and key."""
    bucket, _, key = address.removeprefix("s3://").partition("/")
    if not bucket:
        raise FleetError(f"{address}: it names no bucket; write s3://BUCKET/FOLDER")
    return bucket, key


def s3_client() -> Any:
    """Creates a client from the usual variables: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ..."""
    try:
        import boto3
    except ImportError:
        raise FleetError(
            "takes on S3 need boto3: pip install 'retake-takes[fleet]'") from None
    return boto3.client("s3")


def listing(places: Sequence[str], endings: Sequence[str] = (".take",)) -> list[Source]:
    """Lists all files below folders and buckets and all named files, each once, in order."""
    found: dict[str, Source] = {}
    for place in places:
        for source in _below(place, tuple(endings)):
            found.setdefault(source.name, source)
    return [found[name] for name in sorted(found)]


def _below(place: str, endings: tuple[str, ...]) -> Iterator[Source]:
    if place.startswith("s3://"):
        bucket, prefix = split_s3(place)
        if prefix and not prefix.endswith("/") and not prefix.endswith(endings):
            prefix += "/"
        pages = s3_client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        for page in pages:
            for entry in page.get("Contents", []):
                if entry["Key"].endswith(endings):
                    stamp = f"{entry['Size']} {entry['ETag'].strip(chr(34))}"
                    yield Source(f"s3://{bucket}/{entry['Key']}", stamp, entry["Size"])
        return
    path = os.path.abspath(place)
    if os.path.isfile(path):
        yield _file(path)
        return
    if not os.path.isdir(path):
        raise FleetError(f"{place}: there is no such file or folder")
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            if name.endswith(endings):
                yield _file(os.path.join(folder, name))


def _file(path: str) -> Source:
    try:
        status = os.stat(path)
    except OSError:
        # A dangling link is an unreadable take, and affects nothing else.
        return Source(path, "", 0)
    stamp = f"{status.st_size} {status.st_mtime_ns}"
    # Count the log as well: a recorder may not have written it back yet.
    try:
        log = os.stat(path + "-wal")
        stamp += f" {log.st_size} {log.st_mtime_ns}"
    except FileNotFoundError:
        pass
    return Source(path, stamp, status.st_size)


def shard_of(sources: Sequence[Source], shard: str | None) -> list[Source]:
    """Returns every n-th source: `3/10` is the third of ten shards."""
    if shard is None:
        return list(sources)
    number, _, count = shard.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise FleetError(f"--shard {shard}: it is NUMBER/COUNT with a number from 1 to COUNT")
    return [
        source for place, source in enumerate(sources) if place % int(count) == int(number) - 1]


@contextmanager
def local(sources: Sequence[Source], suffix: str = ".take") -> Iterator[tuple[str, list[str]]]:
    """Creates a temporary folder with all files under numbers: links, or copies of remote files.

    Nothing is written beside the takes, so they may be on a read-only file system.
    """
    with tempfile.TemporaryDirectory(prefix="retake-fleet-") as folder:
        paths = []
        client = None
        for number, source in enumerate(sources):
            path = os.path.join(folder, f"{number:05d}{suffix}")
            if source.is_remote:
                client = client or s3_client()
                client.download_file(*split_s3(source.name), path)
            else:
                os.symlink(source.name, path)
            paths.append(path)
        yield folder, paths


def short_digest(text: str) -> str:
    """Returns a short file name derived from a longer text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
