"""Debian's Chromium, headless, driven over the DevTools protocol."""

import shutil
import tempfile

import namespace
from peers.browser import CALL_SCRIPT, Browser
from peers.devtools import Page
from processes import Child

_START_SECONDS = 120

FLAGS = [
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
    # Connections to addresses not listed here fail like unresolved host names.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE 127.0.0.1"
    f" , EXCLUDE {namespace.ADDRESS}",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
]

# Only for calls over loopback. In other calls, if the remote candidates are known before the local
# candidates, a check from 127.0.0.1 might succeed first. Chromium would then gather no further
# candidates, and Firefox sends nothing to loopback.
LOOPBACK = ["--allow-loopback-in-peer-connection"]

# A camera and a microphone, and the permission to use them, with which Chromium reveals its
# addresses.
DEVICES = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]


class Chromium(Browser):
    """A browser with one page and one RTCPeerConnection in it."""

    def __init__(self, child, profile, page):
        super().__init__(page)
        self._child = child
        self._profile = profile

    @classmethod
    async def open(cls, folder, call, relay=None, flags=()):
        """Starts a browser with a fresh profile; without devices it uses mDNS names."""
        profile = tempfile.mkdtemp(prefix="retake-chromium-")
        devices = [] if call.hides else DEVICES
        loopback = LOOPBACK if call.uses_loopback else []
        flags = [*FLAGS, *devices, *loopback, *flags, f"--user-data-dir={profile}"]
        child = None
        try:
            child = await Child.start(
                [binary(), *flags, "about:blank"], folder / "chromium.log", {"HOME": profile}
            )
            listening = await child.line(
                r"DevTools listening on (ws://\S+)", _START_SECONDS, errors=True
            )
            page = await Page.open(listening.group(1))
            await page.command("Page.addScriptToEvaluateOnNewDocument", source=CALL_SCRIPT)
            chromium = cls(child, profile, page)
            configuration = relay.w3c if relay and "peer" in call.relays else {}
            if call.apart:
                configuration = configuration | {"bundlePolicy": "max-compat"}
            await chromium.prepare(
                {
                    "receivesOnly": not call.sends, "configuration": configuration,
                    "codec": call.codec, "audio": call.audio,
                }
            )
        except BaseException:
            if child:
                await child.end()
            shutil.rmtree(profile, ignore_errors=True)
            raise
        return chromium

    def signal_all(self, number):
        """Sends a signal to all of the peer's processes."""
        self._child.signal_all(number)

    async def close(self):
        """Ends the browser and removes its profile."""
        await self.page.close()
        await self._child.end()
        shutil.rmtree(self._profile, ignore_errors=True)


def binary():
    """Returns the path of Chromium."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise FileNotFoundError("no chromium in PATH: run `make deps-interop`")
