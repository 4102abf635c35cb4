"""Where takes are: folders, files, and buckets of S3."""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


class FleetError(RuntimeError):
    """Why a command of a fleet cannot go on: one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Source:
    """One take, or one capture, and what tells that its file is another one than before."""

    name: str
    """Its path, or its address as s3://bucket/key."""
    stamp: str
    """Size and time of change."""
    size: int

    @property
    def is_remote(self) -> bool:
        """Whether it has to be fetched before it is read."""
        return self.name.startswith("s3://")


def split_s3(address: str) -> tuple[str, str]:
    """Bucket and key of an address."""
    bucket, _, key = address.removeprefix("s3://").partition("/")
    if not bucket:
        raise FleetError(f"{address}: it names no bucket; write s3://BUCKET/FOLDER")
    return bucket, key


def s3_client() -> Any:
    """A client by the usual variables: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and the like."""
    try:
        import boto3
    except ImportError:
        raise FleetError(
            "takes on S3 need boto3: pip install 'retake-takes[fleet]'") from None
    return boto3.client("s3")


def listing(places: Sequence[str], endings: Sequence[str] = (".take",)) -> list[Source]:
    """All files below folders and buckets, and files that are named, each once, in their order."""
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
        # A link that leads nowhere is a take that cannot be read, and costs itself.
        return Source(path, "", 0)
    stamp = f"{status.st_size} {status.st_mtime_ns}"
    # What a recorder has not written back yet.
    try:
        log = os.stat(path + "-wal")
        stamp += f" {log.st_size} {log.st_mtime_ns}"
    except FileNotFoundError:
        pass
    return Source(path, stamp, status.st_size)


def shard_of(sources: Sequence[Source], shard: str | None) -> list[Source]:
    """Every n-th of the list: `3/10` is the third of ten shards."""
    if shard is None:
        return list(sources)
    number, _, count = shard.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise FleetError(f"--shard {shard}: it is NUMBER/COUNT with a number from 1 to COUNT")
    return [
        source for place, source in enumerate(sources) if place % int(count) == int(number) - 1]


@contextmanager
def local(sources: Sequence[Source], suffix: str = ".take") -> Iterator[tuple[str, list[str]]]:
    """A folder of its own with all of the files, under numbers: links, or copies of what is remote.

    Nothing is written beside the takes, so that they may be on a file system for reading alone.
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
    """A name for files by a longer text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
