"""Messages that a peer sends over data channels, all of which must be echoed.

`call.js` does the same in a browser, up to a mebibyte if the browser receives that much; the
descriptions of the stacks here state a maximum message size of 256 KiB.
"""

import asyncio
import os

# Set for a conversation of a few kilobytes, to keep the take small.
BRIEF = "RETAKE_INTEROP_BRIEF"
# The sizes of the messages on the first channel, how many messages the second, unordered channel
# carries, and how many channels are opened at once after that.
_SIZES = [0, 1, 1_200, 16_384, 65_535, 65_536, 262_144]
_UNORDERED = 50
_CHANNELS = 100
if os.environ.get(BRIEF):
    _SIZES, _UNORDERED, _CHANNELS = _SIZES[:3], 5, 3
_SECONDS = 60


class Talk:
    """The conversation over one connection's channels; `result` is its state."""

    def __init__(self, open_channel, sizes=None, closes=True):
        # open_channel(label, ordered) creates a local channel; `sizes` are the message sizes that
        # the peer's stack supports, if not all; `closes` says whether it supports closing channels
        # while others stay open.
        self._open = open_channel
        self._closes = closes
        self._sizes_said = [size for size in _SIZES if sizes is None or size in sizes]
        self._task = None
        # None before a channel exists, then what is missing, and finally `hello ...`.
        self.result = None

    def begin(self, channel):
        """Talks over a channel, local or announced; a second call has no effect."""
        if self._task is None:
            self.result = "no echo yet"
            self._task = asyncio.ensure_future(self._run(_Line(channel)))

    def end(self):
        """Stops talking."""
        if self._task:
            self._task.cancel()

    async def _run(self, first):
        try:
            async with asyncio.timeout(_SECONDS):
                await self._sizes(first)
                await self._any_order(_Line(self._open("unordered", False)))
                await self._many()
        except Exception as error:  # any error of the stack is the result
            self.result += f"; {type(error).__name__}: {error}"
            return
        messages = 2 * len(self._sizes_said) + _UNORDERED + _CHANNELS
        self.result = f"hello from {_CHANNELS + 2} channels, {messages} messages"

    async def _sizes(self, line):
        await line.opened.wait()
        sent = [kind(size) for size in self._sizes_said for kind in (_text, _block)]
        for message in sent:
            line.channel.send(message)
        for message in sent:
            back = await line.inbox.get()
            self.result = f"echo of {type(message).__name__} of {len(message)}"
            if back != message:
                raise ValueError(f"a {type(back).__name__} of {len(back)} came back")

    async def _any_order(self, line):
        await line.opened.wait()
        sent = [_block(100 + number) for number in range(_UNORDERED)]
        for message in sent:
            line.channel.send(message)
        back = [await line.inbox.get() for _ in sent]
        self.result = "echo without order"
        if sorted(back) != sorted(sent):
            raise ValueError("other messages were echoed")

    async def _many(self):
        lines = [_Line(self._open(f"many {n}", n % 2 == 0)) for n in range(_CHANNELS)]
        for line in lines:
            await line.opened.wait()
            line.channel.send(line.channel.label)
        self.result = "echo on many channels"
        for line in lines:
            if (back := await line.inbox.get()) != line.channel.label:
                raise ValueError(f"{back} came back")
            if self._closes:
                line.channel.close()
        self.result = "closing of many channels"
        for line in lines if self._closes else ():
            await line.closed.wait()


class _Line:
    """A channel with its received messages; the channels of aiortc and of libwebrtc are alike."""

    def __init__(self, channel):
        self.channel = channel
        self.inbox = asyncio.Queue()
        self.opened = asyncio.Event()
        self.closed = asyncio.Event()
        channel.on("open", lambda *_: self.opened.set())
        channel.on("close", lambda *_: self.closed.set())
        # libwebrtc passes an event with the data, aiortc the data.
        channel.on("message", lambda what: self.inbox.put_nowait(getattr(what, "data", what)))
        state = channel.readyState
        if getattr(state, "value", state) == "open":
            self.opened.set()


def _text(size):
    """Returns text of a given size in UTF-8, not all of it ASCII."""
    return "é" * (size // 2) + "x" * (size % 2)


def _block(size):
    return bytes(number * 7 & 0xFF for number in range(size))
