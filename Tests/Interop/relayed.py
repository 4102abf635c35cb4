"""Browsers' calls through `retake record relay`, which neither end knows of.

Both ends must decode everything, by their own statistics, and every machine in the take must replay
identically.
"""

import asyncio
import json
import re
import shutil
import signal
import sqlite3
from contextlib import closing

from aiohttp import WSMsgType, web

import recorded_others
from peers.chromium import Chromium
from peers.devtools import Page
from peers.janus_server import JanusServer
from plan import Call
from processes import Child, ProcessError, free_ports
from recorded_page import Browser
from retake import Recorder, look, replay
from signaled import JOIN

_CALL_SECONDS = 240
_START_SECONDS = 90
FEWEST_FRAMES = 30
_SIZES = (1, 1_200, 100_000)

# Two connections in one page: one signals through the relay, the other directly with the server.
# Both trickle candidates; returns the statistics of both.
_BOTH_ENDS = """(async (near, far, seconds, sizes) => {""" + JOIN + """
  const ends = [];
  for (const address of [near, far]) {
    const end = await join(address, {audio: true, video: true}, connection =>
      connection.ondatachannel = ({channel}) =>
        channel.onmessage = ({data}) => channel.send(data));
    ends.push({...end, echoed: []});
  }
  const [caller, callee] = ends;
  const channel = caller.connection.createDataChannel("chat");
  channel.onmessage = ({data}) => caller.echoed.push(data.length);
  const isOpen = new Promise(resolve => channel.onopen = resolve);
  await caller.connection.setLocalDescription();
  caller.socket.send(JSON.stringify({jsep: caller.connection.localDescription}));
  await isOpen;
  for (const size of sizes) channel.send("x".repeat(size));
  await new Promise(resolve => setTimeout(resolve, seconds * 500));
  // The callee changes the call, and the caller restarts ICE.
  callee.connection.addTransceiver("audio");
  await callee.connection.setLocalDescription();
  callee.socket.send(JSON.stringify({jsep: callee.connection.localDescription}));
  await new Promise(resolve => setTimeout(resolve, 1000));
  await caller.connection.setLocalDescription(
    await caller.connection.createOffer({iceRestart: true}));
  caller.socket.send(JSON.stringify({jsep: caller.connection.localDescription}));
  await new Promise(resolve => setTimeout(resolve, seconds * 500));
  const result = [];
  for (const end of ends) {
    const stats = [...(await end.connection.getStats()).values()];
    result.push({
      state: end.connection.connectionState, signaling: end.connection.signalingState,
      echoed: end.echoed,
      received: stats.filter(each => each.type === "inbound-rtp").map(each => ({
        kind: each.kind, frames: each.framesDecoded ?? 0, packets: each.packetsReceived,
        lost: each.packetsLost, energy: each.totalAudioEnergy ?? 0})),
    });
  }
  for (const end of ends) end.connection.close();
  await new Promise(resolve => setTimeout(resolve, 500));
  for (const end of ends) end.socket.close();
  return result;
})"""

# A WHIP client in a page (RFC 9725).
_PUBLISH = """(async (endpoint, seconds) => {
  const connection = new RTCPeerConnection();
  const media = await navigator.mediaDevices.getUserMedia({audio: true, video: true});
  for (const track of media.getTracks()) connection.addTransceiver(track, {direction: "sendonly"});
  await connection.setLocalDescription();
  const response = await fetch(endpoint, {
    method: "POST", headers: {"Content-Type": "application/sdp"},
    body: connection.localDescription.sdp});
  if (response.status !== 201) throw new Error(response.status + " " + await response.text());
  const session = new URL(response.headers.get("Location"), endpoint);
  await connection.setRemoteDescription({type: "answer", sdp: await response.text()});
  // Candidates as fragments (RFC 8840), which the relay replaces, too.
  const lines = connection.localDescription.sdp.split("\\r\\n");
  const find = start => lines.find(line => line.startsWith(start));
  const fragment = [find("a=ice-ufrag:"), find("a=ice-pwd:"), find("m="), find("a=mid:"),
    "a=candidate:1 1 udp 2113937151 192.0.2.99 9 typ host", "a=end-of-candidates", ""];
  const trickled = await fetch(session, {
    method: "PATCH", body: fragment.join("\\r\\n"),
    headers: {"Content-Type": "application/trickle-ice-sdpfrag",
      "If-Match": response.headers.get("ETag")}});
  await new Promise((resolve, reject) => {
    const look = () => connection.connectionState === "connected" ? resolve()
      : connection.connectionState === "failed" && reject(new Error("the connection failed"));
    connection.onconnectionstatechange = look;
    look();
  });
  await new Promise(resolve => setTimeout(resolve, seconds * 1000));
  const stats = [...(await connection.getStats()).values()];
  const remote = stats.filter(each => each.type === "remote-inbound-rtp");
  const ended = await fetch(session, {method: "DELETE"});
  connection.close();
  return {
    host: session.host, ended: ended.status, trickled: trickled.status,
    lost: remote.map(each => each.packetsLost),
    sent: stats.filter(each => each.type === "outbound-rtp").map(each => each.packetsSent)};
})"""


class Relay:
    """A running `retake record relay`, or another verb that relays."""

    def __init__(self, child, address, take):
        self._child = child
        self.address = address
        self.take = take

    @classmethod
    async def start(
            cls, program, folder, upstream, *options, bind="127.0.0.1", verb=("record", "relay")):
        """Starts a relay in front of a server; `bind` is None for ends that use no loopback."""
        (port,) = free_ports(1)
        take = folder / "relay.take"
        child = await Child.start(
            [program, *verb, "--listen", f"127.0.0.1:{port}", "--upstream", upstream,
             "--out", take, *(["--bind", bind] if bind else []), *options],
            folder / "relay.log",
        )
        await child.line("the relay to .* is http", _START_SECONDS, errors=True)
        return cls(child, f"http://127.0.0.1:{port}", take)

    async def finish(self):
        """Ends the recording; returns its summary."""
        status = await self._child.finish(_START_SECONDS, sending=signal.SIGINT)
        if status != 0:
            raise ProcessError(f"record relay ended with status {status}")
        return self._child.output[-1]

    async def abandon(self):
        """Ends the relay without checks."""
        await self._child.end()


class Room:
    """A server that knows nothing of WebRTC: it forwards each member's messages to the other
    member."""

    def __init__(self, runner, address):
        self._runner = runner
        self.address = address

    @classmethod
    async def start(cls):
        """Serves a page at `/` and a WebSocket at `/room`."""
        members = []

        async def page(_):
            return web.Response(
                text="<!doctype html><title>Room</title>", content_type="text/html")

        async def room(request):
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            members.append(socket)
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    for member in members:
                        if member is not socket and not member.closed:
                            await member.send_str(message.data)
            members.remove(socket)
            return socket

        (port,) = free_ports(1)
        server = web.Application()
        server.add_routes([web.get("/", page), web.get("/room", room)])
        runner = web.AppRunner(server, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        return cls(runner, f"http://127.0.0.1:{port}")

    async def close(self):
        """Ends the server."""
        await self._runner.cleanup()


async def run_call(program, folder, seconds, name="chromium"):
    """Makes a call between two connections of a browser; returns the problems and a summary."""
    return await guarded(folder, lambda: _call(program, folder, seconds, name, False))


async def run_both(program, folder, seconds):
    """Makes the same call with both ends behind the relay, which then has two calls."""
    return await guarded(folder, lambda: _call(program, folder, seconds, "chromium", True))


async def run_whip(program, folder, seconds):
    """Publishes from a page to `record serve` by WHIP; returns the problems and a summary."""
    return await guarded(folder, lambda: _publish(program, folder, seconds))


async def guarded(folder, work):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        async with asyncio.timeout(_CALL_SECONDS):
            return await work()
    except Exception as error:  # a browser may raise anything: the call failed
        return [f"{type(error).__name__}: {error}"], ""


async def _call(program, folder, seconds, name, is_behind):
    room = await Room.start()
    # Firefox does not use loopback.
    bind = "127.0.0.1" if name == "chromium" else None
    relay = await Relay.start(program, folder, room.address, bind=bind)
    try:
        browser = await Browser.start(name, folder)
        try:
            # The server's own page; only its signaling passes through the relay.
            await browser.page.load(room.address + "/", ready="true")
            near = relay.address.replace("http", "ws") + "/room"
            far = near if is_behind else room.address.replace("http", "ws") + "/room"
            arguments = ", ".join(json.dumps(each) for each in (near, far, seconds, _SIZES))
            ends = await browser.page.evaluate(f"{_BOTH_ENDS}({arguments})")
        finally:
            await browser.end()
        words = await relay.finish()
    except BaseException:
        await relay.abandon()
        raise
    finally:
        await room.close()
    problems = _judge(ends)
    problems += await check_take(program, relay.take, folder, {"audio", "video"}, 1 + is_behind)
    return problems, f"both ends decoded all; {words}"


def _judge(ends):
    problems = []
    for name, end in zip(("caller", "callee"), ends):
        if end["state"] != "connected" or end["signaling"] != "stable":
            problems.append(f"{name} is {end['state']} and {end['signaling']}")
        video = [each for each in end["received"] if each["kind"] == "video"]
        audio = [each for each in end["received"] if each["kind"] == "audio"]
        if not video or max(each["frames"] for each in video) < FEWEST_FRAMES:
            problems.append(f"{name} decoded {video}")
        if not audio or max(each["energy"] for each in audio) <= 0:
            problems.append(f"{name} received no audio: {audio}")
        lost = sum(each["lost"] for each in end["received"])
        if lost > 0:
            problems.append(f"{name} lost {lost} packets")
    if ends[0]["echoed"] != list(_SIZES):
        problems.append(f"of {_SIZES} came back {ends[0]['echoed']}")
    return problems


async def _publish(program, folder, seconds):
    recorder = await Recorder.start(program, folder, "127.0.0.1", "pattern")
    relay = None
    try:
        relay = await Relay.start(program, folder, recorder.address)
        browser = await Chromium.open(folder, Call("chromium", "peer"))
        try:
            # The server's page is loaded through the relay, so its origin is the relay.
            await browser.page.load(relay.address + "/", ready="true")
            arguments = f"{json.dumps(relay.address + '/whip')}, {seconds}"
            result = await browser.page.evaluate(f"{_PUBLISH}({arguments})")
        finally:
            await browser.close()
        words = await relay.finish()
    except BaseException:
        if relay:
            await relay.abandon()
        raise
    finally:
        await recorder.abandon()
    problems = []
    if result["host"] != re.sub("^http://", "", relay.address):
        problems.append(f"the session is at {result['host']}, past the relay")
    if result["trickled"] != 204:
        problems.append(f"a fragment was answered with {result['trickled']}")
    if result["ended"] != 200 or any(result["lost"]) or min(result["sent"], default=0) < 50:
        problems.append(f"published: {result}")
    problems += await check_take(program, relay.take, folder, {"audio", "video"})
    found, _ = await replay(program, recorder.take, folder)
    return problems + found, words


async def run_demo(program, folder, seconds):
    """Makes a call between two tabs of Janus's own demo in one room; only the server address
    changes."""
    return await guarded(folder, lambda: _demo(program, folder, seconds))


# Returns what the page's connections receive.
_RECEIVED = """(async () => {
  const all = [];
  for (const each of window.made) {
    const stats = [...(await each.getStats()).values()];
    all.push(...stats.filter(s => s.type === "inbound-rtp"));
  }
  return all;
})()"""


async def visit_demo(program, folder, seconds, *options, verb=("record", "relay")):
    """Makes a call between two tabs in the demo's room; returns the take, what each tab received,
    and the relay's summary.

    `options` are the relay's.
    """
    site = recorded_others.Site()
    await site.start()
    site.script = f"<script>{recorded_others.FIND}</script>"
    janus = await JanusServer.start("videoroom", folder)
    relay = browser = None
    try:
        relay = await Relay.start(
            program, folder, janus.address, "--allow-origin", site.address, *options, bind=None,
            verb=verb)
        site.janus = relay.address.replace("http", "ws")
        browser = await Browser.start("chromium", folder)
        pages = [browser.page, await Page.open(browser.address)]
        for number, page in enumerate(pages):
            await page.load(
                f"{site.address}/demos/videoroomtest.html",
                ready="window.$ && !document.getElementById('start').disabled")
            await asyncio.sleep(1)
            await page.evaluate("void document.getElementById('start').click()")
            await page.until("$('#username').is(':visible')")
            await page.evaluate(
                f"void ($('#username').val('guest{number}'), $('#register').click())")
            await page.until("window.made.some(each => each.connectionState === 'connected')")
        for page in pages:
            await page.until(
                "window.made.filter(each => each.connectionState === 'connected').length > 1")
        await asyncio.sleep(seconds)
        received = [await page.evaluate(_RECEIVED) for page in pages]
        await pages[1].close()
    finally:
        if browser:
            await browser.end()
        words = await relay.finish() if relay else ""
        await janus.end()
        await site.end()
    return relay.take, received, words


async def _demo(program, folder, seconds):
    take, received, words = await visit_demo(program, folder, seconds)
    problems = []
    for number, streams in enumerate(received):
        frames = sum(each["framesDecoded"] for each in streams if each["kind"] == "video")
        if frames < FEWEST_FRAMES:
            problems.append(f"tab {number} decoded {frames} frames: {streams}")
    found, _ = await replay(program, take, folder)
    return problems + found + await look(program, take, folder), words


async def check_take(program, take, folder, kinds, calls=1):
    """Checks a relay's take: its contents, and that it replays."""
    problems, _ = await replay(program, take, folder)
    problems += await look(program, take, folder)
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        labels = [row[0] for row in database.execute("SELECT label FROM peer ORDER BY peer")]
        names = [f"{side}{number}" for number in range(1, calls + 1) for side in ("near ", "far ")]
        # An end becomes visible with its first packet.
        ends = sorted(name.replace(" ", " end ") for name in names)
        if labels[: 2 * calls] != names or sorted(labels[2 * calls :]) != ends:
            problems.append(f"the take's peers are {labels}")
        seen = f"SELECT DISTINCT kind FROM frame WHERE peer > {2 * calls}"
        if (found := {row[0] for row in database.execute(seen)}) != kinds:
            problems.append(f"the ends have frames of {found}")
        ways = dict(
            database.execute(
                "SELECT peer, count(DISTINCT direction) FROM signaling"
                f" WHERE peer <= {2 * calls} GROUP BY 1"))
        if ways != dict.fromkeys(range(1, 2 * calls + 1), 2):
            problems.append(f"signaling of the legs: {ways}")
    return problems
