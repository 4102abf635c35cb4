"""A peer that only fills a data channel, or empties one: aiortc or libwebrtc.

The offerer sends messages of one size as fast as the other end receives them. The buffered amount
stays below a limit, and sending resumes when half of it is free.
"""

import asyncio
import os
import sys

from peers import lines

# The buffered amount at which a sender has to wait in Retake.
_WINDOW = 1 << 20


class Flood:
    """The common part of both stacks; `channel` and `connection` have the same methods in both."""

    def __init__(self, message_size):
        self._message = os.urandom(message_size)
        self._task = None
        # The number of message bytes received.
        self.received = 0

    def send_over(self, channel):
        """Sends until the end, from the opening of the channel on."""
        opened = asyncio.Event()
        channel.on("open", lambda *_: opened.set())
        self._task = asyncio.ensure_future(self._send(channel, opened))

    def receive_from(self, channel):
        """Counts received messages."""
        channel.on("message", self._count)

    def end(self):
        """Stops sending."""
        if self._task:
            self._task.cancel()

    async def _send(self, channel, opened):
        await opened.wait()
        room = asyncio.Event()
        channel.bufferedAmountLowThreshold = _WINDOW // 2
        channel.on("bufferedamountlow", lambda *_: room.set())
        while True:
            room.clear()
            while channel.bufferedAmount < _WINDOW:
                channel.send(self._message)
            await room.wait()

    def _count(self, what):
        # libwebrtc passes an event with the data, aiortc the data.
        self.received += len(getattr(what, "data", what))


class AiortcFlood(Flood):
    """One end with aiortc."""

    def __init__(self, message_size):
        super().__init__(message_size)
        import aioice.ice
        import aiortc

        # aioice omits loopback, which is the only network here.
        aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]
        self._describe = aiortc.RTCSessionDescription
        self._connection = aiortc.RTCPeerConnection(aiortc.RTCConfiguration(iceServers=[]))
        self._connection.on("datachannel", self.receive_from)

    async def offer(self):
        """Returns the offer of a channel, which is then filled."""
        self.send_over(self._connection.createDataChannel("flood"))
        await self._connection.setLocalDescription(await self._connection.createOffer())
        return self._connection.localDescription.sdp

    async def accept(self, sdp):
        """Applies the answer."""
        await self._connection.setRemoteDescription(self._describe(sdp, "answer"))

    async def answer(self, sdp):
        """Returns the answer."""
        await self._connection.setRemoteDescription(self._describe(sdp, "offer"))
        await self._connection.setLocalDescription(await self._connection.createAnswer())
        return self._connection.localDescription.sdp

    async def close(self):
        """Ends at once: a process that sends all the time has no time to close properly."""
        self.end()


class LibwebrtcFlood(Flood):
    """One end with libwebrtc."""

    def __init__(self, message_size):
        super().__init__(message_size)
        os.environ.setdefault("WRTC_ALLOW_LOOPBACK", "1")
        import webrtc

        self._module = webrtc
        self._connection = webrtc.RTCPeerConnection()
        self._connection.on("datachannel", lambda event: self.receive_from(event.channel))

    async def offer(self):
        """Returns the offer of a channel, which is then filled."""
        settings = self._module.RTCDataChannelInit(ordered=True)
        self.send_over(self._connection.create_data_channel("flood", settings))
        return await self._described(await self._connection.create_offer())

    async def accept(self, sdp):
        """Applies the answer."""
        await self._take("answer", sdp)

    async def answer(self, sdp):
        """Returns the answer."""
        await self._take("offer", sdp)
        return await self._described(await self._connection.create_answer())

    async def close(self):
        """Ends at once."""
        self.end()

    async def _take(self, kind, sdp):
        description = self._module.RTCSessionDescriptionInit(type=kind, sdp=sdp)
        await self._connection.set_remote_description(description)

    async def _described(self, description):
        complete = asyncio.Event()

        def look(_=None):
            if self._connection.ice_gathering_state.value == "complete":
                complete.set()

        self._connection.on("icegatheringstatechange", look)
        await self._connection.set_local_description(description)
        look()
        await complete.wait()
        return self._connection.local_description.sdp


async def main():
    stack = {"aiortc": AiortcFlood, "libwebrtc": LibwebrtcFlood}[sys.argv[1]]
    await lines.serve(stack(int(sys.argv[2])))


asyncio.run(main())
