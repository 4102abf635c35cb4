"""Records the calls of pages in browsers, such as Retake's own test page.

The take's statistics must equal the browser's, and the script must cost little.
"""

import asyncio
import json
import re
import signal
import sqlite3
import struct
import tempfile
from pathlib import Path

from aiohttp import web

from peers import chromium, firefox
from peers.bidi import BidiPage
from peers.devtools import Page
from processes import Child, ProcessError, free_ports

_START_SECONDS = 90
_OWN_PAGE = Path(__file__).with_name("peers") / "recorded.html"
DEMOS = Path("/usr/share/janus/demos")
_LIBRARIES = Path("/usr/share/javascript")
# The maximum script time per second, in milliseconds.
_COST = 10

# Evaluated in the page at the end: the browser's own reports before and after a flush of the
# recorder, and the time until which the take is read.
_REPORTS = """(async () => {
  const every = () => Promise.all(CONNECTIONS.map(async each => [...await each.getStats()]
    .map(([id, object]) => ({...object, id}))));
  const before = await every();
  await retakeRecorder.flush();
  const time = performance.timeOrigin + performance.now();
  return {before, after: await every(), time, cost: retakeRecorder.cost(),
    seconds: performance.now() / 1000, failures: retakeRecorder.failures,
    session: retakeRecorder.session, stopped: retakeRecorder.stopped};
})()"""


class Recorder:
    """A running `retake record page`."""

    def __init__(self, child, address, token, folder):
        self._child = child
        self.address = address
        self.token = token
        self.folder = folder

    @classmethod
    async def start(cls, program, folder, port, *options):
        """Starts a recorder on a port; its takes are written below `folder`."""
        child = await Child.start(
            [program, "record", "page", "--listen", f"127.0.0.1:{port}", "--out",
             f"{folder}/takes/", *options],
            folder / "record-page.log",
        )
        found = await child.line(
            r'src="(http://[^/]+)/page\.js\?token=(\w+)"', _START_SECONDS, errors=True)
        return cls(child, found.group(1), found.group(2), folder)

    async def finish(self):
        """Ends the recording; returns the takes by the first digits of their sessions."""
        status = await self._child.finish(_START_SECONDS, sending=signal.SIGINT)
        if status != 0:
            raise ProcessError(f"record page ended with status {status}")
        return {
            re.match(r"(?:page-(\w+)-|rtcstats)", path.name).group(1) or "rtcstats": path
            for path in sorted((self.folder / "takes").glob("*.take"))
        }


class Gate:
    """A proxy between a page and the recorder; shutting it simulates a lost connection."""

    def __init__(self, port):
        self._port = port
        self._writers = set()
        self._server = None
        self.is_shut = False
        self.port = 0

    async def open(self):
        """Starts forwarding."""
        (self.port,) = free_ports(1)
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", self.port)

    def shut(self):
        """Closes all connections and refuses new ones."""
        self.is_shut = True
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def close(self):
        """Closes the proxy permanently."""
        self.shut()
        self._server.close()

    async def _pass_on(self, reader, writer):
        if self.is_shut:
            writer.transport.abort()
            return
        back, forth = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, forth}

        async def pump(source, target):
            try:
                while data := await source.read(1 << 16):
                    target.write(data)
                    await target.drain()
            except (ConnectionError, OSError):
                pass
            finally:
                target.close()

        await asyncio.gather(pump(reader, forth), pump(back, writer))


class Site:
    """A static server for Retake's own page and Debian's Janus demos."""

    def __init__(self):
        self.address = ""
        self.script = ""
        self.janus = ""
        self.policy = ""
        self._runner = None

    async def start(self):
        """Starts on a free port."""
        application = web.Application()
        application.router.add_get("/{path:.*}", self._respond)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        (port,) = free_ports(1)
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.address = f"http://127.0.0.1:{port}"

    async def end(self):
        await self._runner.cleanup()

    async def _respond(self, request):
        path = request.match_info["path"]
        if path == "own.html":
            return self._page(_OWN_PAGE.read_text(), "<!-- recorder -->")
        if path == "demos/settings.js":
            text = (DEMOS / "settings.js").read_text(encoding="utf-8")
            return web.Response(
                # The demos use `token` and `apisecret`, which Debian's settings do not define.
                text=f"{text}\nserver = {json.dumps(self.janus)}; var token, apisecret;\n",
                content_type="text/javascript",
            )
        if path.startswith("demos/javascript/"):
            file = _LIBRARIES / path.removeprefix("demos/javascript/")
        else:
            file = DEMOS / path.removeprefix("demos/")
        if not file.is_file():
            return web.Response(status=404)
        if file.suffix == ".html":
            return self._page(file.read_text(encoding="utf-8"), "<head>")
        return web.FileResponse(file)

    def _page(self, text, mark):
        script = f"{mark}{self.script}" if self.script else mark
        headers = {"Content-Security-Policy": self.policy} if self.policy else {}
        return web.Response(
            text=text.replace(mark, script, 1), content_type="text/html", headers=headers)


class Browser:
    """A browser with a tab for recorded pages."""

    def __init__(self, child, page, address):
        self._child = child
        self.page = page
        # The browser's own WebSocket, for opening further tabs.
        self.address = address

    @classmethod
    async def start(cls, name, folder, extension=None, more=()):
        """Starts a browser with a fresh profile; Chromium also with an extension and flags."""
        profile = tempfile.mkdtemp(prefix="retake-recorded-")
        log = folder / f"{name}.log"
        if name == "firefox":
            preferences = (
                f"user_pref({json.dumps(key)}, {json.dumps(value)});\n"
                for key, value in firefox.PREFERENCES.items()
            )
            (Path(profile) / "user.js").write_text("".join(preferences), encoding="utf-8")
            child = await Child.start(
                [firefox.binary(), "--headless", "--no-remote", "--profile", profile,
                 "--remote-debugging-port", "0"], log, {"HOME": profile})
            found = await child.line(
                r"WebDriver BiDi listening on (ws://\S+)", _START_SECONDS, errors=True)
            return cls(child, await BidiPage.open(found.group(1)), found.group(1))
        flags = [*chromium.FLAGS, *chromium.DEVICES, *chromium.LOOPBACK, *more]
        if extension:
            flags += [
                f"--load-extension={extension}",
                "--disable-features=DisableLoadExtensionCommandLineSwitch",
            ]
        child = await Child.start(
            [chromium.binary(), *flags, f"--user-data-dir={profile}", "about:blank"], log,
            {"HOME": profile})
        found = await child.line(r"DevTools listening on (ws://\S+)", _START_SECONDS, errors=True)
        return cls(child, await Page.open(found.group(1)), found.group(1))

    async def end(self):
        await self.page.close()
        await self._child.end()


# MARK: Comparison


def _objects(take, peer, until):
    """Returns a take's statistics of a connection at a Unix time in milliseconds."""
    with sqlite3.connect(take) as base:
        (start,) = base.execute("SELECT start_unix_ns FROM take").fetchone()
        (number,) = base.execute("SELECT peer FROM peer WHERE label = ?", (peer,)).fetchone()
        objects = {}
        for id_, type_, time, members, at, call in base.execute(
            "SELECT id, type, timestamp_ms, members, at_ns, call FROM stat WHERE peer = ?"
            " ORDER BY row", (number,),
        ):
            if at + start <= until * 1e6:
                objects[id_] = {"type": type_, "timestamp": time, **json.loads(members)}
    return objects


def compare(take, peers, reports, problems):
    """Compares each connection's last report in a take with the browser's own.

    Returns how many members were equal, and how many were between the browser's two differing
    values.
    """
    same = between = 0
    for place, peer in enumerate(peers):
        objects = _objects(take, peer, reports["time"])
        before, after = (
            {each["id"]: each for each in reports[side][place]} for side in ("before", "after"))
        for id_, object_ in before.items():
            if id_ not in after:
                continue
            if id_ not in objects:
                problems.append(f"{peer}: the take has no {object_['type']} {id_}")
                continue
            for name, value in object_.items():
                if name in ("id", "timestamp"):
                    continue
                value, later, found = (
                    _number(_NAMES.get(each, each) if isinstance(each, str) else each)
                    for each in (value, after[id_].get(name), objects[id_].get(name))
                )
                if found in (value, later):
                    same += 1
                elif name in _GAUGES:
                    between += 1
                elif value == later:
                    problems.append(
                        f"{peer}: {object_['type']} {name} is {found}, not {value}")
                elif _lies_between(found, value, later):
                    between += 1
                else:
                    problems.append(
                        f"{peer}: {object_['type']} {name} is {found}, not {value} to {later}")
    return same, between


def _number(value):
    """Returns a number as JavaScript has it: a double, independent of how it was printed."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


# The values that Firefox names differently from webrtc-stats, whose names a take uses.
_NAMES = {"inprogress": "in-progress"}

# Members that rise and fall between two reports.
_GAUGES = {
    "audioLevel", "jitter", "framesPerSecond", "targetBitrate", "availableOutgoingBitrate",
    "currentRoundTripTime", "roundTripTime", "fractionLost", "estimatedPlayoutTimestamp",
    "retransmissionRate", "bytesDiscardedOnSend",
}


def _lies_between(found, one, other):
    if isinstance(one, dict):
        return isinstance(found, dict) and all(
            _lies_between(found.get(key), value, other.get(key)) or found.get(key) == value
            for key, value in one.items())
    if not all(isinstance(each, (int, float)) for each in (found, one, other)):
        return False
    return min(one, other) <= found <= max(one, other)


def state_changes(take, peer, machine):
    with sqlite3.connect(take) as base:
        return [
            state for (state,) in base.execute(
                "SELECT to_state FROM state JOIN peer USING (peer) WHERE label = ?"
                " AND machine = ? ORDER BY state.row", (peer, machine))
        ]


def count(take, query, *values):
    with sqlite3.connect(take) as base:
        return base.execute(query, values).fetchone()[0]


async def replay(program, take, problems):
    process = await asyncio.create_subprocess_exec(
        program, "replay", take, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    words, _ = await process.communicate()
    if process.returncode != 0:
        problems.append(f"{Path(take).name} does not replay: {words.decode()[-300:]}")


def connections(expression):
    return _REPORTS.replace("CONNECTIONS", expression)


# MARK: Retake's own page


async def run_own(program, folder, name, seconds, media):
    """Records a page with two connections, which is reloaded and loses its connection to the
    recorder."""
    folder.mkdir(parents=True)
    problems, words = [], []
    site = Site()
    await site.start()
    (port,) = free_ports(1)
    recorder = await Recorder.start(program, folder, port, "--origin", site.address)
    gate = Gate(port)
    await gate.open()
    browser = None
    try:
        browser = await Browser.start(name, folder)
        kind = ' type="module"' if media else ""
        file = "page.mjs" if media else "page.js"
        query = "&media=encoded" if media else ""
        site.script = (
            f'<script{kind} src="http://127.0.0.1:{gate.port}/{file}'
            f'?token={recorder.token}{query}">'
            "</script>")
        await browser.page.load(
            f"{site.address}/own.html", ready="Boolean(window.call && window.retakeRecorder)")
        await browser.page.evaluate(f"call({{seconds: {seconds / 2}}})")
        # Reports made while disconnected are sent after the reconnection.
        gate.shut()
        await browser.page.evaluate("void retakeRecorder.mark('alone', {answer: 42})")
        await asyncio.sleep(2)
        gate.is_shut = False
        await asyncio.sleep(seconds / 2)
        reports = await browser.page.evaluate(connections("pair"))
        words.append(f"{reports['cost'] / reports['seconds']:.2f} ms of script a second")
        # The cost of setting up connections is averaged over a minute; shorter runs are not judged.
        if reports["seconds"] > 50 and reports["cost"] / reports["seconds"] > _COST:
            problems.append(f"the script takes {reports['cost']:.0f} ms in {reports['seconds']} s")
        if reports["failures"]["count"]:
            problems.append(f"the script failed: {reports['failures']}")
        await browser.page.evaluate("void pair.forEach(each => each.close())")
        # The page is reloaded, and continues the same session.
        await browser.page.load(
            f"{site.address}/own.html", ready="Boolean(window.call && window.retakeRecorder)")
        await browser.page.evaluate("call({seconds: 1})")
        again = await browser.page.evaluate(connections("pair"))
        if again["session"] != reports["session"]:
            problems.append("the session does not go on after a reload")
        seen = None
        if media:
            seen = await browser.page.evaluate(
                "(() => { const video = document.getElementById('seen');"
                " return [video.videoWidth, video.videoHeight]; })()")
    finally:
        if browser:
            await browser.end()
        await gate.close()
        takes = await recorder.finish()
        await site.end()
    take = takes.get(reports["session"][:8])
    if take is None or len(takes) != 1:
        return [*problems, f"there are {len(takes)} takes, not one of the session"], ""
    same, between = compare(take, ["PC_0", "PC_1"], reports, problems)
    more, further = compare(take, ["PC_0, load 2", "PC_1, load 2"], again, problems)
    words.append(f"{same + more} members equal, {between + further} between two looks")
    for peer in ("PC_0", "PC_1"):
        states = state_changes(take, peer, "connection")
        if states[-3:] not in (["connecting", "connected", "closed"],):
            problems.append(f"{peer}: the states of the connection are {states}")
        if "connected" not in state_changes(take, peer, "dtls"):
            problems.append(f"{peer}: DTLS was not seen to connect")
    _check_rows(take, problems)
    if media:
        words.append(await _check_frames(program, folder, take, reports, seen, problems))
    await replay(program, take, problems)
    return problems, "; ".join(words)


def _check_rows(take, problems):
    for what, query, wanted in (
        ("descriptions", "SELECT count(*) FROM signaling WHERE type IN ('offer', 'answer')", 8),
        ("marks", "SELECT count(*) FROM event WHERE type = ':alone'", 1),
        ("channels", "SELECT count(DISTINCT peer) FROM channel WHERE label = 'talk'", 4),
        ("connections", "SELECT count(*) FROM peer", 4),
        ("pages", "SELECT count(*) FROM event WHERE type = 'page'", 2),
    ):
        if (found := count(take, query)) != wanted:
            problems.append(f"the take has {found} {what}, not {wanted}")
    for what, query in (
        ("candidates", "SELECT count(*) FROM candidate"),
        ("getUserMedia", "SELECT count(*) FROM call_request WHERE name = 'getUserMedia'"),
        ("a selected pair", "SELECT count(*) FROM candidate_pair WHERE selected"),
        ("script cost", "SELECT count(*) FROM event WHERE type = 'scriptcost'"),
    ):
        if count(take, query) == 0:
            problems.append(f"the take has no {what}")
    if b"PageSecret8" in Path(take).read_bytes():
        problems.append("the credential of a TURN server is in the take")


async def _check_frames(program, folder, take, reports, seen, problems):
    """Checks that the take has the page's received frames, and that they decode to what the page
    saw and heard."""
    counted = {}
    for object_ in reports["after"][1]:
        if object_["type"] == "inbound-rtp" and object_["kind"] == "video":
            counted = object_
    with sqlite3.connect(take) as base:
        rows = base.execute(
            "SELECT kind, codec, count(*), sum(size), sum(bytes IS NOT NULL), max(width)"
            " FROM frame JOIN peer USING (peer) WHERE peer.label = 'PC_1'"
            " GROUP BY kind, codec").fetchall()
        # A sender changes the size when its machine is busy.
        sizes = set(base.execute(
            "SELECT DISTINCT width, height FROM frame JOIN peer USING (peer)"
            " WHERE peer.label = 'PC_1' AND width > 0"))
    kinds = {row[0] for row in rows}
    if kinds != {"audio", "video"}:
        problems.append(f"frames of the kinds {kinds} were handed over: {rows}")
        return "no frames"
    video = sum(row[2] for row in rows if row[0] == "video")
    if video < 0.9 * counted.get("framesDecoded", 0):
        problems.append(f"{video} frames of {counted['framesDecoded']} are there")
    files = folder / "media"
    process = await asyncio.create_subprocess_exec(
        program, "export", take, "--media", files, "--peer", "2",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    words, _ = await process.communicate()
    if process.returncode != 0:
        problems.append(f"export fails: {words.decode()[-300:]}")
        return ""
    names = sorted(path.suffix for path in files.iterdir())
    if names != [".wav", ".y4m"]:
        problems.append(f"export writes {names}")
        return ""
    loud = _loudest(next(files.glob("*.wav")))
    contrast, size = _contrast(next(files.glob("*.y4m")))
    if loud < 1000:
        problems.append(f"the received audio is silent: {loud}")
    if contrast < 50 or not {size, tuple(seen)} <= sizes:
        problems.append(
            f"the received video is {size} with a contrast of {contrast}, and {seen} in the page;"
            f" the take has {sizes}")
    return f"{video} video frames handed over, {size[0]}x{size[1]} seen, peak {loud} heard"


def _loudest(path):
    samples = path.read_bytes()[44:]
    return max(abs(each[0]) for each in struct.iter_unpack("<h", samples[: len(samples) & ~1]))


def _contrast(path):
    """Returns the contrast and the size of a file's last frame."""
    data = path.read_bytes()
    width, height = (
        int(re.search(rf" {letter}(\d+)".encode(), data).group(1)) for letter in "WH")
    place = data.rindex(b"FRAME\n") + 6
    luma = data[place:place + width * height]
    return max(luma) - min(luma), (width, height)
