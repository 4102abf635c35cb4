"""Makes further calls through `retake record relay`: between two browsers, with data at full speed,
with simulcast into Janus, and with legs over TURN or TCP.

Each end is a page with one connection, or a plugin of Janus; takes are checked as in `relayed`.
"""

import asyncio
import json

from peers.coturn import Coturn
from peers.janus_server import ROOM, JanusServer
from recorded_page import Browser
from relayed import FEWEST_FRAMES, Relay, Room, check_take, guarded
from retake import look, replay
from signaled import JOIN

_MESSAGE = 16_384
_SOME = 4 << 20
_BULK = 64 << 20
_LAYERS = ("h", "m", "l")
_LARGE = {"width": 1280, "height": 720}
_SMALL = {"width": 160, "height": 120, "frameRate": 15}
_SMALL_SECONDS = 2

# One end of a call; the caller opens a data channel.
_END = """(async (address, calls, bulk, video) => {""" + JOIN + """
  const end = window.end = {received: 0};
  await join(address, {audio: true, video}, (connection, socket) => {
    Object.assign(end, {connection, socket});
    connection.ondatachannel = ({channel}) => {
      channel.binaryType = "arraybuffer";
      channel.onmessage = ({data}) => {
        end.received += data.byteLength;
        if (end.received === bulk) channel.send("all");
      };
    };
  });
  const {connection, socket} = end;
  if (!calls) return;
  end.channel = connection.createDataChannel("bulk");
  const isOpen = new Promise(resolve => end.channel.onopen = resolve);
  await connection.setLocalDescription();
  socket.send(JSON.stringify({jsep: connection.localDescription}));
  await isOpen;
})"""

# Sends `bulk` bytes over the channel as fast as possible; returns megabytes per second.
_SEND = """(async (bulk, size) => {
  const {channel} = window.end;
  const begin = performance.now();
  const isOver = new Promise(resolve => channel.onmessage = ({data}) => resolve(data));
  channel.bufferedAmountLowThreshold = 1 << 19;
  const message = new Uint8Array(size);
  for (let sent = 0; sent < bulk; sent += size) {
    if (channel.bufferedAmount > 1 << 20)
      await new Promise(resolve => channel.onbufferedamountlow = resolve);
    channel.send(message);
  }
  if (await isOver !== "all") throw new Error("the data ended otherwise");
  return bulk / 1e3 / (performance.now() - begin);
})"""

_RESULT = """(async () => {
  const {connection, received} = window.end;
  const stats = [...(await connection.getStats()).values()];
  const transport = stats.find(each => each.type === "transport");
  const pair = stats.find(each => each.id === transport?.selectedCandidatePairId)
    ?? stats.find(each => each.type === "candidate-pair" && (each.selected || each.nominated));
  const remote = stats.find(each => each.id === pair?.remoteCandidateId);
  return {
    state: connection.connectionState, data: received,
    path: [remote?.candidateType, remote?.protocol],
    received: stats.filter(each => each.type === "inbound-rtp").map(each => ({
      kind: each.kind, frames: each.framesDecoded ?? 0, lost: each.packetsLost,
      energy: each.totalAudioEnergy ?? 0})),
  };
})()"""

_END_CALL = "void (window.end.connection.close(), setTimeout(() => window.end.socket.close(), 300))"

# A Janus client that needs only a WebSocket: a handle for each connection.
_JANUS = """(() => {
  const janus = window.janus = {};
  const waiting = new Map();
  let count = 0;
  let session;
  janus.events = [];
  janus.open = address => new Promise((resolve, reject) => {
    const socket = janus.socket = new WebSocket(address, "janus-protocol");
    socket.onerror = () => reject(new Error("no WebSocket at " + address));
    socket.onmessage = ({data}) => {
      const reply = JSON.parse(data);
      if (reply.janus === "ack") return;
      const settle = waiting.get(reply.transaction);
      waiting.delete(reply.transaction);
      settle ? settle(reply) : janus.events.push(reply);
    };
    socket.onopen = async () => {
      session = (await janus.ask({janus: "create"})).data.id;
      resolve();
    };
  });
  janus.ask = message => new Promise((resolve, reject) => {
    const transaction = "t" + ++count;
    waiting.set(transaction, reply => {
      const error = reply.error?.reason ?? reply.plugindata?.data.error;
      error ? reject(new Error(error)) : resolve(reply);
    });
    janus.socket.send(JSON.stringify({...message, transaction, session_id: session}));
  });
  janus.attach = async () =>
    (await janus.ask({janus: "attach", plugin: "janus.plugin.videoroom"})).data.id;
  janus.tell = (handle_id, body, jsep) =>
    janus.ask({janus: "message", handle_id, body, ...(jsep && {jsep})});
  janus.complete = connection => new Promise(resolve => {
    const look = () => connection.iceGatheringState === "complete" && resolve();
    connection.onicegatheringstatechange = look;
    look();
  });
})()"""

_PUBLISH = """(async (address, room, rids, video) => {
  await janus.open(address);
  const handle = await janus.attach();
  const joined = await janus.tell(handle, {request: "join", ptype: "publisher", room});
  const connection = window.publisher = new RTCPeerConnection();
  const media = await navigator.mediaDevices.getUserMedia(
    {audio: true, video});
  connection.addTransceiver(media.getAudioTracks()[0], {direction: "sendonly"});
  connection.addTransceiver(media.getVideoTracks()[0], {
    direction: "sendonly", streams: [media],
    ...(rids.length && {
      sendEncodings: rids.map((rid, place) => ({rid, scaleResolutionDownBy: 1 << place}))})});
  await connection.setLocalDescription();
  await janus.complete(connection);
  const {jsep} = await janus.tell(
    handle, {request: "configure", audio: true, video: true, bitrate: 4000000},
    connection.localDescription.toJSON());
  await connection.setRemoteDescription(jsep);
  return joined.plugindata.data.id;
})"""

_SUBSCRIBE = """(async (address, room, feed) => {
  await janus.open(address);
  const handle = await janus.attach();
  const {jsep} = await janus.tell(
    handle, {request: "join", ptype: "subscriber", room, streams: [{feed}]});
  const connection = window.subscriber = new RTCPeerConnection();
  connection.ontrack = ({track}) => {
    const element = document.createElement(track.kind);
    element.autoplay = true;
    element.muted = track.kind === "video";
    element.srcObject = new MediaStream([track]);
    document.body.append(element);
  };
  await connection.setRemoteDescription(jsep);
  await connection.setLocalDescription();
  await janus.complete(connection);
  await janus.tell(handle, {request: "start"}, connection.localDescription.toJSON());
  window.handle = handle;
})"""

# Requests a layer, and waits until the decoded video has its width; returns the last width.
_LAYER = """(async (substream, width) => {
  await janus.tell(window.handle, {request: "configure", substream});
  const begin = performance.now();
  let seen;
  while (performance.now() - begin < 20000) {
    const stats = [...(await subscriber.getStats()).values()];
    seen = stats.find(each => each.type === "inbound-rtp" && each.kind === "video")?.frameWidth;
    if (seen === width) break;
    await new Promise(resolve => setTimeout(resolve, 100));
  }
  return seen;
})"""

_SENT = """(async () => [...(await publisher.getStats()).values()]
  .filter(each => each.type === "outbound-rtp" && each.kind === "video")
  .map(each => [each.rid, each.packetsSent, each.frameWidth]))()"""

_SUBSCRIBED = """(async () => [...(await subscriber.getStats()).values()]
  .filter(each => each.type === "inbound-rtp").map(each => ({
    kind: each.kind, frames: each.framesDecoded ?? 0, lost: each.packetsLost})))()"""


async def run_browsers(program, folder, seconds):
    """Calls from Chromium to Firefox, which must decode each other's media."""
    return await guarded(folder, lambda: _call(program, folder, seconds, ("chromium", "firefox")))


async def run_data(program, folder, seconds):
    """Fills a data channel between two Chromium pages."""
    return await guarded(
        folder, lambda: _call(program, folder, seconds, ("chromium", "chromium"), bulk=_BULK))


async def run_tcp(program, folder, seconds):
    """Makes a call whose legs both use ICE TCP only."""
    options = ["--ice-tcp", "only"]
    return await guarded(
        folder, lambda: _call(
            program, folder, seconds, ("chromium", "chromium"), options, path=[None, "tcp"]))


async def run_turn(program, folder, seconds):
    """Makes a call whose legs both use a TURN server that only the relay knows."""

    async def work():
        coturn = await Coturn.start(folder)
        try:
            return await _call(
                program, folder, seconds, ("chromium", "chromium"), coturn.options, bind=None,
                path=["relay", "udp"])
        finally:
            await coturn.end()

    return await guarded(folder, work)


async def run_simulcast(program, folder, seconds):
    """Publishes three layers in a Janus room, and subscribes to each of them."""
    return await guarded(folder, lambda: _simulcast(program, folder, seconds, _LAYERS, _LARGE))


async def run_small(program, folder):
    """Makes a call between two pages, as a small take for `Captures`."""
    return await guarded(
        folder, lambda: _call(
            program, folder, _SMALL_SECONDS, ("chromium", "chromium"), ["--no-media-copy"],
            bulk=_MESSAGE, video=_SMALL))


async def run_small_room(program, folder):
    """Makes a call of two users of a Janus room, as a small take for `Captures`."""
    return await guarded(
        folder, lambda: _simulcast(
            program, folder, _SMALL_SECONDS, (), _SMALL, ["--no-media-copy"]))


async def _call(
    program, folder, seconds, names, options=(), bind="127.0.0.1", path=None, bulk=_SOME,
    video=True
):
    room = await Room.start()
    # Firefox does not use loopback.
    bind = None if "firefox" in names else bind
    relay = await Relay.start(program, folder, room.address, *options, bind=bind)
    browsers = []
    try:
        try:
            for place, name in enumerate(names):
                home = folder / f"{place}"
                home.mkdir()
                browsers.append(await Browser.start(name, home))
                await browsers[-1].page.load(room.address + "/", ready="true")
            pages = [browser.page for browser in browsers]
            near = relay.address.replace("http", "ws") + "/room"
            far = room.address.replace("http", "ws") + "/room"
            for page, address, calls in ((pages[1], far, False), (pages[0], near, True)):
                arguments = ", ".join(json.dumps(each) for each in (address, calls, bulk, video))
                await page.evaluate(f"{_END}({arguments})")
            await asyncio.sleep(seconds)
            ends = [await page.evaluate(_RESULT) for page in pages]
            # Send the data only now, because a browser itself loses media packets while it sends at
            # full speed.
            rate = await pages[0].evaluate(f"{_SEND}({bulk}, {_MESSAGE})")
            data = (await pages[1].evaluate(_RESULT))["data"]
            for page in pages:
                await page.evaluate(_END_CALL)
            await asyncio.sleep(1)
        finally:
            for browser in browsers:
                await browser.end()
        words = await relay.finish()
    except BaseException:
        await relay.abandon()
        raise
    finally:
        await room.close()
    problems = _judge(ends, path, FEWEST_FRAMES if video is True else seconds * 5)
    if data != bulk:
        problems.append(f"{data} of {bulk} bytes of data came")
    problems += await check_take(program, relay.take, folder, {"audio", "video"})
    return problems, f"{rate:.1f} MB/s of data; {words}"


def _judge(ends, path, frames):
    problems = []
    for name, end in zip(("caller", "callee"), ends):
        if end["state"] != "connected":
            problems.append(f"{name} is {end['state']}")
        for kind, key, fewest in (("video", "frames", frames), ("audio", "energy", 1e-9)):
            best = max((each[key] for each in end["received"] if each["kind"] == kind), default=0)
            if best < fewest:
                problems.append(f"{name} has {kind} {key} {best}")
        if lost := sum(each["lost"] for each in end["received"]):
            problems.append(f"{name} lost {lost} packets")
        if path and any(want and want != got for want, got in zip(path, end["path"])):
            problems.append(f"{name} reaches the relay over {end['path']} instead of {path}")
    return problems


async def _simulcast(program, folder, seconds, layers, video, options=()):
    room = await Room.start()
    janus = await JanusServer.start("videoroom", folder)
    relay = None
    browsers = []
    try:
        relay = await Relay.start(
            program, folder, janus.address, "--allow-origin", room.address, *options, bind=None)
        address = relay.address.replace("http", "ws")
        for place in range(2):
            home = folder / f"{place}"
            home.mkdir()
            browsers.append(await Browser.start("chromium", home))
            await browsers[-1].page.load(room.address + "/", ready="true")
            await browsers[-1].page.evaluate(f"void {_JANUS}")
        publisher, subscriber = (browser.page for browser in browsers)
        feed = await publisher.evaluate(
            f"{_PUBLISH}({json.dumps(address)}, {ROOM}, {json.dumps(layers)},"
            f" {json.dumps(video)})")
        await publisher.until("publisher.connectionState === 'connected'")
        await subscriber.evaluate(f"{_SUBSCRIBE}({json.dumps(address)}, {ROOM}, {feed})")
        await subscriber.until("subscriber.connectionState === 'connected'")
        widths = []
        for layer in range(len(layers)):
            width = video["width"] >> (len(layers) - 1 - layer)
            widths.append((width, await subscriber.evaluate(f"{_LAYER}({layer}, {width})")))
            await asyncio.sleep(seconds / 2)
        if not layers:
            await asyncio.sleep(seconds)
        sent = await publisher.evaluate(_SENT)
        received = await subscriber.evaluate(_SUBSCRIBED)
        for page, name in ((subscriber, "subscriber"), (publisher, "publisher")):
            await page.evaluate(f"void {name}.close()")
        await asyncio.sleep(1)
    finally:
        for browser in browsers:
            await browser.end()
        words = await relay.finish() if relay else ""
        await janus.end()
        await room.close()
    problems = [f"a layer of {want} pixels came as {got}" for want, got in widths if want != got]
    if layers and {rid for rid, packets, _ in sent if packets} != set(layers):
        problems.append(f"the publisher sent {sent}")
    if lost := sum(each["lost"] for each in received):
        problems.append(f"the subscriber lost {lost} packets")
    fewest = FEWEST_FRAMES if layers else seconds * 5
    if max((each["frames"] for each in received), default=0) < fewest:
        problems.append(f"the subscriber decoded {received}")
    found, _ = await replay(program, relay.take, folder)
    return problems + found + await look(program, relay.take, folder), words
