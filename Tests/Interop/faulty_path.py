"""A path between two peers on which one thing goes wrong for a time."""

import asyncio
import random

from impairment import LossyPath, _Face


class FaultyPath(LossyPath):
    """Two ports, and what goes on between them: good, until the fault of a plan begins."""

    # How long a good way takes, in seconds, and by how much its packets differ.
    _WAY, _SPREAD = 0.02, 0.003

    def __init__(self, host, plan):
        super().__init__(host, 0, self._WAY, plan.seed)
        self._plan = plan
        self._chance = random.Random(f"path {plan.seed}")
        self._is_on = False
        # When the last packet of each end leaves: a good path keeps the order.
        self._leaves = [0.0, 0.0]
        # Until when a narrow link sends what it has, and until when a radio holds all back.
        self._busy, self._release = 0.0, 0.0
        self._watch = None
        self.lag = 0.0
        # Packets that the fault touched, and the seconds of the call in which a queue held one up.
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
        """Lets the fault begin; from now on this process watches how late it is itself."""
        self._is_on = True
        self._watch = self._watch or asyncio.create_task(self._measure())

    def end(self):
        """Lets the fault end."""
        self._is_on = False

    @property
    def is_touched(self):
        """Whether the fault touched what a rule needs to see it: congestion control may leave
        nothing of a narrow link but its first second."""
        if self._plan.kind == "bottleneck":
            # Seconds in which most packets waited for 120 ms and more.
            return sum(waited * 2 > count for waited, count in self._queued.values()) >= 3
        least = {"loss": 20, "lossBurst": 10, "mediaDeadOneWay": 50, "deadPath": 50,
                 "reordering": 20, "jitter": 150, "longDelay": 50}
        return self.touched >= least.get(self._plan.kind, 0)

    def close(self):
        """Closes both ports."""
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
        """Sends on what came from an end, as the fault has it."""
        if addr != self._ends[end]:
            return
        now = asyncio.get_running_loop().time()
        waits = self._waits(end, data, now) if self._is_on else [0]
        if waits != [0]:
            self.touched += 1
        for wait in waits:
            at = now + self._WAY + self._SPREAD * self._chance.random() + abs(wait)
            # One with a wait below zero is overtaken. Of two at one time either might be first.
            if wait >= 0:
                at = self._leaves[end] = max(self._leaves[end] + 1e-6, at)
            asyncio.get_running_loop().call_at(at, self._leave, 1 - end, data)

    def _waits(self, end, data, now):
        """When copies of a packet leave: waits in seconds, one below zero leaves the order."""
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
