"""The page of a take in browsers: what is drawn, every way to move through it, and who is kept out.

Pages are made by the program under test from the captures of the project, and from takes that were
changed to do harm.
"""

import asyncio
import json
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import aiohttp

from peers.viewer import ChromiumViewer, FirefoxViewer
from processes import Child

_CAPTURES = Path(__file__).resolve().parents[2] / "Captures"
_BROWSERS = {"chromium": ChromiumViewer, "firefox": FirefoxViewer}
# Of a machine that does other things besides; the bench has the figure.
_DRAWING_MILLISECONDS = 60
_FOLLOWING_SECONDS = 4
_LIVE_SECONDS = 6

_HARM = (
    "</script><img src=x onerror='window.harmed=1'><script>window.harmed=1</script>{{data}}<!--"
)


async def run(program, folder, browser):
    """Looks at pages with one browser; the problems found."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    viewer = await _BROWSERS[browser].start(folder)
    problems = []
    try:
        for check in (
            _drawing, _moving, _addresses, _keys, _exchanges, _harmless, _accessible, _served,
            _live,
        ):
            visit = Visit(program, folder, viewer)
            try:
                async with asyncio.timeout(90):
                    await check(visit)
            except Exception as error:  # whatever ends a check early is a problem to report
                visit.problems.append(f"{type(error).__name__}: {error}")
            finally:
                await visit.close()
            problems += [f"{check.__name__[1:]}: {problem}" for problem in visit.problems]
    finally:
        await viewer.close()
    return problems


class Visit:
    """One look at pages, with what was found wrong."""

    def __init__(self, program, folder, viewer):
        self.program = program
        self.folder = folder
        self.viewer = viewer
        self.problems = []
        self._children = []

    def expect(self, holds, what):
        """Notes a problem unless something holds."""
        if not holds:
            self.problems.append(what)

    async def ask(self, expression):
        """The value of an expression in the page."""
        return await self.viewer.page.evaluate(expression)

    async def until(self, expression, what):
        """Waits for something in the page; a problem when it does not come."""
        try:
            await self.viewer.page.until(expression, 15)
        except TimeoutError:
            self.problems.append(what)

    async def page(self, take, *options):
        """Makes the page of a take and opens it."""
        path = self.folder / f"{Path(take).stem}.html"
        process = await asyncio.create_subprocess_exec(
            self.program, "page", take, "--out", path, *options,
            stdout=asyncio.subprocess.DEVNULL,
        )
        if await process.wait() != 0:
            raise RuntimeError(f"retake page {take} failed")
        await self.viewer.open(path.as_uri())
        return path

    async def serve(self, path):
        """Starts `retake open`; its address and its token."""
        child = await Child.start(
            [self.program, "open", path, "--json"], self.folder / f"open-{Path(path).name}.log"
        )
        self._children.append(child)
        line = await child.line(r'^\{"url":"([^"#]+)#token=([^"]+)"\}', 30)
        return line.group(1), line.group(2)

    async def start(self, *arguments):
        """Starts Retake with some arguments, to be ended with this visit."""
        child = await Child.start([self.program, *arguments], self.folder / "started.log")
        self._children.append(child)
        return child

    async def box(self, selector):
        """Where an element is, after it was brought into sight: left, top, width, height."""
        return await self.ask(
            f"(() => {{ const each = document.querySelector({json.dumps(selector)});"
            " each.scrollIntoView({block: 'center'});"
            " const box = each.getBoundingClientRect();"
            " return [box.left, box.top, box.width, box.height]; })()"
        )

    async def settle(self):
        """Waits until the page has drawn."""
        await self.ask("new Promise(done => requestAnimationFrame(() => setTimeout(done, 60)))")

    async def close(self):
        """Ends what was started."""
        for child in self._children:
            await child.finish(20, signal.SIGINT)


async def _drawing(visit):
    """Every lane has something on it, findings stand first, and nothing was refused or thrown."""
    await visit.page(_CAPTURES / "virtual-heavy-loss.take")
    visit.expect(
        await visit.ask("document.title") == "caller ↔ callee · Retake", "the title is another"
    )
    visit.expect(await visit.ask("document.querySelectorAll('.finding').length") >= 4, "findings")
    visit.expect(
        "stood still" in await visit.ask("document.querySelector('.finding .go').textContent"),
        "the worst finding is no freeze",
    )
    empty = await visit.ask(
        "(() => { for (const more of document.querySelectorAll('.group h2 button')) "
        "if (more.textContent.endsWith('more')) more.click();"
        " document.getElementById('board').scrollIntoView(); return 0; })()"
    )
    visit.expect(empty == 0, "lanes could not be unfolded")
    await visit.settle()
    # Pictures come from the browser's decoder, in their time.
    await visit.until(
        "retake.board.lanes.filter(lane => lane.label === 'seen').every(lane => {"
        " lane.canvas.scrollIntoView(); retake.redraw(); const {width, height} = lane.canvas;"
        " return lane.canvas.getContext('2d').getImageData(0, 0, width, height).data"
        ".some((value, at) => at % 4 === 3 && value > 0); })",
        "there are no pictures",
    )
    blank = await visit.ask(
        "retake.board.lanes.filter(lane => { lane.canvas.scrollIntoView(); retake.redraw();"
        " const {width, height} = lane.canvas; const bytes ="
        " lane.canvas.getContext('2d').getImageData(0, 0, width, height).data;"
        " return !bytes.some((value, at) => at % 4 === 3 && value > 0); }).map(lane => lane.id)"
    )
    visit.expect(not blank, f"nothing is drawn on {blank}")
    lanes = await visit.ask("retake.board.lanes.length")
    visit.expect(lanes > 40, f"{lanes} lanes of all")
    frozen = await visit.ask(
        "(() => { const [peer, , from, to] = retake.take.freezes[0];"
        " const lane = retake.board.lanes.find(each => each.label === 'frames'"
        " && each.group.flow.received?.peer === peer);"
        " return lane.at((from + to) / 2); })()"
    )
    visit.expect(frozen.startswith("0 per s"), f"inside a freeze the frame rate reads {frozen}")


async def _moving(visit):
    """Wheel, drag, shift-drag and double click do what they say, and quickly."""
    await visit.page(_CAPTURES / "chromium-negotiates.take")
    left, top, width, height = await visit.box("#axis")
    x, y = left + width / 4, top + height / 2
    before = await visit.ask("[retake.clock.from, retake.clock.to]")
    await visit.viewer.wheel(x, y, -240)
    await visit.settle()
    after = await visit.ask("[retake.clock.from, retake.clock.to]")
    pointed = before[0] + (before[1] - before[0]) / 4
    still = after[0] + (after[1] - after[0]) / 4
    visit.expect(after[1] - after[0] < 0.8 * (before[1] - before[0]), "the wheel does not zoom")
    visit.expect(abs(pointed - still) < 0.02 * (after[1] - after[0]), "the zoom leaves the pointer")
    spent = await visit.ask("retake.drawingTime")
    visit.expect(spent < _DRAWING_MILLISECONDS, f"a step of a zoom took {spent:.0f} ms of script")
    await visit.viewer.drag(left + width / 2, y, left + width / 4)
    await visit.settle()
    moved = await visit.ask("retake.clock.from")
    visit.expect(moved > after[0], "dragging does not move")
    await visit.viewer.drag(left + width / 4, y, left + width / 2, with_shift=True)
    await visit.settle()
    selected = await visit.ask("retake.clock.selection")
    visit.expect(bool(selected), "shift and drag select nothing")
    visit.expect(
        await visit.ask("!document.getElementById('selected').hidden"), "no selection beside"
    )
    await visit.ask("retake.show(0, retake.take.seconds)")
    left, top, width, height = await visit.box("[data-lane^='connection1.connection'] canvas")
    await visit.viewer.click(left + width * 0.7, top + height / 2, count=2)
    await visit.settle()
    state = await visit.ask(
        "retake.take.states.find(([peer, name, , , text]) => name === 'connection'"
        " && text === 'connected')"
    )
    selected = await visit.ask("retake.clock.selection")
    visit.expect(
        bool(selected) and abs(selected[0] - state[2]) < 1e-4, "a double click selects no state"
    )
    visit.expect(await visit.ask("retake.clock.isHeld"), "a click does not hold the cursor")
    await visit.viewer.move(left + width * 0.2, top + height / 2)
    await visit.settle()
    visit.expect(
        await visit.ask("document.querySelector('#at').textContent.includes('held')"),
        "a held cursor follows the pointer",
    )


async def _addresses(visit):
    """A place is a link that leads there again."""
    path = await visit.page(_CAPTURES / "virtual-heavy-loss.take")
    await visit.ask("void (retake.show(1, 2), retake.visit(1.5), retake.select(1.2, 1.4))")
    await visit.until("location.hash.includes('t=1')", "the address does not follow")
    link = await visit.ask("location.href")
    lane = await visit.ask("retake.board.lanes.find(each => each.label === 'frames').id")
    await visit.viewer.open(f"{link}&lane={lane}")
    seen = await visit.ask(
        "[retake.clock.from, retake.clock.to, retake.clock.cursor, ...retake.clock.selection,"
        " retake.board.marked.label]"
    )
    expected = [1, 2, 1.5, 1.2, 1.4]
    near = all(abs(a - b) < 0.002 for a, b in zip(seen, expected))
    visit.expect(near and seen[5] == "frames", f"the link leads to {seen}")
    await visit.viewer.open(f"{path.as_uri()}#step=64")
    visit.expect(await visit.ask("retake.clock.isHeld"), "a step leads nowhere")
    command = await visit.ask("document.getElementById('command').textContent")
    visit.expect("retake debug virtual-heavy-loss.take -c 'seek " in command, command)


async def _keys(visit):
    """Everything goes by the keyboard."""
    await visit.page(_CAPTURES / "virtual-heavy-loss.take")
    viewer = visit.viewer
    await visit.ask("void document.body.focus()")
    await viewer.key("n")
    await visit.settle()
    visit.expect(await visit.ask("retake.clock.selection !== null"), "n finds no finding")
    first = await visit.ask("retake.clock.cursor")
    await viewer.key("n")
    await visit.settle()
    visit.expect(await visit.ask("retake.clock.cursor") > first, "n finds no further finding")
    await viewer.key("Escape")
    await viewer.key("0")
    await visit.settle()
    visit.expect(await visit.ask("retake.clock.from === 0 && !retake.clock.selection"), "Esc or 0")
    await viewer.key("s")
    await visit.settle()
    state = await visit.ask("retake.clock.cursor")
    visit.expect(state is not None and state > 0, "s finds no state")
    length = await visit.ask("retake.clock.to - retake.clock.from")
    await viewer.key("+")
    await visit.settle()
    visit.expect(await visit.ask("retake.clock.to - retake.clock.from") < length, "+ does not zoom")
    begin = await visit.ask("retake.clock.from")
    await viewer.key("ArrowRight")
    await visit.settle()
    visit.expect(await visit.ask("retake.clock.from") > begin, "the arrow does not move")
    await viewer.key(".")
    await visit.settle()
    visit.expect(await visit.ask("retake.clock.cursor") > state, "a step does not go on")
    colour = await visit.ask("getComputedStyle(document.body).backgroundColor")
    await viewer.key("d")
    await visit.settle()
    other = await visit.ask("getComputedStyle(document.body).backgroundColor")
    await viewer.key("d")
    await visit.settle()
    third = await visit.ask("getComputedStyle(document.body).backgroundColor")
    visit.expect(len({colour, other, third}) == 2, "d does not change the colours")
    await viewer.key("?")
    visit.expect(await visit.ask("document.getElementById('help').open"), "? does not help")
    await viewer.key("?")
    await viewer.key("3")
    visit.expect(
        await visit.ask("!document.getElementById('signaling').hidden"), "3 shows no signaling"
    )


async def _exchanges(visit):
    """Descriptions are folded to what differs; events are found; candidates stand in a grid."""
    await visit.page(_CAPTURES / "chromium-negotiates.take")
    await visit.ask("void document.getElementById('tab-signaling').click()")
    steps = await visit.ask("document.querySelectorAll('.steps button').length")
    visit.expect(steps == 23, f"{steps} messages")
    await visit.ask("void document.getElementById('message-4').click()")
    changed = await visit.ask("document.querySelectorAll('.sdp .added').length")
    same = await visit.ask("document.querySelectorAll('.sdp .text:not(.added):not(.gone)').length")
    visit.expect(changed > 0 and same == 0, f"{changed} lines added, {same} the same")
    await visit.ask("void document.getElementById('whole-sdp').click()")
    same = await visit.ask("document.querySelectorAll('.sdp .text:not(.added):not(.gone)').length")
    visit.expect(same > 20, "the whole description does not show")
    await visit.ask("void document.getElementById('tab-events').click()")
    await visit.ask(
        "void (document.getElementById('event-words').value = 'connected',"
        " document.getElementById('event-words').dispatchEvent(new Event('input')))"
    )
    lines = await visit.ask(
        "[...document.querySelectorAll('#events .line:not(.head)')].map(each => each.textContent)"
    )
    visit.expect(lines and all("connected" in each for each in lines), "events are not filtered")
    await visit.ask("void document.getElementById('tab-connection').click()")
    selected = await visit.ask(
        "[...document.querySelectorAll('#connection .pill')]"
        ".filter(each => each.textContent.includes(', selected')).length"
    )
    visit.expect(selected == 1, f"{selected} pairs are selected")


def _harmed(folder):
    """A take whose every text wants to be markup."""
    path = folder / "harm.take"
    shutil.copyfile(_CAPTURES / "virtual-heavy-loss.take", path)
    take = sqlite3.connect(path)
    take.execute("PRAGMA writable_schema = OFF")
    for table, column in (
        ("peer", "label"), ("peer", "role"), ("signaling", "type"),
        ("signaling", "message"), ("candidate", "address"), ("candidate_pair", "local"),
        ("channel", "label"), ("track", "mid"), ("track", "codec"), ("state", "to_state"),
        ("state", "machine"), ("call_request", "name"), ("event", "type"),
    ):
        take.execute(f"UPDATE {table} SET {column} = ? || {column}", (_HARM,))
    take.commit()
    take.close()
    return path


async def _harmless(visit):
    """Nothing in a take runs, or becomes an element of the page."""
    await visit.page(_harmed(visit.folder))
    for tab in ("events", "signaling", "connection", "packets", "sql", "call"):
        await visit.ask(f"void document.getElementById('tab-{tab}').click()")
        await visit.settle()
    await visit.ask("void retake.visit(1.5)")
    await visit.settle()
    visit.expect(await visit.ask("window.harmed === undefined"), "a text of the take ran")
    strange = await visit.ask("document.querySelectorAll('img, iframe, object, embed').length")
    visit.expect(strange == 0, f"{strange} elements came out of texts")
    visit.expect(
        _HARM in await visit.ask("document.getElementById('title').textContent"),
        "the label is not shown as it is",
    )
    inserted = await visit.ask(
        "(() => { const script = document.createElement('script');"
        " script.textContent = 'window.harmed = 2'; document.body.append(script);"
        " return new Promise(done => setTimeout(() => done(window.harmed ?? 0), 50)); })()"
    )
    visit.expect(inserted == 0, "the policy lets a script in that the page does not have")
    loaded = await visit.ask(
        "fetch('http://127.0.0.1:9/').then(() => 'loaded', () => 'refused')"
    )
    visit.expect(loaded == "refused", "the page may ask others")


async def _accessible(visit):
    """Axe finds nothing serious in any view and either scheme."""
    try:
        import axe_selenium_python
    except ImportError:
        visit.problems.append("axe-selenium-python is not there: make the environment anew")
        return
    source = Path(axe_selenium_python.__file__).with_name("node_modules")
    script = (source / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    for scheme in ("light", "dark"):
        path = await visit.page(_CAPTURES / "virtual-heavy-loss.take")
        await visit.viewer.open(f"{path.as_uri()}#scheme={scheme}")
        await visit.ask(f"void (() => {{ {script} }})()")
        for tab in ("call", "events", "signaling", "connection", "packets", "sql"):
            await visit.ask(f"void document.getElementById('tab-{tab}').click()")
            await visit.settle()
            found = await visit.ask(
                "axe.run(document, {resultTypes: ['violations']}).then(result => result.violations"
                ".filter(each => ['serious', 'critical'].includes(each.impact)).map(each =>"
                " `${each.id}: ${each.nodes.slice(0, 2).map(node => node.html.slice(0, 120))}`))"
            )
            for each in found:
                visit.problems.append(f"{scheme}, {tab}: {each}")


async def _served(visit):
    """`retake open`: a catalogue, packets down to their fields, SQL as a lane, and pictures."""
    folder = visit.folder / "takes"
    folder.mkdir(exist_ok=True)
    names = ["virtual-heavy-loss.take", "chromium-retake-offers.take", "observed-clear-vp8.take"]
    for name in names:
        shutil.copyfile(_CAPTURES / name, folder / name)
    address, token = await visit.serve(folder)
    await _refusals(visit, address, token)
    await visit.viewer.open(f"{address}#token={token}")
    rows = "document.querySelectorAll('#takes tbody tr').length"
    await visit.until(f"{rows} === {len(names)}", "the catalogue has not all takes")
    await visit.until(
        "document.querySelectorAll('#takes path.spark').length === 3", "there are no sparklines"
    )
    worst = await visit.ask("document.querySelector('#takes').textContent")
    visit.expect("freeze" in worst, "the catalogue does not tell the worst finding")
    await visit.viewer.open(f"{address}?1#token={token}&take={names[0]}")
    await visit.until("document.querySelectorAll('.finding').length > 3", "no findings come")
    await visit.ask("void document.getElementById('tab-packets').click()")
    await visit.until("document.querySelectorAll('#packets .line').length > 10", "no packets")
    await visit.ask(
        "void (document.getElementById('packet-filter').value = 'stun',"
        " document.getElementById('packet-filter').dispatchEvent(new Event('change')))"
    )
    await visit.until(
        "[...document.querySelectorAll('#packets .line:not(.head)')].length > 3"
        " && [...document.querySelectorAll('#packets .line:not(.head)')]"
        ".every(each => each.textContent.includes('stun'))",
        "the filter lets others through",
    )
    await visit.ask(
        "void [...document.querySelectorAll('#packets .line:not(.head)')]"
        ".find(each => each.textContent.includes('success')).click()"
    )
    await visit.until(
        "document.getElementById('packet').textContent.includes('XOR-MAPPED-ADDRESS')",
        "no dissection",
    )
    await visit.until(
        "document.getElementById('packet').textContent.includes('same transaction')", "no request"
    )
    await visit.ask("void document.getElementById('tab-sql').click()")
    await visit.ask("void document.getElementById('draw-query').click()")
    await visit.until("retake.board.lanes[0].label === 'SQL'", "a query draws no lane")
    await visit.ask("void document.getElementById('tab-call').click()")
    await visit.ask("void document.querySelectorAll('.screen .load').forEach(each => each.click())")
    await visit.until(
        "retake.mediaTimes().some(each => each.isReady && each.width === 160)", "no video plays"
    )
    await visit.ask("void retake.visit(2.5)")
    await visit.until(
        "retake.mediaTimes().every(each => Math.abs(each.time - 2.5) < 0.2)",
        "video does not follow",
    )


async def _refusals(visit, address, token):
    """Nobody asks without the token, under another name, or from another page."""
    good = {"Authorization": f"Bearer {token}"}
    cases = [
        ({}, 401), ({"Authorization": "Bearer 0"}, 401), (good, 200),
        ({**good, "Origin": "http://127.0.0.1:9"}, 403), ({**good, "Host": "takes.example"}, 421),
    ]
    async with aiohttp.ClientSession() as client:
        for headers, expected in cases:
            async with client.get(f"{address}takes", headers=headers) as reply:
                visit.expect(reply.status == expected, f"{headers}: status {reply.status}")
        for path, expected in (
            ("take?name=../etc/passwd", 404), ("packets?name=virtual-heavy-loss.take", 422),
            ("nowhere", 404), ("more?session=99", 404),
            ("packet?name=virtual-heavy-loss.take&row=1%20OR%201", 422),
        ):
            async with client.get(f"{address}{path}", headers=good) as reply:
                visit.expect(reply.status == expected, f"{path}: status {reply.status}")
        body = "DELETE FROM take"
        url = f"{address}sql?name=virtual-heavy-loss.take"
        async with client.post(url, headers=good, data=body) as reply:
            visit.expect(reply.status == 422, f"a query that writes: status {reply.status}")


async def _live(visit):
    """The page of a take that is being recorded goes along with it."""
    take = visit.folder / "live.take"
    await visit.start("record", "demo", "--seconds", str(_LIVE_SECONDS), "--out", take)
    for _ in range(100):
        if take.exists() and take.stat().st_size > 0:
            break
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    address, token = await visit.serve(take)
    await visit.viewer.open(f"{address}#token={token}")
    begin = time.monotonic()
    first = await visit.ask("retake.take.seconds")
    await visit.until(f"retake.take.seconds > {first} + 1.5", "the page does not follow")
    took = time.monotonic() - begin
    visit.expect(took < _FOLLOWING_SECONDS, f"1.5 s of a recording came in {took:.1f} s")
    visit.expect(await visit.ask("retake.clock.to >= retake.take.seconds - 0.6"), "the view stays")
    await visit.until("retake.take.isComplete", "the end does not show")
