"""A browser's page, driven over one WebSocket: commands out, replies in."""

import asyncio
import itertools

import aiohttp

COMMAND_SECONDS = 120


class PageError(Exception):
    """The page threw an error, or the browser rejected a command."""


class BrowserPage:
    """The common part of the browsers' protocols; subclasses define the messages."""

    def __init__(self, client, socket):
        self._client = client
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting = {}
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, address):
        """Connects to a browser's socket."""
        client = aiohttp.ClientSession()
        try:
            return cls(client, await client.ws_connect(address, max_msg_size=0))
        except BaseException:
            await client.close()
            raise

    def _addressed(self, message):
        """Adds what the protocol needs to address the page to a message."""
        return message

    def _refusal(self, reply):
        """Returns why the browser rejected a command; None if it did not."""
        raise NotImplementedError

    async def evaluate(self, expression):
        """Evaluates an expression and returns its value, awaited if it is a promise."""
        raise NotImplementedError

    async def command(self, method, **parameters):
        """Sends a command and returns its result."""
        number = next(self._numbers)
        message = self._addressed({"id": number, "method": method, "params": parameters})
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json(message)
        try:
            reply = await asyncio.wait_for(self._waiting[number], COMMAND_SECONDS)
        except TimeoutError:
            shown = parameters.get("expression", "")[:60]
            raise PageError(f"{method} {shown}: no reply in {COMMAND_SECONDS} s") from None
        refusal = self._refusal(reply)
        if refusal is not None:
            raise PageError(f"{method}: {refusal}")
        return reply["result"]

    async def until(self, expression, limit=COMMAND_SECONDS):
        """Waits until a JavaScript expression is true, even across page loads."""
        async with asyncio.timeout(limit):
            while True:
                try:
                    if await self.evaluate(expression):
                        return
                except PageError:
                    pass
                await asyncio.sleep(0.05)

    async def close(self):
        """Disconnects from the browser, which continues running."""
        self._reader.cancel()
        await self._socket.close()
        await self._client.close()

    async def _read(self):
        async for message in self._socket:
            reply = message.json()
            waiting = self._waiting.pop(reply.get("id"), None)
            if waiting and not waiting.done():
                waiting.set_result(reply)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(PageError("the browser closed the connection"))
