"""A peer in a separate process, so that a crash of its stack is only a failed call."""

import json
import sys
from pathlib import Path

import reports
from processes import Child

_START_SECONDS = 120
_REPLY_SECONDS = 60


class ChildPeer:
    """Drives a peer program: a JSON command per line, a JSON reply per line."""

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
        """Returns the peer's offer."""
        return await self._ask("offer")

    async def accept(self, sdp):
        """Passes the answer to its offer to the peer."""
        await self._ask("accept", sdp)

    async def answer(self, sdp):
        """Returns the peer's answer to an offer."""
        return await self._ask("answer", sdp)

    async def report(self):
        """Returns the peer's statistics."""
        return reports.from_json(await self._ask("report"))

    async def statistics(self):
        """Returns the objects of the peer's getStats."""
        return await self._ask("statistics")

    async def received(self):
        """Returns how many message bytes were received, for a peer that only counts."""
        return await self._ask("received")

    @property
    def processor_seconds(self):
        """The processor time that the process has used, in seconds."""
        return self._child.processor_seconds

    def signal_all(self, number):
        """Sends a signal to all of the peer's processes."""
        self._child.signal_all(number)

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
