"""Child processes: each in a separate process group, awaited by its output, never left behind."""

import asyncio
import ctypes
import os
import re
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_LONGEST_LINE = 1 << 24
_LAST_WORDS_SECONDS = 2


class ProcessError(Exception):
    """A child ended or stayed silent unexpectedly."""


class Child:
    """A process whose output is logged and can be awaited line by line."""

    def __init__(self, process, log):
        self._process = process
        self._log = log
        self._news = asyncio.Condition()
        self._open_pipes = 2
        self.output = []
        self.errors = []
        self._pumps = [
            asyncio.create_task(self._pump(process.stdout, self.output, "")),
            asyncio.create_task(self._pump(process.stderr, self.errors, "! ")),
        ]

    @classmethod
    async def start(cls, arguments, log, environment=None):
        """Starts a program; `log` gets its standard output, and its standard error prefixed with
        `!`."""
        process = await asyncio.create_subprocess_exec(
            *map(str, arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            limit=_LONGEST_LINE,
            start_new_session=True,
        )
        handle = open(log, "w", encoding="utf-8", buffering=1)
        handle.write("$ " + " ".join(map(str, arguments)) + "\n")
        return cls(process, handle)

    @property
    def status(self):
        """The exit status, negative for a signal; None while it runs."""
        return self._process.returncode

    @property
    def processor_seconds(self):
        """The processor time used so far by all threads, in seconds."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        # utime and stime are fields 14 and 15; the name in brackets is field 2.
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def signal_all(self, number):
        """Sends a signal to the process and to all below it."""
        for process in [self._process.pid, *_descendants(self._process.pid)]:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass

    async def write(self, line):
        """Writes a line to the child's input."""
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()

    async def line(self, pattern, limit, start=0, errors=False):
        """Returns the first matching line from index `start` on, waiting for it if necessary."""
        lines = self.errors if errors else self.output
        expression = re.compile(pattern)
        seen = start

        def found():
            nonlocal seen
            while seen < len(lines):
                match = expression.search(lines[seen])
                if match:
                    return match
                seen += 1
            return None

        try:
            async with asyncio.timeout(limit), self._news:
                while True:
                    match = found()
                    if match:
                        return match
                    if self._open_pipes == 0:
                        raise ProcessError(f"ended without a line like {pattern!r}")
                    await self._news.wait()
        except TimeoutError:
            raise ProcessError(f"no line like {pattern!r} within {limit} s") from None

    async def finish(self, limit, sending=None):
        """Waits for the exit, after sending any given signal; returns the exit status."""
        if sending is not None and self.status is None:
            self._process.send_signal(sending)
        try:
            async with asyncio.timeout(limit):
                await self._process.wait()
        except TimeoutError:
            await self.end()
            raise ProcessError(f"still running {limit} s later") from None
        await self.end()
        return self.status

    async def end(self):
        """Ends the whole group, whatever its state, and reads the remaining output."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        await self._process.wait()
        # A process that left the group may hold the pipes, which must not delay the end.
        _, unread = await asyncio.wait(self._pumps, timeout=_LAST_WORDS_SECONDS)
        for pump in unread:
            pump.cancel()
        self._process.stdin.close()
        self._log.close()

    async def _pump(self, stream, lines, mark):
        while line := await stream.readline():
            text = line.decode("utf-8", "replace").rstrip("\n")
            self._log.write(mark + text + "\n")
            async with self._news:
                lines.append(text)
                self._news.notify_all()
        async with self._news:
            self._open_pipes -= 1
            self._news.notify_all()


def free_ports(count):
    """Returns different ports on which nothing listens."""
    with ExitStack() as probes:
        found = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in found:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in found]


def adopt_orphans():
    """Makes this process the parent of its children's orphans."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans():
    """Kills and reaps every process below this one."""
    while children := _children(os.getpid()):
        for child in children:
            for descendant in [child, *_descendants(child)]:
                try:
                    os.kill(descendant, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                os.waitpid(child, 0)
            except ChildProcessError:
                pass


def _descendants(process):
    below = []
    for child in _children(process):
        below += [child, *_descendants(child)]
    return below


def _children(process):
    found = []
    for listing in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += [int(word) for word in listing.read_text().split()]
        except OSError:
            pass
    return found
