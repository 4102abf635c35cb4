"""The plugins of a Janus server as peers: Retake is the only user, or there is a second one."""

import asyncio

from peers.child import ChildPeer
from peers.janus_server import QUIETEST, ROOM, JanusServer
from reports import Report, Stream

_DTLS_ROLES = {"active": "client", "passive": "server"}


class Janus:
    """A call with a plugin; any other participant is a libwebrtc peer."""

    def __init__(self, server, folder):
        self._server = server
        self._folder = folder
        self._session = None
        self._admin = None
        self._handle = None
        # The plugin's id for Retake.
        self._user = None
        self._others = []

    @classmethod
    async def open(cls, call, folder):
        """Starts a server and attaches a handle of the call's plugin."""
        plugin = call.peer.removeprefix("janus-")
        janus = _PLUGINS[plugin](await JanusServer.start(plugin, folder), folder)
        try:
            janus._session = await janus._server.session()
            janus._admin = await janus._server.admin()
            janus._handle = await janus._session.attach(plugin)
        except BaseException:
            await janus.close()
            raise
        return janus

    async def report(self):
        """Returns the server's statistics, which count packets but no frames, because the server
        decodes nothing."""
        request = {"janus": "handle_info", "handle_id": self._handle, **self._session.identity}
        info = (await self._admin.request(request))["info"]
        webrtc = info.get("webrtc", {})
        dtls = webrtc.get("dtls", {})
        report = Report(connection="connected" if dtls.get("ready") else "connecting")
        report.dtls_role = _DTLS_ROLES.get(dtls.get("dtls-role"), "")
        report.srtp_profile = dtls.get("srtp-profile", "").removeprefix("SRTP_")
        for media in webrtc.get("media", {}).values():
            if media["type"] in ("audio", "video"):
                report.streams += _streams(media)
        report.audio_energy = self._loudness()
        return report

    async def close(self):
        """Ends all peers and the server."""
        for other in self._others:
            await other.close()
        for session in (self._session, self._admin):
            if session:
                await session.close()
        await self._server.end()

    def _loudness(self):
        """Returns the summed energies of the mean levels at which the plugin detected Retake
        talking."""
        told = (each.get("plugindata", {}).get("data", {}) for each in self._session.told)
        talks = [
            each for each in told
            if "talking" in each.values() and self._user and each.get("id") == self._user
        ]
        # The bridge reports that a user talks, but no level: assume the threshold.
        levels = [each.get("audio-level-dBov-avg", QUIETEST) for each in talks]
        return sum(10 ** (-level / 10) for level in levels) or None

    async def _bring(self):
        """Creates another user with audio and video; returns its offer."""
        folder = self._folder / f"other-{len(self._others) + 1}"
        folder.mkdir()
        other = await ChildPeer.open("libwebrtc_peer.py", folder)
        self._others.append(other)
        return other, await other.offer()

    async def _send(self, body, kind=None, sdp=None, handle=None):
        """Returns a plugin's response to a request: its data, and its description if there is
        one."""
        reply = await self._session.message(handle or self._handle, body, kind, sdp)
        return reply["plugindata"]["data"], reply.get("jsep", {}).get("sdp")


class Echotest(Janus):
    """Echoes received media."""

    async def answer(self, sdp):
        """Returns the server's answer."""
        _, answer = await self._send({"audio": True, "video": True}, "offer", sdp)
        return answer


class Videoroom(Janus):
    """Receives offers from publishers; sends offers to subscribers."""

    async def answer(self, sdp):
        """Returns the server's answer to a publisher."""
        joined, _ = await self._send({"request": "join", "ptype": "publisher", "room": ROOM})
        self._user = joined["id"]
        _, answer = await self._send({"request": "publish"}, "offer", sdp)
        return answer

    async def offer(self):
        """Returns the server's offer of another user's media."""
        publisher, offer = await self._bring()
        handle = await self._session.attach("videoroom")
        joined, _ = await self._send(
            {"request": "join", "ptype": "publisher", "room": ROOM}, handle=handle
        )
        _, answer = await self._send({"request": "publish"}, "offer", offer, handle)
        await publisher.accept(answer)
        await _connected(publisher)
        request = {"request": "join", "ptype": "subscriber", "room": ROOM}
        _, offer = await self._send({**request, "streams": [{"feed": joined["id"]}]})
        return offer

    async def accept(self, sdp):
        """Applies a subscriber's answer."""
        await self._send({"request": "start"}, "answer", sdp)


class Audiobridge(Janus):
    """Mixes the users' audio, for each of them without that user's own."""

    async def answer(self, sdp):
        """Returns the server's answer."""
        await self._join()
        _, answer = await self._send({"request": "configure", "muted": False}, "offer", sdp)
        return answer

    async def offer(self):
        """Returns the server's offer."""
        await self._join()
        _, offer = await self._send({"request": "configure", "generate_offer": True})
        return offer

    async def accept(self, sdp):
        """Applies the answer."""
        await self._send({"request": "configure", "muted": False}, "answer", sdp)

    async def _join(self):
        """Joins as Retake, after another user that is heard in the mix."""
        other, offer = await self._bring()
        handle = await self._session.attach("audiobridge")
        await self._send({"request": "join", "room": ROOM}, handle=handle)
        body = {"request": "configure", "muted": False}
        _, answer = await self._send(body, "offer", offer, handle)
        await other.accept(answer)
        await _connected(other)
        joined, _ = await self._send({"request": "join", "room": ROOM})
        self._user = joined["id"]


_PLUGINS = {"echotest": Echotest, "videoroom": Videoroom, "audiobridge": Audiobridge}


async def _connected(other):
    """Waits until another user's connection is connected."""
    async with asyncio.timeout(60):
        while (await other.report()).connection != "connected":
            await asyncio.sleep(0.1)


def _streams(media):
    """Returns an m-section's streams in both directions, as the server counts them."""
    ssrcs, stats, kind = media["ssrc"], media["stats"], media["type"]
    received, sent = stats["in"].get("packets", 0), stats["out"].get("packets", 0)
    if "ssrc-peer" in ssrcs and received:
        rtx = ssrcs.get("ssrc-peer-rtx")
        yield Stream(kind, "in", ssrcs["ssrc-peer"], received, received, rtx)
    # In a simulcast the server counts each layer separately.
    for layer in (1, 2):
        counts = stats["in"].get(f"video-simulcast-{layer}", {})
        if (ssrc := ssrcs.get(f"ssrc-peer-sim-{layer}")) and (count := counts.get("packets", 0)):
            rtx = ssrcs.get(f"ssrc-peer-sim-{layer}-rtx")
            yield Stream(kind, "in", ssrc, count, count, rtx)
    if "ssrc" in ssrcs and sent:
        yield Stream(kind, "out", ssrcs["ssrc"], sent, sent, ssrcs.get("ssrc-rtx"))
