"""aiortc as a peer: a WebRTC stack in Python, with DTLS from pyca/cryptography."""

import asyncio
import dataclasses
import datetime
import os
import sys

import aioice.ice

# aioice omits loopback, which is the only network unless another address is given.
_ADDRESS = os.environ.get("RETAKE_INTEROP_AIORTC", "127.0.0.1")
aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: [_ADDRESS]

import av
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack, MediaStreamError, VideoStreamTrack
from aiortc.rtcdtlstransport import RTCCertificate

from peers import lines, samples
from peers.talk import Talk
from reports import Report, Stream

_SAMPLE_RATE = 8000


def log_keys(path):
    """Logs DTLS secrets to a file (NSS format)."""
    make = RTCCertificate._create_ssl_context

    def logged(self, *arguments, **options):
        context = make(self, *arguments, **options)

        def write(_, line):
            with open(path, "ab") as log:
                log.write(line + b"\n")

        context.set_keylog_callback(write)
        return context

    RTCCertificate._create_ssl_context = logged


if "SSLKEYLOGFILE" in os.environ:
    log_keys(os.environ["SSLKEYLOGFILE"])


class Tone(AudioStreamTrack):
    """aiortc's silent track with a tone in it, at the same pace."""

    def __init__(self):
        super().__init__()
        self.sent = 0
        self._table = samples.sine_table(_SAMPLE_RATE)

    async def recv(self):
        frame = await super().recv()
        frame.planes[0].update(samples.tone(self._table, self.sent * frame.samples, frame.samples))
        self.sent += 1
        return frame


class Gradient(VideoStreamTrack):
    """A moving gradient."""

    def __init__(self):
        super().__init__()
        self.sent = 0

    async def recv(self):
        pts, time_base = await self.next_timestamp()
        frame = av.VideoFrame(samples.WIDTH, samples.HEIGHT, "yuv420p")
        frame.planes[0].update(samples.luma(self.sent))
        for chroma in frame.planes[1:]:
            chroma.update(b"\x80" * chroma.buffer_size)
        frame.pts, frame.time_base = pts, time_base
        self.sent += 1
        return frame


class Ear:
    """Consumes a remote track and measures it."""

    def __init__(self, track):
        self.kind = track.kind
        self.frames = 0
        self.energy = 0.0
        self.contrast = None
        self.size = (0, 0)
        self._task = asyncio.ensure_future(self._listen(track))

    async def _listen(self, track):
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            self.frames += 1
            if self.kind == "video":
                self.contrast = samples.contrast(bytes(frame.planes[0]))
                self.size = (frame.width, frame.height)
            else:
                self.energy += samples.energy(_sound(frame), frame.sample_rate)


def _sound(frame):
    """Returns the samples of the first channel's plane, without the plane's padding."""
    channels = 1 if frame.format.is_planar else len(frame.layout.channels)
    return bytes(frame.planes[0])[: 2 * frame.samples * channels]


class AiortcPeer:
    """One RTCPeerConnection of aiortc."""

    def __init__(self, codec="vp8", audio="opus"):
        self._codecs = {"video": codec, "audio": audio}
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._sources = {"audio": Tone(), "video": Gradient()}
        self._ears = []
        self._talk = Talk(
            lambda label, ordered: self._connection.createDataChannel(label, ordered=ordered)
        )
        self._connection.on("datachannel", self._talk.begin)
        self._connection.on("track", lambda track: self._ears.append(Ear(track)))

    async def offer(self):
        """Returns an offer of audio and video."""
        for source in self._sources.values():
            self._connection.addTrack(source)
        self._prefer()
        self._talk.begin(self._connection.createDataChannel("chat"))
        await self._connection.setLocalDescription(await self._connection.createOffer())
        return self._connection.localDescription.sdp

    async def accept(self, sdp):
        """Applies the answer."""
        await self._connection.setRemoteDescription(RTCSessionDescription(sdp, "answer"))

    async def answer(self, sdp):
        """Answers with audio and video."""
        await self._connection.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
        for source in self._sources.values():
            self._connection.addTrack(source)
        self._prefer()
        await self._connection.setLocalDescription(await self._connection.createAnswer())
        return self._connection.localDescription.sdp

    def _prefer(self):
        """Restricts the codecs to the call's, where these are not the defaults."""
        for transceiver in self._connection.getTransceivers():
            kind = transceiver.kind
            if self._codecs[kind] in ("vp8", "opus"):
                continue
            wanted = {f"{kind}/{self._codecs[kind]}", f"{kind}/rtx"}
            codecs = RTCRtpSender.getCapabilities(kind).codecs
            transceiver.setCodecPreferences(
                [codec for codec in codecs if codec.mimeType.lower() in wanted]
            )

    async def report(self):
        """Returns aiortc's statistics, and the measures of local and remote tracks."""
        report = Report(connection=self._connection.connectionState)
        self._describe_transport(report)
        for stats in (await self._connection.getStats()).values():
            if stats.type == "inbound-rtp":
                ears = [ear for ear in self._ears if ear.kind == stats.kind]
                heard = sum(ear.frames for ear in ears)
                width, height = ears[0].size if ears else (0, 0)
                report.streams.append(
                    Stream(
                        stats.kind, "in", stats.ssrc, stats.packetsReceived, heard,
                        width=width, height=height,
                    )
                )
            elif stats.type == "outbound-rtp":
                sent = self._sources[stats.kind].sent
                report.streams.append(
                    Stream(stats.kind, "out", stats.ssrc, stats.packetsSent, sent)
                )
        report.audio_energy = sum(ear.energy for ear in self._ears if ear.kind == "audio")
        report.data_echo = self._talk.result
        report.video_contrast = next(
            (ear.contrast for ear in self._ears if ear.kind == "video"), None
        )
        return report

    async def statistics(self):
        """Returns the objects of getStats, with jitter converted from clock units to seconds."""
        objects = []
        for stats in (await self._connection.getStats()).values():
            members = dataclasses.asdict(stats)
            for name, value in members.items():
                if isinstance(value, datetime.datetime):
                    members[name] = value.timestamp() * 1000
            if "jitter" in members:
                members["jitter"] /= {"audio": 48_000, "video": 90_000}[members["kind"]]
            objects.append(members)
        return objects

    async def close(self):
        """Closes the connection, notifying the other end."""
        self._talk.end()
        await self._connection.close()

    def _describe_transport(self, report):
        # aiortc's statistics omit the handshake; its transport has it.
        for transceiver in self._connection.getTransceivers():
            transport = transceiver.sender.transport
            tls = getattr(transport, "_ssl", None)
            if tls is None or transport.state != "connected":
                continue
            report.dtls_version = tls.get_protocol_version_name().removeprefix("DTLSv")
            report.dtls_role = getattr(transport, "_role", None) or ""
            report.srtp_profile = tls.get_selected_srtp_profile().decode().removeprefix("SRTP_")


async def main():
    await lines.serve(AiortcPeer(*sys.argv[1:]))


asyncio.run(main())
