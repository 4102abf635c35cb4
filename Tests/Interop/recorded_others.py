"""Records calls on other projects' pages: Debian's janus-demos, and rtcstats-js."""

import asyncio
import json
import sqlite3

import aiohttp

import namespace
from peers.janus_server import JanusServer
from processes import free_ports
from recorded_page import (
    DEMOS, Browser, Recorder, Site, compare, connections, count, replay, state_changes)

_DEMO_SECONDS = 60

# The demos' connections are inside a library; they are found by wrapping the constructor.
FIND = """(() => {
  window.made = [];
  const native = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends native {
    constructor(...values) { super(...values); window.made.push(this); }
  };
})();"""


async def run_demo(program, folder, name, by_extension):
    """Records Janus's echo test in its own demo page."""
    folder.mkdir(parents=True)
    problems = []
    site = Site()
    await site.start()
    (port,) = free_ports(1)
    options = ["--origin", site.address]
    if by_extension:
        options += ["--extension", str(folder / "extension")]
        # The page's policy allows connections to Janus only; the extension's reports are not
        # subject to it.
        site.policy = "connect-src 'self' ws://127.0.0.1:*"
    recorder = await Recorder.start(program, folder, port, *options)
    janus = await JanusServer.start("echotest", folder)
    site.janus = janus.address
    browser = None
    try:
        if by_extension:
            site.policy = f"connect-src 'self' {janus.address}"
        browser = await Browser.start(
            name, folder, folder / "extension" if by_extension else None)
        if not by_extension:
            site.script = (
                f'<script src="{recorder.address}/page.js?token={recorder.token}"></script>')
        site.script += f"<script>{FIND}</script>"
        await browser.page.load(
            f"{site.address}/demos/echotest.html",
            ready="window.retakeRecorder && window.$ && !document.getElementById('start').disabled")
        await asyncio.sleep(1)
        await browser.page.evaluate("void document.getElementById('start').click()")
        await browser.page.until(
            "window.made.some(each => each.connectionState === 'connected')", _DEMO_SECONDS)
        await asyncio.sleep(5)
        reports = await browser.page.evaluate(
            connections("window.made.filter(each => each.connectionState === 'connected')"))
        if reports["failures"]["count"]:
            problems.append(f"the script failed: {reports['failures']}")
    finally:
        if browser:
            await browser.end()
        await janus.end()
        takes = await recorder.finish()
        await site.end()
    take = takes.get(reports["session"][:8])
    if take is None:
        return [*problems, "the session has no take"], ""
    with sqlite3.connect(take) as base:
        labels = [
            label for (label,) in base.execute(
                "SELECT label FROM peer JOIN state USING (peer) WHERE machine = 'connection'"
                " AND to_state = 'connected' ORDER BY peer")
        ]
    same, between = compare(take, labels, reports, problems)
    if not labels or same < 100:
        problems.append(f"only {same} members of {labels} could be compared")
    await replay(program, take, problems)
    cost = reports["cost"] / reports["seconds"]
    return problems, (
        f"{same} members equal, {between} between two looks, {cost:.2f} ms of script a second")


# MARK: rtcstats-js


async def run_rtcstats(program, folder):
    """Records with the protocol of rtcstats-js: lines over a WebSocket at any path."""
    folder.mkdir(parents=True)
    problems = []
    (port,) = free_ports(1)
    recorder = await Recorder.start(program, folder, port, "--origin", "https://app.example")
    lines = [
        ["39", None, {"hardwareConcurrency": 2}, 1_790_000_000_000],
        ["39", "PC_0", {"iceServers": []}, 5],
        ["25", "PC_0", "connecting", 10],
        ["25", "PC_0", "connected", 90],
        ["g", "PC_0", {"0": {"type": 10, "134": 1}, "t": 1_790_000_000_100}, "connected-0", 4],
        ["g", "PC_0", {"0": {"134": 2}, "t": 1_790_000_001_100}, 1000],
        [":rating", None, {"stars": 5}, 20],
    ]
    async with aiohttp.ClientSession() as client:
        address = recorder.address.replace("http", "ws", 1) + "/room/12"
        for query, origin in (
            ("", "https://app.example"),
            (f"?rtcstats-token={recorder.token}", "https://other.example"),
        ):
            try:
                socket = await client.ws_connect(
                    address + query, protocols=["rtcstats#5.0"], origin=origin)
                await socket.close()
                problems.append(f"{query or 'no token'} of {origin} is let in")
            except aiohttp.WSServerHandshakeError:
                pass
        socket = await client.ws_connect(
            f"{address}?rtcstats-token={recorder.token}", protocols=["rtcstats#5.0"],
            origin="https://app.example")
        if socket.protocol != "rtcstats#5.0":
            problems.append(f"the subprotocol is {socket.protocol}")
        for line in lines:
            await socket.send_str(json.dumps(line))
        await socket.close()
    await asyncio.sleep(1)
    takes = await recorder.finish()
    take = takes.get("rtcstats")
    if take is None:
        return ["the session of rtcstats-js has no take"], ""
    if state_changes(take, "PC_0", "connection") != ["connecting", "connected"]:
        problems.append(f"the states are {state_changes(take, 'PC_0', 'connection')}")
    if count(take, "SELECT count(*) FROM stat") != 2:
        problems.append("there are not two statistics")
    if count(take, "SELECT count(*) FROM event WHERE type = ':rating'") != 1:
        problems.append("the application's own event is missing")
    await replay(program, take, problems)
    return problems, "lines of rtcstats-js become a take"


def demos_are_there():
    """Returns whether janus-demos is installed."""
    return DEMOS.is_dir() and bool(namespace.address())
