"""A coturn server, for calls whose media uses a relay."""

import namespace
from processes import Child, free_ports

_START_SECONDS = 120


class Coturn:
    """A running TURN server with one user, on the private network's address."""

    username = "retake"
    password = "interop"

    def __init__(self, child, port, transport):
        self._child = child
        self._transport = transport
        # Host and port, as in TURN URIs.
        self.place = f"{namespace.address()}:{port}"

    @classmethod
    async def start(cls, folder, transport="udp"):
        """Starts a server with its files and its log in `folder`; clients reach it over
        `transport`."""
        (port,) = free_ports(1)
        home = folder / "coturn"
        home.mkdir()
        address = namespace.address()
        child = await Child.start(
            ["turnserver", "-n", f"--listening-ip={address}", f"--relay-ip={address}",
             f"--listening-port={port}", f"--user={cls.username}:{cls.password}",
             "--realm=interop.test", "--lt-cred-mech", "--fingerprint", "--no-cli", "--no-tls",
             "--no-dtls", "--log-file=stdout", "--simple-log", f"--userdb={home}/users",
             f"--pidfile={home}/pid"],
            folder / "coturn.log",
        )
        try:
            await child.line(r"Total General servers", _START_SECONDS)
        except BaseException:
            await child.end()
            raise
        return cls(child, port, transport)

    @property
    def w3c(self):
        """A W3C RTCConfiguration that allows only this relay."""
        server = {
            "urls": f"turn:{self.place}?transport={self._transport}",
            "username": self.username,
            "credential": self.password,
        }
        return {"iceServers": [server], "iceTransportPolicy": "relay"}

    @property
    def options(self):
        """The equivalent options for Retake's command line."""
        uri = f"turn:{self.username}:{self.password}@{self.place}"
        return ["--ice-server", uri, "--ice-policy", "relay"]

    async def end(self):
        """Ends the server."""
        await self._child.end()
