"""A lossy UDP path between two peers, in user space, independent of the kernel.

Each end is told that the other is at a port of this process. An end's datagrams leave at the port
that faces the other end, unless they are lost.
"""

import asyncio
import random
import re


class _Face(asyncio.DatagramProtocol):
    """The port that one end sees in place of the other."""

    def __init__(self, path, end):
        self._path = path
        self._end = end

    def connection_made(self, transport):
        self._path.transports[self._end] = transport

    def datagram_received(self, data, addr):
        self._path.forward(self._end, data, addr)

    def error_received(self, exc):
        """Ignores that an end is gone: its datagrams are lost."""


class LossyPath:
    """Two ports, and the loss and delay between them."""

    def __init__(self, host, loss, delay, seed):
        self.host = host
        self.transports = [None, None]
        self.lost = [0, 0]
        self._loss = loss
        self._delay = delay
        # One random sequence per direction: one end's packets do not affect the other end's losses.
        self._random = [random.Random(f"{seed} {end}") for end in range(2)]
        self._ends = [None, None]

    @classmethod
    async def open(cls, host, loss, delay=0.03, seed=0):
        """Opens the two ports on an address; `loss` is a probability, `delay` is one-way, in
        seconds."""
        path = cls(host, loss, delay, seed)
        loop = asyncio.get_running_loop()
        for end in range(2):
            await loop.create_datagram_endpoint(
                lambda end=end: _Face(path, end), local_addr=(host, 0))
        return path

    def port(self, end):
        """Returns the port that an end sees."""
        return self.transports[end].get_extra_info("sockname")[1]

    def signaled(self, sdp, end):
        """Returns an end's description as signaled: only its first candidate on the path's address
        is left, with the path's port."""
        lines = []
        for line in sdp.splitlines():
            if line.startswith("a=candidate:"):
                match = re.match(
                    rf"(?i)(a=candidate:\S+ 1 udp \d+) {re.escape(self.host)} (\d+) (typ host.*)",
                    line)
                if not match or self._ends[end] not in (None, (self.host, int(match[2]))):
                    continue
                if self._ends[end] is not None and any("a=candidate" in one for one in lines):
                    continue
                self._ends[end] = (self.host, int(match[2]))
                line = f"{match[1]} {self.host} {self.port(1 - end)} {match[3]}"
            lines.append(line)
        if self._ends[end] is None:
            raise ValueError(f"no candidate is on {self.host}: {sdp}")
        return "\r\n".join(lines) + "\r\n"

    def forward(self, end, data, addr):
        """Forwards an end's datagram, or drops it."""
        if addr != self._ends[end]:
            return
        if self._random[end].random() < self._loss:
            self.lost[end] += 1
            return
        asyncio.get_running_loop().call_later(self._delay, self._leave, 1 - end, data)

    def _leave(self, end, data):
        if self._ends[end] and not self.transports[end].is_closing():
            self.transports[end].sendto(data, self._ends[end])

    def close(self):
        for transport in self.transports:
            transport.close()
