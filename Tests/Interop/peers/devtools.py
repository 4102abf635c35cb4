"""The Chrome DevTools Protocol over one WebSocket: commands out, replies in, one page."""

import asyncio
import itertools

import aiohttp

_COMMAND_SECONDS = 20


class PageError(Exception):
    """The page threw, or the browser refused a command."""


class Page:
    """A tab of a browser."""

    def __init__(self, client, socket):
        self._client = client
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting = {}
        self._session = None
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, address):
        """Connects to a browser's own socket and opens an empty tab."""
        client = aiohttp.ClientSession()
        try:
            page = cls(client, await client.ws_connect(address, max_msg_size=0))
        except BaseException:
            await client.close()
            raise
        target = await page.command("Target.createTarget", url="about:blank")
        attached = await page.command(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        page._session = attached["sessionId"]
        await page.command("Page.enable")
        return page

    async def command(self, method, **parameters):
        """Sends a command and gives its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json(message)
        try:
            reply = await asyncio.wait_for(self._waiting[number], _COMMAND_SECONDS)
        except TimeoutError:
            shown = parameters.get("expression", "")[:60]
            raise PageError(f"{method} {shown}: no reply in {_COMMAND_SECONDS} s") from None
        if "error" in reply:
            raise PageError(f"{method}: {reply['error']['message']}")
        return reply["result"]

    async def load(self, address, ready="true"):
        """Goes to an address and waits until its scripts ran and an expression holds there."""
        result = await self.command("Page.navigate", url=address)
        if "errorText" in result:
            raise PageError(f"{address}: {result['errorText']}")
        await self.until(f"document.readyState == 'complete' && ({ready})")

    async def until(self, expression, limit=_COMMAND_SECONDS):
        """Waits until a JavaScript expression is true; asks anew when the page changes under it."""
        async with asyncio.timeout(limit):
            while True:
                try:
                    if await self.evaluate(expression):
                        return
                except PageError:
                    pass
                await asyncio.sleep(0.05)

    async def evaluate(self, expression):
        """The value of an expression, awaited when it is a promise."""
        result = await self.command(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in result:
            thrown = result["exceptionDetails"]
            raise PageError(thrown.get("exception", {}).get("description", thrown["text"]))
        return result["result"].get("value")

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
