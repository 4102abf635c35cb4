"""WebDriver BiDi over one WebSocket: commands out, replies in, one page."""

import asyncio
import itertools
import json

import aiohttp

from peers.devtools import PageError

_COMMAND_SECONDS = 30


class BidiPage:
    """The first tab of a browser."""

    def __init__(self, client, socket):
        self._client = client
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting = {}
        self._context = None
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, address):
        """Connects to a browser's socket, begins a session and takes the tab that is open."""
        client = aiohttp.ClientSession()
        try:
            page = cls(client, await client.ws_connect(f"{address}/session", max_msg_size=0))
        except BaseException:
            await client.close()
            raise
        await page.command("session.new", capabilities={})
        tree = await page.command("browsingContext.getTree")
        page._context = tree["contexts"][0]["context"]
        return page

    async def command(self, method, **parameters):
        """Sends a command and gives its result."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        try:
            reply = await asyncio.wait_for(self._waiting[number], _COMMAND_SECONDS)
        except TimeoutError:
            shown = parameters.get("expression", "")[:60]
            raise PageError(f"{method} {shown}: no reply in {_COMMAND_SECONDS} s") from None
        if reply.get("type") == "error":
            raise PageError(f"{method}: {reply['error']}: {reply['message']}")
        return reply["result"]

    async def inject(self, script):
        """Runs a script in every page before the page's own."""
        await self.command(
            "script.addPreloadScript", functionDeclaration=f"() => {{ {script} }}"
        )

    async def load(self, address, ready="true"):
        """Goes to an address and waits until its scripts ran and an expression holds there."""
        await self.command(
            "browsingContext.navigate", context=self._context, url=address, wait="complete"
        )
        await self.until(ready)

    async def until(self, expression, limit=_COMMAND_SECONDS):
        """Waits until a JavaScript expression is true."""
        async with asyncio.timeout(limit):
            while not await self.evaluate(expression):
                await asyncio.sleep(0.05)

    async def evaluate(self, expression):
        """The value of an expression, awaited when it is a promise."""
        # As text: the protocol's own form of values is made for other purposes.
        reply = await self.command(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({expression})) ?? 'null')()",
            target={"context": self._context},
            awaitPromise=True,
            userActivation=True,
        )
        if reply["type"] == "exception":
            raise PageError(reply["exceptionDetails"]["text"])
        return json.loads(reply["result"]["value"])

    async def close(self):
        """Lets go of the browser, which runs on."""
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
