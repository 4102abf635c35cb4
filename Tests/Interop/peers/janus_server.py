"""A Debian Janus server with only what a call needs, and its two protocols."""

import asyncio
import itertools
from pathlib import Path

import aiohttp

import namespace
from processes import Child, ProcessError, free_ports

ROOM = 1234
# The mean level below which a room considers nobody to be talking, in dB below full scale.
QUIETEST = 60
_SECRET = "retake"
_START_SECONDS = 120
_REPLY_SECONDS = 60

# Written to a folder of the call; Debian's own configuration is not used.
_SETTINGS = {
    "janus.jcfg": """
general: {{
  configs_folder = "{configs}"
  plugins_folder = "{libraries}/plugins"
  transports_folder = "{libraries}/transports"
  events_folder = "{libraries}/events"
  loggers_folder = "{libraries}/loggers"
  debug_level = 4
  admin_secret = "{secret}"
}}
media: {{ ipv6 = false }}
nat: {{ {addresses} }}
plugins: {{ disable = "{unused_plugins}" }}
transports: {{ disable = "{unused_transports}" }}
events: {{ broadcast = false }}
""",
    "janus.transport.websockets.jcfg": """
general: {{ json = "compact", ws = true, ws_port = {port}, ws_ip = "127.0.0.1", wss = false }}
admin: {{ admin_ws = true, admin_ws_port = {admin_port}, admin_ws_ip = "127.0.0.1" }}
""",
    "janus.plugin.echotest.jcfg": "general: {{ }}\n",
    "janus.plugin.audiobridge.jcfg": """
general: {{ }}
room-{room}: {{ description = "Bridge", sampling_rate = 48000, audiolevel_event = true,
  audio_active_packets = 10, audio_level_average = {quietest} }}
""",
    "janus.plugin.videoroom.jcfg": """
general: {{ }}
room-{room}: {{ description = "Room", publishers = 6, bitrate = 512000, fir_freq = 10,
  audiocodec = "opus", videocodec = "vp8", audiolevel_event = true, audio_active_packets = 10,
  audio_level_average = {quietest} }}
""",
}


class JanusServer:
    """A running server."""

    def __init__(self, child, port, admin_port, command, log):
        self._child = child
        self._port = port
        self._admin_port = admin_port
        self._command = command
        self._log = log

    @property
    def address(self):
        """The address of its WebSocket."""
        return f"ws://127.0.0.1:{self._port}"

    @classmethod
    async def start(cls, plugin, folder):
        """Starts a server with one plugin; its files and its log are written to `folder`."""
        port, admin_port = free_ports(2)
        configs = folder / "janus"
        configs.mkdir()
        libraries = _libraries()
        values = {
            "configs": configs,
            "libraries": libraries,
            "secret": _SECRET,
            "room": ROOM,
            "quietest": QUIETEST,
            "port": port,
            "admin_port": admin_port,
            "addresses": _addresses(),
            "unused_plugins": _others(libraries / "plugins", plugin),
            "unused_transports": _others(libraries / "transports", "websockets"),
        }
        for name, text in _SETTINGS.items():
            (configs / name).write_text(text.format(**values), encoding="utf-8")
        command = [
            "janus", "--configs-folder", configs, "--config", configs / "janus.jcfg",
            "--disable-colors",
        ]
        log = folder / "janus.log"
        server = cls(await Child.start(command, log), port, admin_port, command, log)
        try:
            await (await server.session()).close()
        except BaseException:
            await server.end()
            raise
        return server

    async def session(self):
        """Opens a session over a separate socket."""
        socket_ = await self._connect(self._port, "janus-protocol")
        session = JanusSession(socket_, {})
        reply = await session.request({"janus": "create"})
        session.identity = {"session_id": reply["data"]["id"]}
        return session

    async def admin(self):
        """Opens a session of the administrator protocol, which reports the server's statistics."""
        socket_ = await self._connect(self._admin_port, "janus-admin-protocol")
        return JanusSession(socket_, {"admin_secret": _SECRET})

    async def wait_for_publisher(self):
        """Waits until a participant publishes in the room."""
        session = await self.session()
        try:
            handle = await session.attach("videoroom")
            request = {"request": "listparticipants", "room": ROOM}
            async with asyncio.timeout(_START_SECONDS):
                while True:
                    data = (await session.message(handle, request))["plugindata"]["data"]
                    if any(each.get("publisher") for each in data["participants"]):
                        return
                    await asyncio.sleep(0.05)
        finally:
            await session.close()

    async def restart(self, seconds):
        """Ends the server and restarts it after a while, without notifying anyone."""
        await self._child.end()
        await asyncio.sleep(seconds)
        self._child = await Child.start(self._command, self._log.with_suffix(".2.log"))

    async def end(self):
        """Ends the server."""
        await self._child.end()

    async def _connect(self, port, protocol):
        client = aiohttp.ClientSession()
        try:
            async with asyncio.timeout(_START_SECONDS):
                while self._child.status is None:
                    try:
                        address = f"ws://127.0.0.1:{port}"
                        socket_ = await client.ws_connect(address, protocols=[protocol])
                        return client, socket_
                    except aiohttp.ClientConnectionError:
                        await asyncio.sleep(0.05)
            raise ProcessError(f"janus ended with status {self._child.status}")
        except BaseException:
            await client.close()
            raise


class JanusSession:
    """Requests and their replies over one socket; other messages from Janus are kept."""

    def __init__(self, connection, identity):
        self._client, self._socket = connection
        self._numbers = itertools.count(1)
        self._waiting = {}
        # Members that are added to every request.
        self.identity = identity
        # Events of plugins and of the core, oldest first.
        self.told = []
        self._reader = asyncio.create_task(self._read())

    async def request(self, message):
        """Sends a request and returns the reply that completes it."""
        transaction = f"t{next(self._numbers)}"
        self._waiting[transaction] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({**message, **self.identity, "transaction": transaction})
        reply = await asyncio.wait_for(self._waiting[transaction], _REPLY_SECONDS)
        if reply["janus"] == "error":
            raise RuntimeError(f"janus: {reply['error']['reason']}")
        data = reply.get("plugindata", {}).get("data", {})
        if "error" in data:
            raise RuntimeError(f"janus: {data['error']}")
        return reply

    async def attach(self, plugin):
        """Attaches a handle of a plugin."""
        reply = await self.request({"janus": "attach", "plugin": f"janus.plugin.{plugin}"})
        return reply["data"]["id"]

    async def message(self, handle, body, kind=None, sdp=None):
        """Sends a message to a plugin, with a description if given; returns its event."""
        request = {"janus": "message", "handle_id": handle, "body": body}
        if sdp:
            request["jsep"] = {"type": kind, "sdp": sdp}
        return await self.request(request)

    async def keep(self):
        """Keeps the session alive, which would end a minute after its last request."""
        await self._socket.send_json({"janus": "keepalive", **self.identity, "transaction": "k"})

    async def close(self):
        """Closes the socket, which ends the session."""
        self._reader.cancel()
        await self._socket.close()
        await self._client.close()

    async def _read(self):
        async for message in self._socket:
            reply = message.json()
            # An acknowledgement only means that the reply will be an event.
            if reply["janus"] == "ack":
                continue
            waiting = self._waiting.pop(reply.get("transaction"), None)
            if waiting and not waiting.done():
                waiting.set_result(reply)
            else:
                self.told.append(reply)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ProcessError("janus closed the connection"))


def _libraries():
    for folder in sorted(Path("/usr/lib").glob("*/janus")):
        return folder
    raise FileNotFoundError("no janus in /usr/lib: run `make deps-interop`")


def _others(folder, wanted):
    names = {path.name for path in folder.glob("libjanus_*.so")}
    return ",".join(sorted(names - {f"libjanus_{wanted}.so"}))


def _addresses():
    """Returns the setting for the private network's address, if any: Janus uses no loopback."""
    address = namespace.address()
    return f'ice_enforce_list = "{address}"' if address else ""
