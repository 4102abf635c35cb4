"""Debian's Firefox, headless, driven over WebDriver BiDi, which is built in."""

import json
import shutil
import tempfile
from pathlib import Path

from peers.bidi import BidiPage, NoSessionError
from peers.browser import CALL_SCRIPT, Browser
from processes import Child

_START_SECONDS = 120
# The values of Firefox's preference for the DTLS version: each is the TLS version on which that
# DTLS version is based.
_DTLS = {"1.2": 0x0303, "1.3": 0x0304}

PREFERENCES = {
    # A camera and a microphone that need neither devices nor a user's permission.
    "media.navigator.streams.fake": True,
    "media.navigator.permission.disabled": True,
    # Addresses instead of mDNS names.
    "media.peerconnection.ice.obfuscate_host_addresses": False,
    "media.autoplay.default": 0,
    "media.autoplay.blocking_policy": 0,
    # No connections to other servers.
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "media.gmp-manager.updateEnabled": False,
    "media.gmp-provider.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
    "toolkit.telemetry.enabled": False,
}


class Firefox(Browser):
    """A browser with one page and one RTCPeerConnection in it."""

    def __init__(self, child, profile, page):
        super().__init__(page)
        self._child = child
        self._profile = profile

    @classmethod
    async def open(cls, folder, call):
        """Starts a browser with a fresh profile.

        Firefox may overlook that its own start has ended, and then never begins a session; such a
        browser, which has not seen a page yet, is replaced once.
        """
        try:
            return await cls._start(folder, call)
        except NoSessionError as error:
            print(f"firefox: {error}; started again", flush=True)
            return await cls._start(folder, call)

    @classmethod
    async def _start(cls, folder, call):
        profile = Path(tempfile.mkdtemp(prefix="retake-firefox-"))
        preferences = dict(PREFERENCES)
        if call.dtls:
            preferences["media.peerconnection.dtls.version.max"] = _DTLS[call.dtls]
        lines = (f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in preferences.items())
        (profile / "user.js").write_text("".join(lines), encoding="utf-8")
        child = None
        try:
            child = await Child.start(
                [binary(), "--headless", "--no-remote", "--profile", profile,
                 "--remote-debugging-port", "0"],
                folder / "firefox.log", {"HOME": str(profile)},
            )
            listening = await child.line(
                r"WebDriver BiDi listening on (ws://\S+)", _START_SECONDS, errors=True
            )
            firefox = cls(child, profile, await BidiPage.open(listening.group(1)))
            await firefox.page.inject(CALL_SCRIPT)
            await firefox.prepare({"codec": call.codec, "audio": call.audio})
        except BaseException:
            if child:
                await child.end()
            shutil.rmtree(profile, ignore_errors=True)
            raise
        return firefox

    def signal_all(self, number):
        """Sends a signal to all of the peer's processes."""
        self._child.signal_all(number)

    async def close(self):
        """Ends the browser and removes its profile."""
        await self.page.close()
        await self._child.end()
        shutil.rmtree(self._profile, ignore_errors=True)


def binary():
    """Returns the path of Firefox."""
    for name in ("firefox-esr", "firefox"):
        if found := shutil.which(name):
            return found
    raise FileNotFoundError("no firefox in PATH: run `make deps-interop`")
