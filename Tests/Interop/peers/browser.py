"""A call in a browser's page, over whichever protocol drives the browser."""

import json
import os
from pathlib import Path

import reports
from peers.talk import BRIEF

CALL_PAGE = Path(__file__).with_name("call.html")
CALL_SCRIPT = Path(__file__).with_name("call.js").read_text(encoding="utf-8")


class Browser:
    """A page with one RTCPeerConnection; `page` runs the script `call.js`."""

    def __init__(self, page):
        self.page = page

    async def prepare(self, settings):
        """Loads the call's page and sets members of `call`."""
        await self.page.load(CALL_PAGE.as_uri(), ready="window.call !== undefined")
        settings = {**settings, "brief": bool(os.environ.get(BRIEF))}
        for name, value in settings.items():
            await self.page.evaluate(f"void (call.{name} = {json.dumps(value)})")

    async def visit(self, address):
        """Opens Retake's page, which makes the call by itself."""
        await self.page.load(address, ready="window.call && call.connections.length > 0")

    async def chat(self, text):
        """Types a line into the chat of Retake's page, and waits until it is echoed."""
        await self.page.until("!document.getElementById('text').disabled")
        await self.page.evaluate(
            f"void (document.getElementById('text').value = {json.dumps(text)},"
            " document.getElementById('talk').requestSubmit())"
        )
        await self.page.until(
            "[...document.querySelectorAll('#log .in span')]"
            f".some(line => line.textContent === {json.dumps(text)})"
        )

    async def look(self):
        """Waits until Retake's page shows all information about the call."""
        for what in (
            "document.querySelector('#recording b').textContent.endsWith('.take')",
            "document.getElementById('mute') !== null",
            "document.getElementById('states').textContent.includes('round trip')",
            "document.querySelectorAll('#stats meter').length >= 2",
            r"/\d ms/.test(document.getElementById('stats').textContent)",
        ):
            await self.page.until(what)

    async def hang_up(self):
        """Hangs up on Retake's page, and reads the page of the take that it links to."""
        await self.page.evaluate("void document.getElementById('hangup').click()")
        await self.page.until("document.getElementById('take') !== null")
        page = await self.page.evaluate(
            "fetch(document.getElementById('take').href).then(reply => reply.text())"
        )
        if "<svg" not in page and 'id="data"' not in page:
            raise ValueError("the link leads to no page of a take")

    async def offer(self):
        """Returns the browser's offer, with all of its candidates."""
        return await self.page.evaluate("call.offer()")

    async def accept(self, sdp):
        """Applies the answer."""
        await self.page.evaluate(f"call.accept({json.dumps(sdp)})")

    async def answer(self, sdp):
        """Returns the browser's answer."""
        return await self.page.evaluate(f"call.answer({json.dumps(sdp)})")

    async def change(self, script):
        """Runs a script that changes the call; the next offer includes the change."""
        await self.page.evaluate(f"void (() => {{ {script} }})()")

    async def offer_again(self):
        """Returns another offer within the call."""
        return await self.page.evaluate("call.reoffer()")

    async def answer_again(self, sdp):
        """Returns the answer to another offer, rolling back a pending local one."""
        return await self.page.evaluate(f"call.reanswer({json.dumps(sdp)})")

    async def flow(self):
        """Returns how many frames, or packets of audio, were sent and received, by mid."""
        return await self.page.evaluate("call.flow()")

    async def statistics(self):
        """Returns the objects of the browser's getStats."""
        return (await self.page.evaluate("call.report()"))["stats"]

    async def report(self):
        """Returns the browser's statistics, and measures of the received video frame."""
        seen = await self.page.evaluate("call.report()")
        report = reports.from_w3c(seen["connection"], seen["stats"])
        report.pair_retransmissions(seen["descriptions"])
        report.video_contrast = seen["contrast"]
        report.data_echo = seen["echo"]
        return report
