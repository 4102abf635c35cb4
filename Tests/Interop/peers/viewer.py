"""A browser for pages: pointer and keys go through its protocol, like a user's input."""

import base64
import json
import os
import shutil
import tempfile
from pathlib import Path

from peers import chromium, firefox
from peers.bidi import BidiPage
from peers.devtools import Page
from processes import Child

_START_SECONDS = 120
_SHIFT = "\ue008"
_CONTROL = "\ue009"
_KEYS = {
    "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowRight": "\ue014", "ArrowUp": "\ue013",
    "ArrowDown": "\ue015", "Enter": "\ue007",
}


class Viewer:
    """The common part of both browsers; `page` evaluates."""

    name = ""
    size = (1440, 960)

    def __init__(self, child, profile, page):
        self.page = page
        self._child = child
        self._profile = profile

    async def open(self, address):
        """Opens a page of a take, and waits until it is complete."""
        await self.page.load("about:blank")
        await self.page.load(address, ready="document.documentElement.dataset.ready === 'yes'")

    async def close(self):
        """Ends the browser and removes its profile."""
        await self.page.close()
        await self._child.end()
        shutil.rmtree(self._profile, ignore_errors=True)

    async def save(self, path, data):
        """Writes a base64-encoded picture."""
        Path(path).write_bytes(base64.b64decode(data))


class ChromiumViewer(Viewer):
    """Chromium over the DevTools protocol."""

    name = "chromium"

    @classmethod
    async def start(cls, folder):
        """Starts Chromium with a fresh profile."""
        profile = tempfile.mkdtemp(prefix="retake-viewer-")
        child = await Child.start(
            [chromium.binary(), *chromium.FLAGS, f"--user-data-dir={profile}", "about:blank"],
            folder / "chromium.log", {"HOME": profile},
        )
        try:
            listening = await child.line(
                r"DevTools listening on (ws://\S+)", _START_SECONDS, errors=True
            )
            viewer = cls(child, profile, await Page.open(listening.group(1)))
            await viewer.resize(*cls.size)
        except BaseException:
            await child.end()
            shutil.rmtree(profile, ignore_errors=True)
            raise
        return viewer

    async def resize(self, width, height):
        """Resizes the page."""
        await self.page.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=1, mobile=False,
        )

    async def _mouse(self, kind, x, y, **more):
        await self.page.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    async def move(self, x, y):
        """Moves the pointer."""
        await self._mouse("mouseMoved", x, y)

    async def wheel(self, x, y, by):
        """Turns the wheel at a place."""
        await self._mouse("mouseWheel", x, y, deltaX=0, deltaY=by)

    async def drag(self, x, y, to_x, with_shift=False):
        """Drags from one place to another."""
        more = {"button": "left", "clickCount": 1, "modifiers": 8 if with_shift else 0}
        await self._mouse("mousePressed", x, y, **more)
        for step in range(1, 6):
            await self._mouse("mouseMoved", x + (to_x - x) * step / 5, y, buttons=1, **more)
        await self._mouse("mouseReleased", to_x, y, **more)

    async def click(self, x, y, count=1):
        """Clicks a number of times in a row."""
        for number in range(1, count + 1):
            for kind in ("mousePressed", "mouseReleased"):
                await self._mouse(kind, x, y, button="left", clickCount=number)

    async def key(self, key, with_control=False):
        """Presses a key."""
        text = {"text": key} if len(key) == 1 else {}
        if key == "Enter":
            # Elements react to Enter only if the key event has this character.
            text = {"windowsVirtualKeyCode": 13} | ({} if with_control else {"text": "\r"})
        held = {"modifiers": 2} if with_control else {}
        await self.page.command("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **held)
        await self.page.command("Input.dispatchKeyEvent", type="keyUp", key=key, **held)

    async def picture(self, path):
        """Saves a picture of the visible part."""
        shot = await self.page.command("Page.captureScreenshot", format="png")
        await self.save(path, shot["data"])

    async def paper(self, path):
        """Prints the page to a PDF."""
        printed = await self.page.command("Page.printToPDF", printBackground=True)
        await self.save(path, printed["data"])


class FirefoxViewer(Viewer):
    """Firefox over WebDriver BiDi."""

    name = "firefox"

    @classmethod
    async def start(cls, folder):
        """Starts Firefox with a fresh profile."""
        profile = Path(tempfile.mkdtemp(prefix="retake-viewer-"))
        lines = (
            f"user_pref({json.dumps(k)}, {json.dumps(v)});\n"
            for k, v in firefox.PREFERENCES.items()
        )
        (profile / "user.js").write_text("".join(lines), encoding="utf-8")
        width, height = cls.size
        child = await Child.start(
            [firefox.binary(), "--headless", "--no-remote", "--profile", profile,
             "--remote-debugging-port", "0"],
            folder / "firefox.log",
            {"HOME": str(profile), "MOZ_HEADLESS_WIDTH": str(width),
             "MOZ_HEADLESS_HEIGHT": str(height), "PATH": os.environ["PATH"]},
        )
        try:
            listening = await child.line(
                r"WebDriver BiDi listening on (ws://\S+)", _START_SECONDS, errors=True
            )
            viewer = cls(child, profile, await BidiPage.open(listening.group(1)))
            await viewer.resize(width, height)
        except BaseException:
            await child.end()
            shutil.rmtree(profile, ignore_errors=True)
            raise
        return viewer

    async def resize(self, width, height):
        """Resizes the page."""
        await self.page.command(
            "browsingContext.setViewport", context=self.page._context,
            viewport={"width": width, "height": height},
        )

    async def _perform(self, kind, actions, **more):
        source = {"type": kind, "id": kind, "actions": actions, **more}
        sources = [source]
        if more.pop("shift", None):
            source.pop("shift")
            sources.insert(0, {"type": "key", "id": "key", "actions": [
                {"type": "keyDown", "value": _SHIFT},
                *({"type": "pause"} for _ in actions),
                {"type": "keyUp", "value": _SHIFT},
            ]})
            source["actions"] = [{"type": "pause"}, *actions]
        await self.page.command(
            "input.performActions", context=self.page._context, actions=sources
        )

    async def move(self, x, y):
        """Moves the pointer."""
        await self._perform("pointer", [{"type": "pointerMove", "x": round(x), "y": round(y)}])

    async def wheel(self, x, y, by):
        """Turns the wheel at a place."""
        await self._perform("wheel", [
            {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": by}
        ])

    async def drag(self, x, y, to_x, with_shift=False):
        """Drags from one place to another."""
        moves = [
            {"type": "pointerMove", "x": round(x + (to_x - x) * step / 5), "y": round(y)}
            for step in range(6)
        ]
        actions = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:],
                   {"type": "pointerUp", "button": 0}]
        await self._perform("pointer", actions, **({"shift": True} if with_shift else {}))

    async def click(self, x, y, count=1):
        """Clicks a number of times in a row."""
        press = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        await self._perform(
            "pointer", [{"type": "pointerMove", "x": round(x), "y": round(y)}, *press * count]
        )

    async def key(self, key, with_control=False):
        """Presses a key."""
        values = [_CONTROL] * with_control + [_KEYS.get(key, key)]
        await self._perform(
            "key",
            [{"type": "keyDown", "value": each} for each in values]
            + [{"type": "keyUp", "value": each} for each in reversed(values)],
        )

    async def picture(self, path):
        """Saves a picture of the visible part."""
        shot = await self.page.command(
            "browsingContext.captureScreenshot", context=self.page._context
        )
        await self.save(path, shot["data"])

    async def paper(self, path):
        """Prints the page to a PDF."""
        printed = await self.page.command(
            "browsingContext.print", context=self.page._context, background=True
        )
        await self.save(path, printed["data"])
