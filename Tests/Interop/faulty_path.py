"""A path between two peers with one fault for a limited time."""

import asyncio
import random

from fault_kinds import KINDS
from impairment import LossyPath, _Face


class _Mapping(_Face):
    """A port that is closed once a NAT has replaced it."""

    def connection_made(self, transport):
        self._transport = transport
        super().connection_made(transport)

    def datagram_received(self, data, addr):
        if self._path.transports[self._end] is self._transport:
            super().datagram_received(data, addr)


class FaultyPath(LossyPath):
    """A good path over two ports, until the plan's fault begins."""

    # The delay of the good path and its variation, in seconds.
    _WAY, _SPREAD = 0.02, 0.003

    def __init__(self, host, plan):
        super().__init__(host, 0, self._WAY, plan.seed)
        self._plan = plan
        self._chance = random.Random(f"path {plan.seed}")
        self._is_on = False
        # When each end's last packet leaves. Later packets leave after it, because a good path does
        # not reorder.
        self._leaves = [0.0, 0.0]
        # The times until which a bottleneck is busy, and until which radio holds packets back.
        self._busy, self._release = 0.0, 0.0
        self._watch = None
        self.lag = 0.0
        # The number of affected packets; and for each second of the call, how many packets a queue
        # delayed by more than 120 ms, and how many packets there were.
        self.touched = 0
        self._queued = {}
        # The payload types of video and of retransmissions, collected from all descriptions.
        self.video, self.repairs = set(), set()
        # The culprit's next port on a NAT, as the other end sees it; once it is in use, nothing
        # passes through the old one.
        self._next = None
        # When the first record of a handshake arrived.
        self._shook = None

    @classmethod
    async def open(cls, host, plan):
        """Opens the two ports on an address."""
        path = cls(host, plan)
        loop = asyncio.get_running_loop()
        for end in range(2):
            await loop.create_datagram_endpoint(
                lambda end=end: _Mapping(path, end), local_addr=(host, 0))
        if plan.kind == "addressChanges":
            far = 1 - plan.culprit
            first = path.transports[far]
            await loop.create_datagram_endpoint(
                lambda: _Mapping(path, far), local_addr=(host, 0))
            path._next, path.transports[far] = path.transports[far], first
        return path

    def ports(self, end):
        """Returns the part of a capture filter for the ports that an end sees during the call."""
        ports = [str(self.port(end))]
        if self._next and end != self._plan.culprit:
            ports.append(str(self._next.get_extra_info("sockname")[1]))
        return " or udp port ".join(ports)

    def begin(self):
        """Starts the fault, and starts measuring this process's own delay."""
        self._is_on = True
        if self._next:
            far = 1 - self._plan.culprit
            self.transports[far], self._next = self._next, self.transports[far]
        self._watch = self._watch or asyncio.create_task(self._measure())

    def end(self):
        self._is_on = False

    @property
    def is_touched(self):
        """Whether the fault affected enough for its rule: congestion control may adapt to a
        bottleneck within its first second."""
        if self._plan.kind.startswith("bottleneck"):
            # Whether most packets waited more than 120 ms in each of at least three seconds.
            return sum(waited * 2 > count for waited, count in self._queued.values()) >= 3
        kind = KINDS.get(self._plan.kind)
        return kind is None or self.touched >= kind.least

    def close(self):
        super().close()
        if self._next:
            self._next.close()
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
        elif self._is_on and self._corrupts(end, data):
            self.touched += 1
            place = self._chance.randrange(14, len(data))
            data = data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1:]
        for wait in waits:
            at = now + self._WAY + self._SPREAD * self._chance.random() + abs(wait)
            # A negative wait means that later packets overtake this one. Otherwise this packet
            # leaves after the previous one: two packets with equal times could leave in either
            # order.
            if wait >= 0:
                at = self._leaves[end] = max(self._leaves[end] + 1e-6, at)
            asyncio.get_running_loop().call_at(at, self._leave, 1 - end, data)

    def _corrupts(self, end, data):
        plan = self._plan
        return (plan.kind == "corruptPackets" and end == plan.culprit and len(data) > 20
                and 128 <= data[0] < 192 and not 192 <= data[1] < 224
                and self._chance.random() < 0.03 + 0.17 * plan.severity)

    def _waits(self, end, data, now):
        """Returns when each copy of a packet leaves, in seconds from now; a negative wait breaks
        the order."""
        plan, chance = self._plan, self._chance
        bad = plan.severity
        is_media = 128 <= data[0] < 192 and len(data) > 1
        is_rtp = is_media and not 192 <= data[1] < 224
        is_stun, is_record = data[0] < 4, 20 <= data[0] < 64
        if plan.kind == "deadPath":
            return []
        if plan.kind in ("slowHandshake", "deadHandshake") and is_record:
            self._shook = self._shook or now
            is_over = plan.kind == "slowHandshake" and now > self._shook + plan.length
            return [0] if is_over else []
        if plan.kind == "longDelay":
            return [0.24 + 0.3 * bad]
        if end != plan.culprit:
            return [0]
        payload_type = data[1] & 127 if is_rtp else -1
        is_video = payload_type in self.video or payload_type in self.repairs
        match plan.kind:
            case "blockedOneWay":
                return []
            case "consentLost":
                return [] if is_stun else [0]
            case "rtcpLost":
                return [] if is_media and not is_rtp else [0]
            case "largePacketsLost":
                return [] if len(data) > 950 + 180 * (1 - bad) else [0]
            case "duplicates":
                twice = is_rtp and chance.random() < 0.1 + 0.4 * bad
                return [0, 0.002 + 0.02 * chance.random()] if twice else [0]
            case "shortOutages":
                is_out = (now * 1000) % (2000 + 1200 * (1 - bad)) < 160 + 240 * bad
                return [] if is_media and is_out else [0]
            case "dataBehindLoss":
                return [] if is_record and chance.random() < 0.06 + 0.16 * bad else [0]
            case "videoLoss" | "noRepairs":
                return [] if is_video and chance.random() < 0.04 + 0.1 * bad else [0]
            case "repairsLost":
                is_lost = payload_type in self.repairs or (
                    is_video and chance.random() < 0.02 + 0.05 * bad)
                return [] if is_lost else [0]
            case "videoDeadOneWay":
                return [] if is_video else [0]
            case "audioDeadOneWay":
                return [] if is_rtp and not is_video else [0]
            case "delayOneWay":
                return [0.2 + 0.3 * bad]
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
            case "bottleneck" | "bottleneckTransfer":
                rate, queue = 400_000 - 220_000 * bad, 0.25 + 0.5 * ((plan.seed * 7) % 10) / 10
                begin = max(now, self._busy)
                waited, count = self._queued.get(int(now), (0, 0))
                self._queued[int(now)] = (waited + (begin - now > 0.12), count + 1)
                if begin - now > queue:
                    return []
                self._busy = begin + (len(data) + 28) * 8 / rate
                return [self._busy - now]
        return [0]
