"""A path between two peers with one fault for a limited time."""

import asyncio
import random

from impairment import LossyPath, _Face


class FaultyPath(LossyPath):
    """A good path over two ports, until the plan's fault begins."""

    # The delay of the good path and its variation, in seconds.
    _WAY, _SPREAD = 0.02, 0.003

    def __init__(self, host, plan):
        super().__init__(host, 0, self._WAY, plan.seed)
        self._plan = plan
        self._chance = random.Random(f"path {plan.seed}")
        self._is_on = False
        # When each end's last packet leaves: a good path does not reorder.
        self._leaves = [0.0, 0.0]
        # Until when a bottleneck is busy, and until when radio holds packets back.
        self._busy, self._release = 0.0, 0.0
        self._watch = None
        self.lag = 0.0
        # The number of packets affected, and the seconds of the call in which a queue delayed some.
        self.touched = 0
        self._queued = {}

    @classmethod
    async def open(cls, host, plan):
        """Opens the two ports on an address."""
        path = cls(host, plan)
        loop = asyncio.get_running_loop()
        for end in range(2):
            await loop.create_datagram_endpoint(
                lambda end=end: _Face(path, end), local_addr=(host, 0))
        return path

    def begin(self):
        """Starts the fault, and starts measuring this process's own delay."""
        self._is_on = True
        self._watch = self._watch or asyncio.create_task(self._measure())

    def end(self):
        self._is_on = False

    @property
    def is_touched(self):
        """Whether the fault affected enough for its rule: congestion control may adapt to a
        bottleneck within its first second."""
        if self._plan.kind == "bottleneck":
            # Seconds in which most packets waited 120 ms or more.
            return sum(waited * 2 > count for waited, count in self._queued.values()) >= 3
        least = {"loss": 20, "lossBurst": 10, "mediaDeadOneWay": 50, "deadPath": 50,
                 "reordering": 20, "jitter": 150, "longDelay": 50}
        return self.touched >= least.get(self._plan.kind, 0)

    def close(self):
        super().close()
        if self._watch:
            self._watch.cancel()

    async def _measure(self):
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + 0.02
            await asyncio.sleep(0.02)
            self.lag = max(self.lag, loop.time() - due)

    def forward(self, end, data, addr):
        """Forwards an end's datagram, subject to the fault."""
        if addr != self._ends[end]:
            return
        now = asyncio.get_running_loop().time()
        waits = self._waits(end, data, now) if self._is_on else [0]
        if waits != [0]:
            self.touched += 1
        for wait in waits:
            at = now + self._WAY + self._SPREAD * self._chance.random() + abs(wait)
            # A negative wait means that the packet is overtaken. With equal times, either order is
            # possible.
            if wait >= 0:
                at = self._leaves[end] = max(self._leaves[end] + 1e-6, at)
            asyncio.get_running_loop().call_at(at, self._leave, 1 - end, data)

    def _waits(self, end, data, now):
        """Returns when each copy of a packet leaves, in seconds from now; a negative wait breaks
        the order."""
        plan, chance = self._plan, self._chance
        bad = plan.severity
        is_media = 128 <= data[0] < 192 and len(data) > 1
        is_rtp = is_media and not 192 <= data[1] < 224
        if plan.kind == "deadPath":
            return []
        if plan.kind == "longDelay":
            return [0.24 + 0.3 * bad]
        if end != plan.culprit:
            return [0]
        match plan.kind:
            case "loss":
                return [] if is_rtp and chance.random() < 0.06 + 0.14 * bad else [0]
            case "lossBurst":
                return [] if is_media else [0]
            case "mediaDeadOneWay":
                return [] if is_rtp else [0]
            case "reordering":
                late = is_media and chance.random() < 0.06 + 0.19 * bad
                return [-0.025 - 0.045 * chance.random()] if late else [0]
            case "jitter":
                if now >= self._release:
                    self._release = now + 0.1 + (0.03 + 0.06 * bad) * chance.random()
                return [self._release - now]
            case "bottleneck":
                rate, queue = 400_000 - 220_000 * bad, 0.25 + 0.5 * ((plan.seed * 7) % 10) / 10
                begin = max(now, self._busy)
                waited, count = self._queued.get(int(now), (0, 0))
                self._queued[int(now)] = (waited + (begin - now > 0.12), count + 1)
                if begin - now > queue:
                    return []
                self._busy = begin + (len(data) + 28) * 8 / rate
                return [self._busy - now]
        return [0]
