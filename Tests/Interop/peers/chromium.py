"""Debian's Chromium, headless, driven over the DevTools protocol."""

import json
import shutil
import tempfile
from pathlib import Path

import reports
from peers.devtools import Page
from processes import Child

_START_SECONDS = 40
_CALL_PAGE = Path(__file__).with_name("call.html")
_CALL_SCRIPT = Path(__file__).with_name("call.js")

_FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE 127.0.0.1",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
    "--allow-loopback-in-peer-connection",
]

# A camera and a microphone, and the permission to use them: with it Chromium shows its addresses.
_DEVICES = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]


class Chromium:
    """A browser with one page and one RTCPeerConnection in it."""

    def __init__(self, child, profile, page):
        self._child = child
        self._profile = profile
        self.page = page

    @classmethod
    async def open(cls, folder, receives_only=False, flags=()):
        """Starts a browser with a fresh profile; without devices it hides behind mDNS names."""
        profile = tempfile.mkdtemp(prefix="retake-chromium-")
        devices = [] if receives_only else _DEVICES
        flags = [*_FLAGS, *devices, *flags, f"--user-data-dir={profile}"]
        child = None
        try:
            child = await Child.start(
                [_binary(), *flags, "about:blank"], folder / "chromium.log", {"HOME": profile}
            )
            listening = await child.line(
                r"DevTools listening on (ws://\S+)", _START_SECONDS, errors=True
            )
            page = await Page.open(listening.group(1))
            script = _CALL_SCRIPT.read_text(encoding="utf-8")
            await page.command("Page.addScriptToEvaluateOnNewDocument", source=script)
            await page.load(_CALL_PAGE.as_uri(), ready="window.call !== undefined")
            await page.evaluate(f"call.receivesOnly = {json.dumps(receives_only)}")
        except BaseException:
            if child:
                await child.end()
            shutil.rmtree(profile, ignore_errors=True)
            raise
        return cls(child, profile, page)

    async def visit(self, address):
        """Lets a page of Retake make the call by itself."""
        await self.page.load(address, ready="window.call && call.connections.length > 0")

    async def offer(self):
        """The browser's offer, with all of its candidates."""
        return await self.page.evaluate("call.offer()")

    async def accept(self, sdp):
        """Takes the answer."""
        await self.page.evaluate(f"call.accept({json.dumps(sdp)})")

    async def answer(self, sdp):
        """The browser's answer."""
        return await self.page.evaluate(f"call.answer({json.dumps(sdp)})")

    async def report(self):
        """What the browser counts, and what the received picture looks like."""
        seen = await self.page.evaluate("call.report()")
        report = reports.from_w3c(seen["connection"], seen["stats"])
        report.picture_contrast = seen["contrast"]
        report.data_echo = seen["echo"]
        return report

    async def close(self):
        """Ends the browser and forgets its profile."""
        await self.page.close()
        await self._child.end()
        shutil.rmtree(self._profile, ignore_errors=True)


def _binary():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise FileNotFoundError("no chromium in PATH: run `make deps-interop`")
