"""A test's visit to pages of takes with a browser, and the problems it finds."""

import asyncio
import json
import signal
from pathlib import Path

from processes import Child

_CONDITION_SECONDS = 120
CAPTURES = Path(__file__).resolve().parents[2] / "Captures"


class Visit:
    """A visit to pages, with the problems found."""

    def __init__(self, program, folder, viewer):
        self.program = program
        self.folder = folder
        self.viewer = viewer
        self.problems = []
        self._children = []

    def expect(self, holds, what):
        """Records a problem unless `holds` is true."""
        if not holds:
            self.problems.append(what)

    async def ask(self, expression):
        """Returns the value of an expression in the page."""
        return await self.viewer.page.evaluate(expression)

    async def until(self, expression, what):
        """Waits until an expression holds in the page; records a problem if it does not in time."""
        try:
            await self.viewer.page.until(expression, _CONDITION_SECONDS)
        except TimeoutError:
            self.problems.append(what)

    async def page(self, take, *options):
        """Makes a take's page and opens it."""
        path = self.folder / f"{Path(take).stem}.html"
        process = await asyncio.create_subprocess_exec(
            self.program, "page", take, "--out", path, "--force", *options,
            stdout=asyncio.subprocess.DEVNULL,
        )
        if await process.wait() != 0:
            raise RuntimeError(f"retake page {take} failed")
        await self.viewer.open(path.as_uri())
        return path

    async def serve(self, path):
        """Starts `retake open`; returns its address and its token."""
        child = await Child.start(
            [self.program, "open", path, "--json"], self.folder / f"open-{Path(path).name}.log"
        )
        self._children.append(child)
        line = await child.line(r'^\{"url":"([^"#]+)#token=([^"]+)"\}', 30)
        return line.group(1), line.group(2)

    async def start(self, *arguments):
        """Starts Retake with some arguments; it ends with this visit."""
        child = await Child.start([self.program, *arguments], self.folder / "started.log")
        self._children.append(child)
        return child

    async def box(self, selector):
        """Scrolls to an element; returns its left, top, width and height."""
        # Elements beside the lanes move while the page scrolls, so one step may not be enough.
        return await self.ask(
            f"(async () => {{ const each = document.querySelector({json.dumps(selector)});"
            " let last; for (let step = 0; step < 10; step += 1) {"
            " each.scrollIntoView({block: 'center'});"
            " await new Promise(done => requestAnimationFrame(() => setTimeout(done, 60)));"
            " const {top} = each.getBoundingClientRect();"
            " if (top === last) break; last = top; }"
            " const box = each.getBoundingClientRect();"
            " return [box.left, box.top, box.width, box.height]; })()"
        )

    async def settle(self):
        """Waits until the page has drawn."""
        await self.ask("new Promise(done => requestAnimationFrame(() => setTimeout(done, 60)))")

    async def close(self):
        """Ends the started processes."""
        for child in self._children:
            await child.finish(20, signal.SIGINT)
