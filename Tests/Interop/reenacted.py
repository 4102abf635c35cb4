"""Re-enacts recorded calls to Chromium, which must count what the recorded receiver counted."""

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from processes import Child, free_ports
from recorded_page import Browser
from relayed import Room, guarded, visit_demo
from signaled import JOIN

_CAPTURES = Path(__file__).resolve().parents[2] / "Captures"
# A capture, the receiver that Chromium replaces, and how its lost packets are repaired.
CASES = [
    ("virtual-heavy-loss", 1, "as-recorded"), ("virtual-heavy-loss", 1, "honest"),
    ("observed-aiortc", 2, "as-recorded"), ("observed-clear-vp8", 1, "as-recorded"),
]
_SECONDS = 120
# The maximum median deviation from the recorded timing.
_MEDIAN_NS = 2_000_000
_LOST = "SELECT sum(lost) FROM loss WHERE peer = ? AND direction = 'in' AND ssrc IN (" \
    "SELECT ssrc FROM track WHERE kind = 'video' AND direction = 'in')"


# A page with two connections. The first signals through the relay, and either may offer. The relay
# plays the recorded packets to the first connection in place of the second connection's media.
# Returns both connections' last statistics before the relay ends, the messages to the first
# connection, and the directions of its sections after each answer.
_THROUGH_RELAY = """(async (near, far, offers) => {""" + JOIN + """
  const messages = [], directions = [];
  const wanted = {audio: true, video: true};
  const ends = [await join(near, wanted, connection => {
    connection.createDataChannel("chat").onmessage = ({data}) => messages.push(String(data));
    connection.onsignalingstatechange = () => {
      if (connection.signalingState !== "stable") return;
      directions.push(connection.getTransceivers().map(each => each.currentDirection));
    };
  }), await join(far, wanted, connection => void connection.createDataChannel("chat"))];
  const offerer = ends[offers];
  await offerer.connection.setLocalDescription();
  offerer.socket.send(JSON.stringify({jsep: offerer.connection.localDescription}));
  let last = null;
  for (let waits = 0; waits < 400; waits += 1) {
    await new Promise(resolve => setTimeout(resolve, 200));
    const states = ends.map(({connection}) => connection.connectionState);
    if (last && states[0] !== "connected") break;
    if (states.some(state => state !== "connected")) continue;
    last = await Promise.all(ends.map(async ({connection}) => {
      const stats = [...(await connection.getStats()).values()];
      return stats.filter(each => each.type === "inbound-rtp").map(each => ({
        kind: each.kind, ssrc: each.ssrc, lost: each.packetsLost, frames: each.framesDecoded ?? 0,
        packets: each.packetsReceived}));
    }));
  }
  for (const {connection, socket} of ends) { connection.close(); socket.close(); }
  return {last, messages, directions};
})"""


async def run(program, folder, is_brief):
    """Re-enacts all captures, or only the first in a brief run; returns the problems and the
    counts."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    problems, words = [], []
    for name, peer, repair in CASES[:1] if is_brief else CASES:
        try:
            async with asyncio.timeout(_SECONDS):
                found, word = await _play(program, folder, name, peer, repair, is_brief)
        except Exception as error:  # any error means that the call failed
            found, word = [f"{type(error).__name__}: {error}"], "failed"
        problems += [f"{name}, {repair}: {problem}" for problem in found]
        words.append(f"{name} {repair}: {word}")
    for way in [_near_offers] if is_brief else [
            _change, _mend, _near_offers, _far_offers, _change_through_relay]:
        try:
            async with asyncio.timeout(_SECONDS):
                found, word = await way(program, folder)
        except Exception as error:
            found, word = [f"{type(error).__name__}: {error}"], "failed"
        problems += found
        words.append(word)
    return problems, "; ".join(words)


async def _change(program, folder):
    """Re-enacts a call whose sender renegotiated repeatedly; Chromium must get all descriptions."""
    source, out = _CAPTURES / "chromium-negotiates.take", folder / "changes.take"
    report = json.loads(await _output(
        program, "reenact", source, "--peer", 1, "--listen", "127.0.0.1:0", "--against", "chromium",
        "--expect", "video.framesDecoded >= 10", "--out", out, "--json"))
    problems = [each["sentence"] for each in report["expectations"] if not each["holds"]]
    if not report["complete"] or report["omissions"] or report["descriptions"] < 5 \
            or not report["messages"]:
        problems.append(f"the changes came to {report}")
    with closing(sqlite3.connect(f"file:{report['pages'][0]}?mode=ro", uri=True)) as database:
        calls = dict(database.execute("SELECT name, count(*) FROM call_request GROUP BY 1"))
    # There is one more call than later descriptions, because the first call applies the answer.
    if calls.get("setRemoteDescription") != report["descriptions"] + 1:
        problems.append(f"{report['descriptions']} later descriptions made calls of {calls}")
    await _output(program, "replay", out)
    return problems, f"{report['descriptions']} later descriptions"


async def _mend(program, folder):
    """Re-enacts a call for a client with a deeper jitter buffer, which must freeze less."""
    frozen = []
    for target in (None, "1s"):
        out = folder / f"mended-{target}.take"
        report = json.loads(await _output(
            program, "reenact", _CAPTURES / "virtual-heavy-loss.take", "--peer", 1, "--listen",
            "127.0.0.1:0", "--against", "chromium", "--out", out, "--json",
            *(["--jitter-buffer-target", target] if target else [])))
        frozen.append(video_of(report["pages"][0])["totalFreezesDuration"])
    problems = [] if frozen[1] < frozen[0] else [f"a deeper buffer froze for {frozen} s"]
    return problems, f"frozen {frozen[0]:.2f} s, with a deeper buffer {frozen[1]:.2f} s"


async def _near_offers(program, folder):
    """Re-enacts to an application with its own signaling, whose client offers."""
    return await _through_relay(program, folder, 0)


async def _far_offers(program, folder):
    """Re-enacts to an application with its own signaling, whose server offers."""
    return await _through_relay(program, folder, 1)


async def _change_through_relay(program, folder):
    """Re-enacts a call whose sender renegotiated repeatedly, to an application with its own
    signaling: its client must get all descriptions in the application's messages, and its server
    none of the answers."""
    source, problems = _CAPTURES / "chromium-negotiates.take", []
    report, result = await _visit(program, folder, source, 0, "changes-relayed")
    changes = [each for each in report["omissions"] if "later description" in each]
    if not report["complete"] or report["descriptions"] < 5 or changes:
        problems.append(f"the changes came to {report}")
    # There is one more entry than later descriptions: the first is from the client's own exchange.
    if len(result["directions"]) < report["descriptions"] + 1 or len(
            {json.dumps(each) for each in result["directions"]}) < 2:
        problems.append(f"{report['descriptions']} descriptions led to {result['directions']}")
    near, far = result["last"]
    if not any(each["kind"] == "video" and each["frames"] > 10 for each in near):
        problems.append(f"the client received {near}")
    if not any(each["kind"] == "video" and each["frames"] > 30 for each in far):
        problems.append(f"the other end received {far}")
    return [f"changes through a relay: {each}" for each in problems], (
        f"{report['descriptions']} later descriptions through a relay")


async def _through_relay(program, folder, offers):
    source, name = _CAPTURES / "virtual-heavy-loss.take", ("client", "server")[offers]
    report, result = await _visit(program, folder, source, offers, f"relayed-{name}")
    problems = []
    if not report["complete"]:
        problems.append(f"the report is {report}")
    near, far = result["last"]
    video = [each for each in near if each["kind"] == "video" and each["packets"]]
    # The client received only the recorded streams, with their losses.
    wanted = json.loads(await _output(
        program, "sql", source, _LOST.replace("?", "1"), "--json"))
    was = list(wanted[0].values())[0]
    if len(video) != 1 or video[0]["lost"] != was or video[0]["frames"] < 10:
        problems.append(f"{was} video packets were lost, and the client received {near}")
    recorded = json.loads(await _output(
        program, "sql", source, "SELECT DISTINCT ssrc FROM rtp WHERE peer = 1 AND direction = 'in'",
        "--json"))
    if not {each["ssrc"] for each in near if each["packets"]} <= {
            each["ssrc"] for each in recorded}:
        problems.append(f"other streams than the recorded ones: {near}")
    if len(result["messages"]) != report["messages"] or not report["messages"]:
        problems.append(f"{report['messages']} messages came as {result['messages']}")
    # The server continued to receive the client's media.
    if not any(each["kind"] == "video" and each["frames"] > 30 for each in far):
        problems.append(f"the other end received {far}")
    word = f"{video[0]['lost']} lost, {video[0]['frames']} frames" if video else "no video"
    return [f"through a relay, the {name} offering: {each}" for each in problems], (
        f"through a relay, the {name} offering: {word}")


async def _visit(program, folder, source, offers, name):
    """Re-enacts a call to a page of two connections, the first of which reaches the other through
    the relay; returns the report and the page's result."""
    out, room, browser = folder / f"{name}.take", await Room.start(), None
    (port,) = free_ports(1)
    child = await Child.start(
        [program, "reenact", source, "--peer", 1, "--listen", f"127.0.0.1:{port}", "--upstream",
         room.address, "--bind", "127.0.0.1", "--out", out, "--json"],
        folder / f"{name}.log")
    try:
        await child.line("the relay to .* is http", _SECONDS, errors=True)
        browser = await Browser.start("chromium", folder)
        await browser.page.load(room.address + "/", ready="true")
        addresses = [f"ws://127.0.0.1:{port}/room", room.address.replace("http", "ws") + "/room"]
        arguments = ", ".join(json.dumps(each) for each in (*addresses, offers))
        result = await browser.page.evaluate(f"{_THROUGH_RELAY}({arguments})")
        status = await child.finish(_SECONDS)
    except BaseException:
        await child.end()
        raise
    finally:
        if browser:
            await browser.end()
        await room.close()
    report = json.loads(child.output[-1])
    if status != 0:
        raise RuntimeError(f"status {status}, and the report is {report}")
    await _output(program, "replay", out)
    return report, result


async def run_demo(program, folder, seconds):
    """Plays the recorded packets to a tab of Janus's own demo; only the server address changes.
    Connections that publish are only relayed. Returns the problems and a summary."""
    return await guarded(folder, lambda: _demo(program, folder, seconds))


async def _demo(program, folder, seconds):
    source = _CAPTURES / "virtual-heavy-loss.take"
    take, received, words = await visit_demo(
        program, folder, max(seconds, 5), "--json", verb=("reenact", source, "--peer", 1))
    report, problems = json.loads(words), []
    if not report["complete"]:
        problems.append(f"the report is {report}")
    wanted = json.loads(await _output(program, "sql", source, _LOST.replace("?", "1"), "--json"))
    was = list(wanted[0].values())[0]
    lost = [each["packetsLost"] for streams in received for each in streams
            if each["kind"] == "video" and each["packetsReceived"]]
    # One tab gets the recording, and the other the first tab's camera.
    if sorted(lost) != [0, was]:
        problems.append(f"{was} video packets were lost, and the tabs received {received}")
    await _output(program, "replay", take)
    return problems, f"a tab of Janus's demo lost {was} packets as recorded"


def video_of(take):
    """Returns a page's last statistics of the video that it received."""
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT members FROM stat WHERE type = 'inbound-rtp' ORDER BY row").fetchall()
    return [each for (text,) in rows if (each := json.loads(text)).get("kind") == "video"][-1]


async def _play(program, folder, name, peer, repair, is_brief):
    source, out = _CAPTURES / f"{name}.take", folder / f"{name}-{repair}.take"
    lost = "video.packetsLost <= 0" if repair == "honest" else "video.packetsLost >= 0"
    report = json.loads(await _output(
        program, "reenact", source, "--peer", peer, "--repair", repair, "--listen", "127.0.0.1:0",
        "--against", "chromium", "--expect", "video.framesDecoded >= 10", "--expect", lost,
        "--out", out, "--json"))
    problems = [f"{each['sentence']}" for each in report["expectations"] if not each["holds"]]
    if not report["complete"] or not report["pages"]:
        problems.append("it was not played to its end, or the page reported nothing")
    # A brief run shares the machine, which delays packets.
    if report["median_ns"] > _MEDIAN_NS and not is_brief:
        problems.append(f"packets left {report['median_ns']} ns from their distances")
    counted = [each["sentence"].rpartition(": ")[2] for each in report["expectations"]]
    if repair == "as-recorded":
        theirs = video_of(report["pages"][0])["packetsLost"]
        wanted = json.loads(await _output(
            program, "sql", source, _LOST.replace("?", str(peer)), "--json"))
        was = list(wanted[0].values())[0]
        if theirs != was:
            problems.append(f"{theirs} video packets are lost, and {was} were")
    await _output(program, "replay", out)
    return problems, ", ".join(counted)


async def _output(program, *words):
    child = await asyncio.create_subprocess_exec(
        program, *map(str, words), stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE)
    output, errors = await child.communicate()
    if child.returncode not in (0, 1):
        raise RuntimeError(f"{words[0]}: status {child.returncode}: {errors.decode()}")
    return output.decode()
