"""A peer's statistics of its side of a call, in one form for every peer."""

import re
from dataclasses import dataclass, field

# The names of DTLS versions by their numbers on the wire.
DTLS_VERSIONS = {"FEFF": "1.0", "FEFD": "1.2", "FEFC": "1.3"}


@dataclass
class Stream:
    """An RTP stream in its peer's statistics."""

    kind: str
    # `in` if the peer receives it from Retake, `out` if it sends it.
    direction: str
    ssrc: int
    packets: int
    # Decoded or encoded video frames; for audio, packets.
    frames: int
    # The SSRC for retransmissions and padding, which libwebrtc counts with the stream.
    rtx_ssrc: int | None = None
    # The size of the last decoded video frame.
    width: int = 0
    height: int = 0


@dataclass
class Report:
    """A snapshot of a peer's statistics."""

    connection: str = ""
    dtls_version: str = ""
    # The peer's own DTLS role: client or server.
    dtls_role: str = ""
    srtp_profile: str = ""
    streams: list[Stream] = field(default_factory=list)
    # The energy of received audio, in the unit of W3C totalAudioEnergy; None if it is not measured.
    audio_energy: float | None = None
    # The standard deviation of a received video frame's luma; None if no frame was examined.
    video_contrast: float | None = None
    # What was echoed on a data channel; None if none was opened.
    data_echo: str | None = None

    def frames(self, direction, kind):
        """Returns the frames of one kind in a direction, over all streams."""
        return sum(s.frames for s in self.streams if (s.direction, s.kind) == (direction, kind))

    def shows(self, width, height):
        """Returns whether received video frames of a size were decoded."""
        return any(
            (s.direction, s.width, s.height) == ("in", width, height) and s.frames
            for s in self.streams
        )

    def pair_retransmissions(self, descriptions):
        """Fills in retransmission SSRCs that only the descriptions name."""
        pairs = dict(re.findall(r"a=ssrc-group:FID (\d+) (\d+)", "\n".join(descriptions)))
        for stream in self.streams:
            if stream.rtx_ssrc is None and (paired := pairs.get(str(stream.ssrc))):
                stream.rtx_ssrc = int(paired)


def from_json(members):
    """Parses a report that a peer process printed."""
    streams = [Stream(**stream) for stream in members.pop("streams", [])]
    return Report(streams=streams, **members)


def from_w3c(connection, objects):
    """Makes a report from the objects of W3C getStats."""
    report = Report(connection=connection)
    for stats in objects:
        match stats["type"]:
            case "transport":
                version = stats.get("tlsVersion", "")
                report.dtls_version = DTLS_VERSIONS.get(version.upper(), version)
                report.dtls_role = stats.get("dtlsRole") or ""
                report.srtp_profile = (stats.get("srtpCipher") or "").removeprefix("SRTP_")
            case "inbound-rtp":
                report.streams.append(_stream(stats, "in", "packetsReceived", "framesDecoded"))
                if stats["kind"] == "audio":
                    report.audio_energy = stats.get("totalAudioEnergy")
            case "outbound-rtp":
                report.streams.append(_stream(stats, "out", "packetsSent", "framesEncoded"))
    return report


def _stream(stats, direction, packets, frames):
    """Makes a stream from an RTP object, given the names of its counters."""
    kind = stats["kind"]
    sent = stats.get(packets) or 0
    shown = stats.get(frames) or 0 if kind == "video" else sent
    return Stream(
        kind, direction, stats["ssrc"], sent, shown, stats.get("rtxSsrc"),
        stats.get("frameWidth") or 0, stats.get("frameHeight") or 0,
    )
