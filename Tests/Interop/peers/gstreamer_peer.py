"""GStreamer's webrtcbin as a peer: DTLS with an RSA certificate, ICE by libnice.

Runs with the system's own Python, because the bindings are Debian's.
"""

import asyncio
import re
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC

from peers import lines, samples
from peers.talk import Talk
from reports import Report, Stream

_GATHERING_SECONDS = 60
_PROMISE_SECONDS = 60
_PAYLOAD_TYPES = {"audio": 111, "video": 96}
_SOURCES = {
    "audio": (
        "audiotestsrc is-live=true wave=sine freq=440 volume=0.3"
        " ! audio/x-raw,rate=48000,channels=2 ! audioconvert"
        " ! opusenc ! rtpopuspay pt={pt} name=audio"
        " ! application/x-rtp,media=audio,encoding-name=OPUS,payload={pt} ! webrtc."
    ),
    "video": (
        "videotestsrc is-live=true pattern=ball"
        f" ! video/x-raw,width={samples.WIDTH},height={samples.HEIGHT},framerate=25/1"
        " ! videoconvert ! video/x-raw,format=I420 ! {encoder} name=encoder"
        " ! {payloader} pt={pt} name=video"
        " ! application/x-rtp,media=video,encoding-name={codec},payload={pt} ! webrtc."
    ),
}
_SINKS = {
    "audio": (
        "queue ! rtpopusdepay ! opusdec ! audioconvert"
        " ! audio/x-raw,format=S16LE,channels=1,rate=48000"
        " ! appsink name=sink emit-signals=true sync=false"
    ),
    "video": (
        "queue ! {depayloader} ! {decoder} ! videoconvert ! video/x-raw,format=I420"
        " ! appsink name=sink emit-signals=true sync=false"
    ),
}
# An empty message stops the pipeline; messages larger than the buffer of GStreamer's SCTP elements
# are truncated.
_MESSAGE_SIZES = (1, 1_200, 16_384, 65_535)
# The elements for each video codec.
_CODECS = {
    "vp8": {
        "encoder": "vp8enc deadline=1 cpu-used=8 keyframe-max-dist=50",
        "payloader": "rtpvp8pay", "depayloader": "rtpvp8depay", "decoder": "vp8dec",
    },
    "vp9": {
        "encoder": "vp9enc deadline=1 cpu-used=8 keyframe-max-dist=50",
        "payloader": "rtpvp9pay", "depayloader": "rtpvp9depay", "decoder": "vp9dec",
    },
    "h264": {
        "encoder": "openh264enc gop-size=50 complexity=low",
        "payloader": "rtph264pay config-interval=-1 aggregate-mode=zero-latency",
        # The depayloader does not set the frames' size, without which the decoder rejects all of
        # them.
        "depayloader": "rtph264depay", "decoder": "h264parse ! openh264dec",
    },
}
_DTLS_ROLES = {True: "client", False: "server"}
# Cipher and authentication, by the numbers that `dtlsenc` uses.
_SRTP_PROFILES = {(1, 1): "AES128_CM_HMAC_SHA1_32", (1, 2): "AES128_CM_HMAC_SHA1_80"}


class _Channel:
    """A data channel with the other stacks' interface; its signals arrive on other threads."""

    _SIGNALS = {"open": "on-open", "close": "on-close"}

    # Reading the GStreamer channel's own state crashes the bindings, so signals set this value
    # instead.
    readyState = "connecting"

    def __init__(self, channel, loop):
        self._channel = channel
        self._loop = loop
        self._told = {"open": [], "close": [], "message": []}
        for name, signal in self._SIGNALS.items():
            channel.connect(signal, lambda _, name=name: self._tell(name))
        channel.connect("on-message-string", lambda _, text: self._tell("message", text or ""))
        channel.connect(
            "on-message-data", lambda _, data: self._tell("message", data.get_data() or b"")
        )

    @property
    def label(self):
        return self._channel.get_property("label")

    def on(self, event, callback):
        """Registers a callback for an event."""
        self._told[event].append(callback)

    def send(self, message):
        """Sends text or bytes."""
        if isinstance(message, str):
            self._channel.emit("send-string", message)
        else:
            self._channel.emit("send-data", GLib.Bytes.new(message))

    def close(self):
        """Closes the channel."""
        self._channel.emit("close")

    def _tell(self, event, *what):
        self._loop.call_soon_threadsafe(self._call, event, what)

    def _call(self, event, what):
        if event == "open":
            self.readyState = "open"
        for callback in self._told[event]:
            callback(*what)


class GstreamerPeer:
    """A pipeline around one webrtcbin, with generated audio and video."""

    def __init__(self, codec="vp8"):
        self._words = {"codec": codec.upper()} | _CODECS[codec]
        self._pipeline = None
        self._webrtc = None
        # The bindings do not retain objects that C code still uses.
        self._kept = []
        self._sent = {"audio": 0, "video": 0}
        self._received = {"audio": 0, "video": 0}
        self._energy = 0.0
        self._contrast = None
        # After a stream reset, webrtcbin's receiving side sometimes stops permanently.
        self._talk = Talk(self._open, _MESSAGE_SIZES, closes=False)
        self._channels = {}
        self._loop = None

    async def offer(self):
        """Returns an offer of audio and video."""
        self._build(_PAYLOAD_TYPES)
        await self._know_formats()
        self._talk.begin(self._open("chat", True))
        return await self._describe("offer")

    async def accept(self, sdp):
        """Applies the answer."""
        await self._set_remote(GstWebRTC.WebRTCSDPType.ANSWER, sdp)

    async def answer(self, sdp):
        """Answers with audio and video, in the formats of the offer."""
        formats = {
            kind: int(re.search(rf"a=rtpmap:(\d+) {codec}/", sdp, re.IGNORECASE).group(1))
            for kind, codec in (("audio", "opus"), ("video", self._words["codec"]))
        }
        self._build(formats)
        await self._set_remote(GstWebRTC.WebRTCSDPType.OFFER, sdp)
        return await self._describe("answer")

    async def report(self):
        """Returns webrtcbin's statistics, and measures of the decoders' output."""
        report = Report(connection=self._webrtc.get_property("connection-state").value_nick)
        self._describe_transport(report)
        kinds = self._kinds()
        statistics = await self._promise("get-stats", None)
        for index in range(statistics.n_fields()):
            entry = statistics.get_value(statistics.nth_field_name(index))
            self._add_stream(report, entry, kinds)
        report.audio_energy = self._energy
        report.video_contrast = self._contrast
        report.data_echo = self._talk.result
        return report

    async def close(self):
        """Ends the pipeline."""
        self._talk.end()
        if self._pipeline:
            self._pipeline.set_state(Gst.State.NULL)

    def _build(self, formats):
        parts = ["webrtcbin name=webrtc bundle-policy=max-bundle"]
        parts += [
            _SOURCES[kind].format(pt=formats[kind], **self._words) for kind in ("audio", "video")
        ]
        self._pipeline = Gst.parse_launch(" ".join(parts))
        self._webrtc = self._pipeline.get_by_name("webrtc")
        self._webrtc.connect("pad-added", self._receive)
        self._loop = asyncio.get_running_loop()
        # A channel of a running association may open before its signal can be connected elsewhere.
        self._webrtc.connect("prepare-data-channel", self._prepare)
        self._webrtc.connect("on-data-channel", self._announced)
        for name, kind in (("audio", "audio"), ("encoder", "video")):
            pad = self._pipeline.get_by_name(name).get_static_pad("src")
            pad.add_probe(
                Gst.PadProbeType.BUFFER | Gst.PadProbeType.BUFFER_LIST, self._count_sent, kind
            )
        self._pipeline.set_state(Gst.State.PLAYING)

    def _open(self, label, ordered):
        options = Gst.Structure.new_empty("options")
        options.set_value("ordered", ordered)
        return self._channels[self._webrtc.emit("create-data-channel", label, options)]

    def _prepare(self, _, channel, is_local):
        prepared = _Channel(channel, self._loop)
        self._channels[channel] = prepared
        if not is_local:
            # An announced channel is already open.
            prepared.readyState = "open"

    def _announced(self, _, channel):
        self._loop.call_soon_threadsafe(self._talk.begin, self._channels[channel])

    def _count_sent(self, _, info, kind):
        listed = info.get_buffer_list() if info.type & Gst.PadProbeType.BUFFER_LIST else None
        self._sent[kind] += listed.length() if listed else 1
        return Gst.PadProbeReturn.OK

    async def _know_formats(self):
        """Waits for the first packets, because an earlier offer would not describe what will be
        sent."""
        async with asyncio.timeout(_GATHERING_SECONDS):
            while not all(pad.get_current_caps() for pad in self._webrtc.sinkpads):
                await asyncio.sleep(0.02)

    async def _describe(self, kind):
        reply = await self._promise(f"create-{kind}", None)
        description = reply.get_value(kind)
        self._kept.append(description)
        await self._promise("set-local-description", description)
        gathered = asyncio.Event()
        loop = asyncio.get_running_loop()

        def look(*_):
            if self._webrtc.get_property("ice-gathering-state").value_nick == "complete":
                loop.call_soon_threadsafe(gathered.set)

        self._webrtc.connect("notify::ice-gathering-state", look)
        look()
        await asyncio.wait_for(gathered.wait(), _GATHERING_SECONDS)
        return self._webrtc.get_property("local-description").sdp.as_text()

    async def _set_remote(self, kind, sdp):
        _, message = GstSdp.SDPMessage.new()
        GstSdp.sdp_message_parse_buffer(sdp.encode(), message)
        description = GstWebRTC.WebRTCSessionDescription.new(kind, message)
        self._kept += [message, description]
        await self._promise("set-remote-description", description)

    async def _promise(self, signal, argument):
        """Returns webrtcbin's reply to an action, which arrives on another thread."""
        promise = Gst.Promise.new()
        self._kept.append(promise)
        self._webrtc.emit(signal, argument, promise)
        done = asyncio.get_running_loop().run_in_executor(None, promise.wait)
        result = await asyncio.wait_for(done, _PROMISE_SECONDS)
        reply = promise.get_reply()
        self._kept.append(reply)
        if result != Gst.PromiseResult.REPLIED or (reply and reply.has_field("error")):
            raise RuntimeError(f"{signal}: {reply.get_value('error') if reply else result}")
        return reply

    def _receive(self, _, pad):
        if pad.direction != Gst.PadDirection.SRC:
            return
        kind = pad.get_current_caps().get_structure(0).get_string("media")
        sink = Gst.parse_bin_from_description(_SINKS[kind].format(**self._words), True)
        take = self._watch if kind == "video" else self._hear
        sink.get_by_name("sink").connect("new-sample", take)
        self._pipeline.add(sink)
        sink.sync_state_with_parent()
        pad.link(sink.get_static_pad("sink"))

    def _watch(self, sink):
        sample = sink.emit("pull-sample")
        plane = _bytes(sample)[: samples.WIDTH * samples.HEIGHT]
        self._received["video"] += 1
        self._contrast = samples.contrast(plane)
        return Gst.FlowReturn.OK

    def _hear(self, sink):
        self._energy += samples.energy(_bytes(sink.emit("pull-sample")), 48000)
        self._received["audio"] += 1
        return Gst.FlowReturn.OK

    def _kinds(self):
        """Returns the kind of each SSRC in the descriptions; webrtcbin's statistics report audio
        for all."""
        kinds = {}
        for side in ("local-description", "remote-description"):
            description = self._webrtc.get_property(side)
            for section in description.sdp.as_text().split("m=")[1:] if description else []:
                for ssrc in re.findall(r"a=ssrc:(\d+) ", section):
                    kinds[int(ssrc)] = section.partition(" ")[0]
        return kinds

    def _add_stream(self, report, entry, kinds):
        if not isinstance(entry, Gst.Structure) or not entry.has_field("ssrc"):
            return
        kind = kinds.get(entry.get_value("ssrc"))
        if kind is None:
            return
        match entry.get_value("type"):
            case GstWebRTC.WebRTCStatsType.INBOUND_RTP:
                direction, packets, frames = "in", "packets-received", self._received
            case GstWebRTC.WebRTCStatsType.OUTBOUND_RTP:
                direction, packets, frames = "out", "packets-sent", self._sent
            case _:
                return
        report.streams.append(
            Stream(kind, direction, entry.get_value("ssrc"), entry.get_value(packets), frames[kind])
        )

    def _describe_transport(self, report):
        # webrtcbin's statistics omit the handshake; its inner elements have it.
        elements = self._webrtc.iterate_recurse()
        while True:
            result, element = elements.next()
            if result != Gst.IteratorResult.OK:
                return
            if element.get_factory() is None or element.get_factory().get_name() != "dtlsenc":
                continue
            if element.get_property("connection-state").value_nick != "connected":
                continue
            chosen = element.get_property("srtp-cipher"), element.get_property("srtp-auth")
            report.dtls_role = _DTLS_ROLES[element.get_property("is-client")]
            report.srtp_profile = _SRTP_PROFILES.get(chosen, str(chosen))


def _bytes(sample):
    buffer = sample.get_buffer()
    return buffer.extract_dup(0, buffer.get_size())


async def main():
    Gst.init(None)
    await lines.serve(GstreamerPeer(*sys.argv[1:]))


asyncio.run(main())
