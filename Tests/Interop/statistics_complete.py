"""Compares every member of Chromium's report with what Retake knows, unless the article on
statistics explains a difference.

No member is skipped: each must be compared by a rule here, be in the list of members that only
its own end knows, or be in the article. A difference of more than 1 % that the article does
not explain is a problem as well.
"""

import re
from pathlib import Path

from statistics_members import Line, show

_ARTICLE = (
    Path(__file__).resolve().parents[2] / "Sources/Products/Retake/Retake.docc/Statistics.md"
)
_SHARE = 0.01

# Members of sent streams: the name at the sender, the name at the receiver, and the value of one
# packet.
_SENT = {
    "packetsSent": ("packetsReceived", 1), "bytesSent": ("bytesReceived", 1200),
    "headerBytesSent": ("headerBytesReceived", 300),
    "retransmittedPacketsSent": ("retransmittedPacketsReceived", 1),
    "retransmittedBytesSent": ("retransmittedBytesReceived", 1200),
    "packetsSentWithEct1": ("packetsReceivedWithEct1", 1),
    "framesSent": ("framesReceived", 1), "framesEncoded": ("framesDecoded", 1),
    "keyFramesEncoded": ("keyFramesDecoded", 1), "qpSum": ("qpSum", 127),
    "nackCount": ("nackCount", 1), "pliCount": ("pliCount", 1), "firCount": ("firCount", 1),
    "rtxSsrc": ("rtxSsrc", None), "mid": ("mid", None), "kind": ("kind", None),
    "ssrc": ("ssrc", None), "frameWidth": ("frameWidth", None),
    "frameHeight": ("frameHeight", None), "framesPerSecond": ("framesPerSecond", 2),
}
_RECEIVED = {ours: (theirs, unit) for theirs, (ours, unit) in _SENT.items()}
_RECEIVED["framesDecoded"] = ("framesEncoded", 1)
# No packet is marked CE, because only routers set that mark and the call runs on one machine.
_NONE_ON_THE_WAY = {"packetsReceivedWithCe"}

# Members that rise and fall: `statistics_members` uses the nearest report, and compares energies
# over the whole call with Retake's libwebrtc-style column.
_OVER_TIME = {"jitter", "audioLevel", "totalAudioEnergy"}

# Members that only the end itself knows: processing and waiting times, concealment, decisions.
_OWN = {
    "inbound-rtp": """
        trackIdentifier playoutId concealedSamples silentConcealedSamples concealmentEvents
        fecPacketsReceived fecPacketsDiscarded insertedSamplesForDeceleration
        removedSamplesForAcceleration jitterBufferDelay jitterBufferTargetDelay
        jitterBufferMinimumDelay jitterBufferEmittedCount totalProcessingDelay
        totalSamplesReceived totalSamplesDuration estimatedPlayoutTimestamp packetsDiscarded
        decoderImplementation powerEfficientDecoder framesDropped freezeCount pauseCount
        totalFreezesDuration totalPausesDuration totalInterFrameDelay totalSquaredInterFrameDelay
        totalDecodeTime totalAssemblyTime framesAssembledFromMultiplePackets
        lastPacketReceivedTimestamp totalCorruptionProbability totalSquaredCorruptionProbability
        corruptionMeasurements jitterBufferFlushes delayedPacketOutageSamples
        relativePacketArrivalDelay interruptionCount totalInterruptionDuration
        googTimingFrameInfo minPlayoutDelay
    """,
    "outbound-rtp": """
        active encodingIndex encoderImplementation powerEfficientEncoder hugeFramesSent
        targetBitrate totalEncodeTime totalEncodedBytesTarget totalPacketSendDelay
        qualityLimitationReason qualityLimitationDurations qualityLimitationResolutionChanges
        scalabilityMode rid psnrSum psnrMeasurements
    """,
    "media-source": "trackIdentifier totalSamplesDuration frames echoReturnLoss"
    " echoReturnLossEnhancement",
    "media-playout": "kind synthesizedSamplesDuration synthesizedSamplesEvents totalPlayoutDelay"
    " totalSamplesCount totalSamplesDuration",
    "remote-inbound-rtp": "fractionLost roundTripTime roundTripTimeMeasurements"
    " totalRoundTripTime",
    "remote-outbound-rtp": "roundTripTime roundTripTimeMeasurements totalRoundTripTime",
    "transport": "iceRole dtlsState iceState selectedCandidatePairChanges"
    " iceLocalUsernameFragment dtlsRole ccfbMessagesSent ccfbMessagesReceived",
    "candidate-pair": """
        state nominated availableOutgoingBitrate availableIncomingBitrate consentRequestsSent
        currentRoundTripTime totalRoundTripTime packetsDiscardedOnSend bytesDiscardedOnSend
        lastPacketSentTimestamp lastPacketReceivedTimestamp
    """,
    "local-candidate": "networkType url relayProtocol tcpType priority",
    "remote-candidate": "priority",
    "codec": "sdpFmtpLine",
    "data-channel": "dataChannelIdentifier",
}
# References to other objects, which are checked when the objects are looked up.
_REFERENCE = re.compile(r"(Id|^id|^type|^timestamp)$")


def explained():
    """Returns the differences and absences that the article on statistics explains."""
    found = {}
    for line in _ARTICLE.read_text().split("## Every member")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and re.fullmatch(r"[a-z-]+", cells[0]):
            found[cells[0], cells[1]] = cells[2]
    return found


class Everything:
    """Compares each object of the peer's report and each of its members."""

    def __init__(self, theirs, ours, under_way, sent_until):
        """`sent_until(ssrc, ms)` returns the packets and payload bytes that Retake had sent by
        then."""
        self._theirs = theirs
        self._ours = ours
        self._under_way = under_way
        self._sent_until = sent_until
        self._explained = explained()
        self.lines = []
        self.problems = []
        self.own = 0

    def run(self):
        for each in self._theirs.values():
            compare = getattr(self, "_" + each["type"].replace("-", "_"), None)
            if compare is None:
                self.problems.append(f"{each['type']}: nothing compares objects of this type")
                continue
            compared = compare(each)
            for member in each:
                self._account(each, member, compared)
        return self.lines, self.problems

    def _account(self, each, member, compared):
        kind = each["type"]
        if _REFERENCE.search(member) or member in compared:
            return
        if member in _OWN.get(kind, "").split() or (kind, member) in self._explained:
            self.own += 1
            return
        self.problems.append(
            f"{kind} {member}: Chromium reports it, nothing compares it, and the article on "
            "statistics has no row for it"
        )

    def _add(self, each, member, theirs, ours, unit):
        kind = each["type"]
        allowed = None
        if unit is not None and isinstance(theirs, (int, float)):
            allowed = max(unit, _SHARE * abs(theirs))
        name = " ".join(filter(None, [kind, each.get("kind"), member]))
        line = Line(name, theirs, ours, allowed)
        if not line.is_good and (kind, member) in self._explained:
            line.excuse = "explained"
        self.lines.append(line)

    def _mirror(self, each, other, names, units=1):
        """Compares members with those of other names in another object; returns the compared
        ones."""
        done = set(_NONE_ON_THE_WAY & each.keys())
        for member in done:
            self._add(each, member, each[member], 0, None)
        for member, (mirrored, unit) in names.items():
            if member not in each:
                continue
            done.add(member)
            value = other.get(mirrored) if other else None
            if value is None and each[member] == 0:
                value = 0  # a receiver that received none need not report the count
            self._add(each, member, each[member], value, unit and unit * units)
        return done

    def _find(self, kind, ssrc):
        return next(
            (o for o in self._ours.values() if o["type"] == kind and o.get("ssrc") == ssrc), None)

    # One method per type of object.

    def _outbound_rtp(self, each):
        return self._mirror(
            each, self._find("inbound-rtp", each["ssrc"]), _SENT, self._under_way(each["ssrc"]))

    def _inbound_rtp(self, each):
        other = self._find("outbound-rtp", each["ssrc"])
        done = self._mirror(each, other, _RECEIVED, self._under_way(each["ssrc"]))
        reports = self._find("remote-inbound-rtp", each["ssrc"]) or {}
        self._add(
            each, "packetsLost", each["packetsLost"], reports.get("packetsLost"),
            self._under_way(each["ssrc"]))
        return done | {"packetsLost"} | _OVER_TIME

    def _remote_inbound_rtp(self, each):
        other = self._find("inbound-rtp", each["ssrc"]) or {}
        self._add(
            each, "packetsLost", each["packetsLost"], other.get("packetsLost"),
            self._under_way(each["ssrc"]))
        self._add(each, "ssrc", each["ssrc"], other.get("ssrc"), None)
        self._add(each, "kind", each["kind"], other.get("kind"), None)
        return {"packetsLost", "ssrc", "kind"} | _OVER_TIME

    def _remote_outbound_rtp(self, each):
        """Compares Retake's last sender report with what it had sent by then."""
        packets, octets = self._sent_until(each["ssrc"], each["remoteTimestamp"])
        self._add(each, "packetsSent", each["packetsSent"], packets, 2)
        self._add(each, "bytesSent", each["bytesSent"], octets, 2400)
        other = self._find("outbound-rtp", each["ssrc"]) or {}
        self._add(each, "ssrc", each["ssrc"], other.get("ssrc"), None)
        self._add(each, "kind", each["kind"], other.get("kind"), None)
        last = max((o["timestamp"] for o in self._theirs.values()), default=0)
        # Sender reports are sent about once a second.
        self._add(each, "remoteTimestamp", each["remoteTimestamp"], last, 6000)
        return {
            "packetsSent", "bytesSent", "ssrc", "kind", "remoteTimestamp", "reportsSent"
        }

    def _media_source(self, each):
        sent = next(
            (o for o in self._theirs.values()
             if o["type"] == "outbound-rtp" and o.get("mediaSourceId") == each["id"]), None)
        other = self._find("inbound-rtp", sent["ssrc"]) if sent else {}
        names = {
            "kind": ("kind", None), "width": ("frameWidth", None),
            "height": ("frameHeight", None), "framesPerSecond": ("framesPerSecond", 2),
        }
        return self._mirror(each, other, names) | _OVER_TIME

    def _media_playout(self, each):
        return set()

    def _peer_connection(self, each):
        other = next(o for o in self._ours.values() if o["type"] == "peer-connection")
        names = {name: (name, 0) for name in ("dataChannelsOpened", "dataChannelsClosed")}
        return self._mirror(each, other, names)

    def _data_channel(self, each):
        other = next(
            (o for o in self._ours.values() if o["type"] == "data-channel"
             and o.get("dataChannelIdentifier") == each.get("dataChannelIdentifier")
             and o["label"] == each["label"]), None)
        names = {
            "label": ("label", None), "protocol": ("protocol", None), "state": ("state", None),
            "messagesSent": ("messagesReceived", 1), "messagesReceived": ("messagesSent", 1),
            "bytesSent": ("bytesReceived", 65_536), "bytesReceived": ("bytesSent", 65_536),
        }
        return self._mirror(each, other, names)

    def _codec(self, each):
        other = next(
            (o for o in self._ours.values() if o["type"] == "codec"
             and o["payloadType"] == each["payloadType"]), {})
        names = {name: (name, None) for name in (
            "payloadType", "mimeType", "clockRate", "channels")}
        return self._mirror(each, other, names)

    def _certificate(self, each):
        other = next(
            (o for o in self._ours.values() if o["type"] == "certificate"
             and o["fingerprint"].upper() == each["fingerprint"].upper()), {})
        self._add(
            each, "fingerprint", each["fingerprint"].upper(),
            other.get("fingerprint", "").upper(), None)
        names = {name: (name, None) for name in ("fingerprintAlgorithm", "base64Certificate")}
        return self._mirror(each, other, names) | {"fingerprint"}

    def _packets(self, each, other):
        slack = sum(
            self._under_way(o["ssrc"]) for o in [*self._theirs.values(), *self._ours.values()]
            if o["type"] == "outbound-rtp") + 5
        names = {
            "packetsSent": ("packetsReceived", slack), "packetsReceived": ("packetsSent", slack),
            "bytesSent": ("bytesReceived", slack * 1200),
            "bytesReceived": ("bytesSent", slack * 1200),
        }
        return self._mirror(each, other, names)

    def _transport(self, each):
        other = next(o for o in self._ours.values() if o["type"] == "transport")
        names = {name: (name, None) for name in ("tlsVersion", "dtlsCipher", "srtpCipher")}
        return self._packets(each, other) | self._mirror(each, other, names)

    def _pair_of(self, each):
        """Returns Retake's pair between the same two addresses."""
        ends = [
            _address(self._theirs.get(each[side], {}))
            for side in ("localCandidateId", "remoteCandidateId")]
        for other in self._ours.values():
            if other["type"] == "candidate-pair":
                mirrored = [
                    _address(self._ours.get(other[side], {}))
                    for side in ("remoteCandidateId", "localCandidateId")]
                if ends == mirrored:
                    return other
        return None

    def _candidate_pair(self, each):
        other = self._pair_of(each)
        names = {
            "requestsSent": ("requestsReceived", 3), "requestsReceived": ("requestsSent", 3),
            "responsesSent": ("responsesReceived", 3), "responsesReceived": ("responsesSent", 3),
            # The priority has 64 bits, which JavaScript numbers cannot represent exactly.
            "priority": ("priority", 4096),
        }
        if other is None:
            # One end may form pairs for which the other end never receives a check.
            return set(names) | {"packetsSent", "packetsReceived", "bytesSent", "bytesReceived"}
        return self._packets(each, other) | self._mirror(each, other, names)

    def _candidate(self, each, kind):
        other = next(
            (o for o in self._ours.values()
             if o["type"] == kind and _address(o) == _address(each)), None)
        names = {name: (name, None) for name in (
            "address", "port", "protocol", "candidateType", "foundation", "usernameFragment",
            "relatedAddress", "relatedPort")}
        if other is None:
            return set(names)
        if other.get("candidateType") == "prflx" or each.get("candidateType") == "prflx":
            # A candidate discovered by a check has another type and foundation.
            names = {name: names[name] for name in ("port", "protocol")}
            self._mirror(each, other, names)
            return set(each)
        return self._mirror(each, other, names)

    def _local_candidate(self, each):
        return self._candidate(each, "remote-candidate")

    def _remote_candidate(self, each):
        return self._candidate(each, "local-candidate")


def _address(candidate):
    return candidate.get("address"), candidate.get("port"), candidate.get("protocol")


def check(theirs, ours, under_way, sent_until):
    """Compares everything; returns a table of differences and explanations, with the counts, and
    the problems."""
    everything = Everything(theirs, ours, under_way, sent_until)
    lines, problems = everything.run()
    _, found = show(lines)
    notable = [line for line in lines if line.excuse or not line.is_good]
    table, _ = show(notable)
    words = (
        f"Chromium's report, member by member: {len(lines)} compared, {everything.own} known to "
        f"Chromium alone, {len(notable)} different and explained or wrong")
    return f"{words}\n{table}" if notable else words, problems + found
