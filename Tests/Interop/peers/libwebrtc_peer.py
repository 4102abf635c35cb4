"""libwebrtc without a browser: Chromium's stack as a Python module."""

import asyncio
import os

os.environ.setdefault("WRTC_ALLOW_LOOPBACK", "1")

import webrtc

import reports
from peers import lines, samples
from peers.talk import Talk

_SAMPLE_RATE = 48000
_BLOCK = _SAMPLE_RATE // 100
_FRAMES_PER_SECOND = 20
_GATHERING_SECONDS = 60


class LibwebrtcPeer:
    """One RTCPeerConnection of libwebrtc, with generated audio and video."""

    def __init__(self):
        self._connection = webrtc.RTCPeerConnection()
        self._tasks = []
        self._contrast = None
        self._energy = 0.0
        self._connection.on("track", self._receive)
        self._talk = Talk(self._open)
        self._connection.on("datachannel", lambda event: self._talk.begin(event.channel))

    async def offer(self):
        """Returns an offer of audio and video."""
        self._send()
        self._talk.begin(self._open("chat", True))
        await self._connection.set_local_description(await self._connection.create_offer())
        return await self._gathered()

    async def accept(self, sdp):
        """Applies the answer."""
        await self._describe("answer", sdp)

    async def answer(self, sdp):
        """Answers with audio and video."""
        await self._describe("offer", sdp)
        self._send()
        await self._connection.set_local_description(await self._connection.create_answer())
        return await self._gathered()

    async def report(self):
        """Returns libwebrtc's statistics, and measures of its decoders' output."""
        stats = (await self._connection.get_stats()).values()
        state = _text(self._connection.connection_state)
        report = reports.from_w3c(state, [each.to_json() for each in stats])
        report.video_contrast = self._contrast
        report.audio_energy = self._energy
        report.data_echo = self._talk.result
        return report

    async def close(self):
        """Ends the connection."""
        self._talk.end()
        for task in self._tasks:
            task.cancel()
        self._connection.close()

    def _open(self, label, ordered):
        settings = webrtc.RTCDataChannelInit(ordered=ordered)
        return self._connection.create_data_channel(label, settings)

    async def _describe(self, kind, sdp):
        await self._connection.set_remote_description(
            webrtc.RTCSessionDescriptionInit(type=kind, sdp=sdp)
        )

    async def _gathered(self):
        complete = asyncio.Event()

        def look(_=None):
            if _text(self._connection.ice_gathering_state) == "complete":
                complete.set()

        self._connection.on("icegatheringstatechange", look)
        look()
        await asyncio.wait_for(complete.wait(), _GATHERING_SECONDS)
        return self._connection.local_description.sdp

    def _send(self):
        video = webrtc.VideoTrackGenerator()
        audio = webrtc.MediaStreamTrackGenerator(
            webrtc.MediaStreamTrackGeneratorInit(kind="audio")
        )
        self._connection.add_track(audio)
        self._connection.add_track(video.track)
        self._keep(_draw(video.writable.get_writer()))
        self._keep(_hum(audio.writable.get_writer()))

    def _receive(self, event):
        processor = webrtc.MediaStreamTrackProcessor(
            webrtc.MediaStreamTrackProcessorInit(track=event.track)
        )
        listen = self._watch if _text(event.track.kind) == "video" else self._hear
        self._keep(listen(processor.readable.get_reader()))

    async def _watch(self, reader):
        while not (chunk := await reader.read()).done:
            frame = bytearray(chunk.value.allocation_size())
            await chunk.value.copy_to(frame)
            plane = chunk.value.coded_width * chunk.value.coded_height
            self._contrast = samples.contrast(bytes(frame[:plane]))
            chunk.value.close()

    async def _hear(self, reader):
        layout = webrtc.AudioDataCopyToOptions(plane_index=0, format="s16")
        while not (chunk := await reader.read()).done:
            block = bytearray(chunk.value.allocation_size(layout))
            chunk.value.copy_to(block, layout)
            self._energy += samples.energy(bytes(block), chunk.value.sample_rate)
            chunk.value.close()

    def _keep(self, coroutine):
        self._tasks.append(asyncio.ensure_future(coroutine))


async def _draw(writer):
    chroma = b"\x80" * (samples.WIDTH * samples.HEIGHT // 2)
    async for number, seconds in _ticks(1 / _FRAMES_PER_SECOND):
        settings = webrtc.VideoFrameBufferInit(
            format="I420",
            coded_width=samples.WIDTH,
            coded_height=samples.HEIGHT,
            timestamp=int(seconds * 1_000_000),
        )
        await writer.write(webrtc.VideoFrame(samples.luma(number) + chroma, settings))


async def _hum(writer):
    table = samples.sine_table(_SAMPLE_RATE)
    async for number, seconds in _ticks(_BLOCK / _SAMPLE_RATE):
        settings = webrtc.AudioDataInit(
            format="s16",
            sample_rate=_SAMPLE_RATE,
            number_of_frames=_BLOCK,
            number_of_channels=1,
            timestamp=int(seconds * 1_000_000),
            data=samples.tone(table, number * _BLOCK, _BLOCK),
        )
        await writer.write(webrtc.AudioData(settings))


async def _ticks(period):
    """Yields numbers at a steady rate, each with its media time in seconds."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    number = 0
    while True:
        yield number, number * period
        number += 1
        await asyncio.sleep(max(0, start + number * period - loop.time()))


def _text(value):
    """Returns one of the module's enumeration values as a plain string."""
    return str(getattr(value, "value", value))


async def main():
    await lines.serve(LibwebrtcPeer())


asyncio.run(main())
