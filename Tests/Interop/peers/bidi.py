"""The first tab of Firefox, over WebDriver BiDi."""

import asyncio
import json

from peers.page import BrowserPage, PageError

# A working browser answers within a few seconds, even on a busy machine.
_SESSION_SECONDS = 40


class NoSessionError(PageError):
    """The browser does not begin a session."""


class BidiPage(BrowserPage):
    """The first tab of a browser."""

    _context = None

    @classmethod
    async def open(cls, address):
        """Connects to a browser's socket, starts a session and uses the tab that is open."""
        page = await cls.connect(f"{address}/session")
        try:
            await asyncio.wait_for(
                page.command("session.new", capabilities={}), _SESSION_SECONDS)
            tree = await page.command("browsingContext.getTree")
        except TimeoutError:
            await page.close()
            raise NoSessionError(f"no session within {_SESSION_SECONDS} s") from None
        page._context = tree["contexts"][0]["context"]
        return page

    def _refusal(self, reply):
        return f"{reply['error']}: {reply['message']}" if reply.get("type") == "error" else None

    async def inject(self, script):
        """Runs a script in every page before the page's own scripts."""
        await self.command(
            "script.addPreloadScript", functionDeclaration=f"() => {{ {script} }}"
        )

    async def load(self, address, ready="true"):
        """Loads an address and waits until its scripts have run and an expression holds there."""
        await self.command(
            "browsingContext.navigate", context=self._context, url=address, wait="complete"
        )
        await self.until(ready)

    async def evaluate(self, expression):
        """Evaluates an expression and returns its value, awaited if it is a promise."""
        # Return the value as text, because the protocol serializes values in its own form.
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
