"""Finds takes in folders, files, and S3 buckets."""

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


class FleetError(RuntimeError):
    """A fleet command cannot continue; the text is one sentence that says what to do."""


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_KINDS = {"s3": "s3", "postgres": "postgresql", "postgresql": "postgresql"}
_SAID = {"folder": "a folder", "s3": "s3://BUCKET/FOLDER", "postgresql": "postgresql://..."}
_PASSWORD = re.compile(r"(://[^:/@\s]*):[^@\s]*@|(\bpassword\s*=\s*)('[^']*'|\S+)", re.IGNORECASE)


def place_of(text: str, what: str, kinds: Sequence[str]) -> tuple[str, str]:
    """Returns an address's kind, `folder`, `s3` or `postgresql`, and the address with its scheme in
    lower case; raises if it is none of `kinds`."""
    found = _SCHEME.match(text)
    kind = _KINDS.get(found[1].lower(), "") if found else "folder"
    if not text or kind not in kinds:
        raise FleetError(
            f"{without_passwords(text) or repr(text)}: it is not an address of {what}, which is "
            + " or ".join(_SAID[one] for one in kinds))
    if found:
        text = found[1].lower() + text[found.end(1):]
    if kind == "s3":
        split_s3(text)
    return kind, text


def without_passwords(text: str) -> str:
    """Returns a message without the passwords of the addresses in it."""
    return _PASSWORD.sub(
        lambda found: f"{found[1]}@" if found[1] is not None else f"{found[2]}(hidden)", text)


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
        raise FleetError(f"{address}: it has no bucket name; write s3://BUCKET/FOLDER")
    return bucket, key


def s3_client() -> Any:
    """Creates a client from the usual variables: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ..."""
    try:
        import boto3
    except ImportError:
        raise FleetError(
            "takes on S3 need boto3: pip install 'retake-takes[fleet]'") from None
    with s3_errors():
        return boto3.client("s3")


@contextmanager
def s3_errors() -> Iterator[None]:
    """Turns the client's errors into one sentence."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise FleetError("S3: " + " ".join(str(error).split())) from None


def listing(
    places: Sequence[str], endings: Sequence[str] = (".take",), *, without: Sequence[str] = (),
) -> list[Source]:
    """Lists all files below folders and buckets and all named files, each once, in order.

    Of the files below folders and buckets, those whose names end in one of `without` are left out.
    """
    found: dict[str, Source] = {}
    for place in places:
        for source in _below(place, tuple(endings), tuple(without)):
            found.setdefault(source.name, source)
    return [found[name] for name in sorted(found)]


def _below(
    place: str, endings: tuple[str, ...], without: tuple[str, ...]
) -> Iterator[Source]:
    kind, place = place_of(place, "takes", ("folder", "s3"))
    if kind == "s3":
        bucket, prefix = split_s3(place)
        if prefix and not prefix.endswith("/") and not prefix.endswith(endings):
            prefix += "/"
        client = s3_client()
        with s3_errors():
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            for page in pages:
                for entry in page.get("Contents", []):
                    key = entry["Key"]
                    if key.endswith(endings) and not key.endswith(without):
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
            if name.endswith(endings) and not name.endswith(without):
                yield _file(os.path.join(folder, name))


def _file(path: str) -> Source:
    try:
        status = os.stat(path)
    except OSError:
        # A dangling link is an unreadable take, and affects nothing else.
        return Source(path, "", 0)
    stamp = f"{status.st_size} {status.st_mtime_ns}"
    # The stamp includes the write-ahead log, because a recorder may not have merged it into the
    # file yet.
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
        raise FleetError(f"--shard {shard}: it must be NUMBER/COUNT, with a number from 1 to COUNT")
    return [
        source for place, source in enumerate(sources) if place % int(count) == int(number) - 1]


_PREFIX = "retake-fleet-"
_LOCK = ".lock"
_YOUNG_SECONDS = 10


@contextmanager
def workspace() -> Iterator[str]:
    """Creates a temporary folder, which the next run removes if this process dies first."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        descriptor = os.open(
            os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(descriptor)


def remove_stale_workspaces() -> None:
    """Removes the temporary folders of processes that died: no process holds their locks."""
    for entry in os.scandir(tempfile.gettempdir()):
        if not entry.name.startswith(_PREFIX) or not entry.is_dir(follow_symlinks=False):
            continue
        try:
            # A folder without a lock has only just been created.
            descriptor = os.open(os.path.join(entry.path, _LOCK), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_uid == os.geteuid() and _is_old(entry):
                shutil.rmtree(entry.path, ignore_errors=True)
        except OSError:
            # A running process holds the lock.
            pass
        finally:
            os.close(descriptor)


def _is_old(entry: os.DirEntry[str]) -> bool:
    """Returns whether a folder is so old that its owner must have locked it by now."""
    return time.time() - entry.stat().st_mtime > _YOUNG_SECONDS


@contextmanager
def local(sources: Sequence[Source], suffix: str = ".take") -> Iterator[tuple[str, list[str]]]:
    """Creates a temporary folder with all files, named by number: links, or copies of remote files.

    Nothing is written beside the takes, so they may be on a read-only file system.
    """
    with workspace() as folder:
        paths = []
        client = None
        for number, source in enumerate(sources):
            path = os.path.join(folder, f"{number:05d}{suffix}")
            if source.is_remote:
                client = client or s3_client()
                with s3_errors():
                    client.download_file(*split_s3(source.name), path)
            else:
                os.symlink(source.name, path)
            paths.append(path)
        yield folder, paths


def short_digest(text: str) -> str:
    """Returns a short file name derived from a longer text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
