"""A tab of Chromium, over the Chrome DevTools Protocol."""

from peers.page import BrowserPage, PageError


class Page(BrowserPage):
    """A tab of a browser."""

    _session = None

    @classmethod
    async def open(cls, address):
        """Connects to a browser's own socket and opens an empty tab."""
        page = await cls.connect(address)
        target = await page.command("Target.createTarget", url="about:blank")
        attached = await page.command(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        page._session = attached["sessionId"]
        await page.command("Page.enable")
        return page

    def _addressed(self, message):
        return {**message, "sessionId": self._session} if self._session else message

    def _refusal(self, reply):
        return reply["error"]["message"] if "error" in reply else None

    async def load(self, address, ready="true"):
        """Loads an address and waits until its scripts have run and an expression holds there."""
        result = await self.command("Page.navigate", url=address)
        if "errorText" in result:
            raise PageError(f"{address}: {result['errorText']}")
        await self.until(f"document.readyState == 'complete' && ({ready})")

    async def evaluate(self, expression):
        """Evaluates an expression and returns its value, awaited if it is a promise."""
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
