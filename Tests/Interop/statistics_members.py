"""Compares a peer's getStats report of a call with Retake's report of the other end.

What one end sends the other receives, so every counter exists twice. Both reports are of the same
instant: Retake's is made by replaying its take to the timestamp of the peer's.
"""

from dataclasses import dataclass

# Counters of packets and frames: they may differ by the packets in transit.
_STREAM_COUNTERS = [
    ("packetsSent", "packetsReceived", 1),
    ("bytesSent", "bytesReceived", 1200),
    ("retransmittedPacketsSent", "retransmittedPacketsReceived", 1),
    ("framesSent", "framesReceived", 1),
    ("framesEncoded", "framesDecoded", 1),
    ("keyFramesEncoded", "keyFramesDecoded", 1),
    ("qpSum", "qpSum", 127),
    ("nackCount", "nackCount", 1),
    ("pliCount", "pliCount", 1),
    ("firCount", "firCount", 1),
]
# Values that must be equal at both ends.
_STREAM_FACTS = ["kind", "frameWidth", "frameHeight", "mid"]
_CODEC_FACTS = ["payloadType", "mimeType", "clockRate", "channels"]
_TRANSPORT_FACTS = ["tlsVersion", "dtlsCipher", "srtpCipher"]
_JITTER_SECONDS = 0.005
# On one machine, a round trip is mostly the time that two processes take to wake, which grows with
# the load.
_ROUND_TRIP_SECONDS = 0.01
_RATE_SHARE = 0.02
_LEVEL_DECIBELS = 1.0
# An additional tolerance per percent of concealed audio, which the ends conceal in different ways.
_CONCEALED_DECIBELS = 0.25


@dataclass
class Line:
    """A member at both ends."""

    what: str
    theirs: object
    ours: object
    # The largest allowed difference, None for equality.
    allowed: float | None = None
    # The end that may count less than the other, for a known reason: `theirs`, `ours` or none.
    less: str | None = None
    # The reason why a difference is accepted, such as a member that a browser lacks.
    excuse: str | None = None

    @property
    def is_good(self):
        if self.excuse:
            return True
        if self.theirs is None or self.ours is None:
            return False
        if self.allowed is None:
            return self.theirs == self.ours
        excess = self.theirs - self.ours
        if self.less:
            return (excess if self.less == "theirs" else -excess) <= self.allowed
        return abs(excess) <= self.allowed


class Comparison:
    """Compares a peer's report with Retake's, line by line."""

    def __init__(self, theirs, ours, under_way, nearby):
        """`under_way(ssrc)` returns how many packets of a stream may be in transit; `nearby(member,
        ssrc, ms)` returns the values that the receiver reported for a member around a time in
        ms."""
        self._nearby = nearby
        self.lines = []
        self._theirs = theirs
        self._ours = ours
        self._under_way = under_way

    def run(self):
        """Compares all members that both reports have; returns the lines."""
        for stream in _of_type(self._theirs, "outbound-rtp"):
            self._stream(stream, self._theirs, self._ours, True)
        for stream in _of_type(self._ours, "outbound-rtp"):
            self._stream(stream, self._ours, self._theirs, False)
        self._transport()
        return self.lines

    def _add(self, what, theirs, ours, allowed=None):
        self.lines.append(Line(what, theirs, ours, allowed))

    def _pair(self, what, sent, received, sent_by_them, allowed=None):
        theirs, ours = (sent, received) if sent_by_them else (received, sent)
        self._add(what, theirs, ours, allowed)
        return self.lines[-1]

    def _stream(self, sent, sender, receiver, by_them):
        received = _find(receiver, "inbound-rtp", sent["ssrc"])
        name = f"{sent['kind']} {'in' if by_them else 'out'}"
        if received is None:
            self._add(f"{name} ssrc", sent["ssrc"], None)
            return
        slack = self._under_way(sent["ssrc"])
        for mine, mirrored, unit in _STREAM_COUNTERS:
            if mine in sent and mirrored in received:
                line = self._pair(
                    f"{name} {mine}/{mirrored}", sent[mine], received[mirrored], by_them,
                    slack * unit,
                )
                # Browsers also retransmit old packets as bandwidth probes, but do not count them.
                if by_them and mine == "retransmittedPacketsSent":
                    line.less = "theirs"
        for fact in _STREAM_FACTS:
            if fact in sent and fact in received:
                self._pair(f"{name} {fact}", sent[fact], received[fact], by_them)
        if sent.get("framesPerSecond") and received.get("framesPerSecond"):
            # Both ends count the frames within a second, which starts later at the receiver: one
            # frame more or less may fall into it.
            allowed = max(1, sent["framesPerSecond"] * _RATE_SHARE)
            self._pair(
                f"{name} framesPerSecond", sent["framesPerSecond"],
                self._nearest("framesPerSecond", sent, sent["timestamp"], received), by_them,
                allowed,
            )
        self._codec(name, sent, received, sender, receiver, by_them)
        self._reports(name, sent, received, sender, receiver, by_them)

    def _codec(self, name, sent, received, sender, receiver, by_them):
        mine, mirrored = sender.get(sent.get("codecId")), receiver.get(received.get("codecId"))
        if mine is None or mirrored is None:
            self._pair(f"{name} codec", mine and mine["id"], mirrored and mirrored["id"], by_them)
            return
        for fact in _CODEC_FACTS:
            if fact in mine and fact in mirrored:
                self._pair(f"{name} codec.{fact}", mine[fact], mirrored[fact], by_them)

    def _reports(self, name, sent, received, sender, receiver, by_them):
        """Compares what the receiver reported to the sender, and the round-trip times that both
        measured."""
        report = _find(sender, "remote-inbound-rtp", sent["ssrc"])
        if report is None:
            self._pair(f"{name} remote-inbound-rtp", None, sent["ssrc"], by_them)
            return
        # A report states the jitter at the time when it was sent; later values may be higher or
        # lower.
        self._pair(
            f"{name} jitter (reported)", report["jitter"],
            self._nearest("jitter", report, report["timestamp"], received), by_them,
            _JITTER_SECONDS,
        )
        self._pair(
            f"{name} packetsLost (reported)", report["packetsLost"], received["packetsLost"],
            by_them, self._under_way(sent["ssrc"]),
        )
        answered = _find(receiver, "remote-outbound-rtp", sent["ssrc"])
        if answered is None:
            self._pair(f"{name} remote-outbound-rtp", sent["ssrc"], None, by_them)
            return
        # The ends measure the round trip of different packets, so the last values may differ.
        if report.get("roundTripTimeMeasurements") and answered.get("roundTripTimeMeasurements"):
            self._pair(
                f"{name} roundTripTime (RTCP, mean)", _mean_round_trip(report),
                _mean_round_trip(answered), by_them, _ROUND_TRIP_SECONDS,
            )

    def _nearest(self, member, told, at, received):
        """Returns the receiver's value of a member around a time that is nearest to the reported
        one."""
        around = self._nearby(member, told["ssrc"], at) or [received[member]]
        return min(around, key=lambda each: abs(each - told[member]))

    def _transport(self):
        theirs = next(_of_type(self._theirs, "transport"))
        ours = next(_of_type(self._ours, "transport"))
        for fact in _TRANSPORT_FACTS:
            self._add(f"transport {fact}", theirs.get(fact), ours.get(fact))
        roles = sorted([str(theirs.get("dtlsRole")), str(ours.get("dtlsRole"))])
        self._add("transport dtlsRole (both)", " ".join(roles), "client server")
        for mine, mirrored in (("local", "remote"), ("remote", "local")):
            self._add(
                f"certificate {mine}/{mirrored} fingerprint",
                self._fingerprint(self._theirs, theirs, mine),
                self._fingerprint(self._ours, ours, mirrored),
            )
        pair = self._theirs[theirs["selectedCandidatePairId"]]
        own = self._ours[ours["selectedCandidatePairId"]]
        for mine, mirrored in (
            ("requestsSent", "requestsReceived"), ("requestsReceived", "requestsSent"),
            ("responsesSent", "responsesReceived"), ("responsesReceived", "responsesSent"),
        ):
            # Checks are sent several times a second, and lost ones are counted by one end only.
            self._add(f"candidate-pair {mine}/{mirrored}", pair.get(mine), own.get(mirrored), 3)
        slack = sum(
            self._under_way(stream["ssrc"]) for report in (self._theirs, self._ours)
            for stream in _of_type(report, "outbound-rtp")
        )
        # The pair also counts RTCP packets.
        for mine, mirrored in (
            ("packetsSent", "packetsReceived"), ("packetsReceived", "packetsSent"),
        ):
            self._add(
                f"candidate-pair {mine}/{mirrored}", pair.get(mine), own.get(mirrored), slack + 5
            )

    @staticmethod
    def _fingerprint(report, transport, side):
        certificate = report.get(transport.get(f"{side}CertificateId"), {})
        return str(certificate.get("fingerprint")).upper()


def round_trip(what, theirs, ours):
    """Returns a line for two round-trip times in seconds."""
    return Line(what, theirs, ours, _ROUND_TRIP_SECONDS)


def level(what, theirs, ours, concealed):
    """Returns a line for two levels in dB relative to full scale, of audio that was partly
    concealed."""
    allowed = _LEVEL_DECIBELS + _CONCEALED_DECIBELS * 100 * concealed
    return Line(what, round(theirs, 2), round(ours, 2), round(allowed, 2))


def _mean_round_trip(report):
    return report["totalRoundTripTime"] / report["roundTripTimeMeasurements"]


def by_id(objects):
    """Returns a report's objects by id."""
    return {each["id"]: each for each in objects}


def excuse(lines, is_firefox):
    """Excuses the members that Firefox does not report: certificates and most pair counters."""
    for line in lines:
        if is_firefox and line.theirs in (None, "NONE"):
            line.excuse = "not in Firefox"


def show(lines):
    """Returns the table of all members with both values, and the problems in it."""
    rows = [("member", "peer", "retake", "allowed", "")]
    for line in lines:
        allowed = "equal" if line.allowed is None else _short(line.allowed)
        if line.less:
            allowed = f"peer <= retake + {allowed}"
        rows.append(
            (line.what, _short(line.theirs), _short(line.ours), allowed,
             line.excuse or ("" if line.is_good else "differs"))
        )
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    text = "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    )
    problems = [
        f"{line.what}: {_short(line.theirs)} against {_short(line.ours)}"
        for line in lines if not line.is_good
    ]
    return text, problems


def _short(value):
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _of_type(report, kind):
    return (each for each in report.values() if each["type"] == kind)


def _find(report, kind, ssrc):
    return next((each for each in _of_type(report, kind) if each.get("ssrc") == ssrc), None)
