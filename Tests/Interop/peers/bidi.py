"""The first tab of Firefox, over WebDriver BiDi."""

import json

from peers.page import BrowserPage, PageError


class BidiPage(BrowserPage):
    """The first tab of a browser."""

    _context = None

    @classmethod
    async def open(cls, address):
        """Connects to a browser's socket, begins a session and takes the tab that is open."""
        page = await cls.connect(f"{address}/session")
        await page.command("session.new", capabilities={})
        tree = await page.command("browsingContext.getTree")
        page._context = tree["contexts"][0]["context"]
        return page

    def _refusal(self, reply):
        return f"{reply['error']}: {reply['message']}" if reply.get("type") == "error" else None

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
