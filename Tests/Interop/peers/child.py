"""A peer in a process of its own, so that a crash of its stack is a failed call and no more."""

import json
import sys
from pathlib import Path

import reports
from processes import Child

_START_SECONDS = 120
_REPLY_SECONDS = 60


class ChildPeer:
    """Talks to a peer program: a JSON command per line, a JSON reply per line."""

    def __init__(self, child):
        self._child = child
        self._asked = 0

    @classmethod
    async def open(cls, program, folder, python=sys.executable, arguments=()):
        """Starts one of the programs beside this file and waits until it is ready."""
        path = Path(__file__).with_name(program)
        environment = {"PYTHONPATH": str(path.parent.parent), "PYTHONUNBUFFERED": "1"}
        child = await Child.start([python, path, *arguments], folder / "peer.log", environment)
        try:
            await child.line("^ready$", _START_SECONDS)
        except BaseException:
            await child.end()
            raise
        return cls(child)

    async def offer(self):
        """The peer's offer."""
        return await self._ask("offer")

    async def accept(self, sdp):
        """Gives the peer the answer to its offer."""
        await self._ask("accept", sdp)

    async def answer(self, sdp):
        """The peer's answer to an offer."""
        return await self._ask("answer", sdp)

    async def report(self):
        """What the peer counts."""
        return reports.from_json(await self._ask("report"))

    async def statistics(self):
        """The objects of the peer's getStats."""
        return await self._ask("statistics")

    async def received(self):
        """How many bytes of messages came, of a peer that only counts."""
        return await self._ask("received")

    @property
    def processor_seconds(self):
        """What the process used of the processors so far."""
        return self._child.processor_seconds

    async def close(self):
        """Ends the process."""
        await self._child.end()

    async def _ask(self, command, argument=None):
        self._asked += 1
        request = {"id": self._asked, "command": command, "argument": argument}
        await self._child.write(json.dumps(request))
        pattern = r'^\{"id": %d, .*$' % self._asked
        reply = json.loads((await self._child.line(pattern, _REPLY_SECONDS)).group())
        if "error" in reply:
            raise RuntimeError(f"{command}: {reply['error']}")
        return reply["result"]
