"""The calls that are made: who is called, who offers, what goes which way."""

from dataclasses import dataclass

_MEDIA = ("audio", "video")


@dataclass(frozen=True)
class Abilities:
    """What a peer can do in any call."""

    # Its own loopback addresses are of use to it; the others need an interface beside loopback.
    uses_loopback: bool = False
    # It measures the sound and looks at the pictures that it receives.
    perceives: bool = True
    # It opens a data channel in its offers.
    data: bool = False


ABILITIES = {
    "chromium": Abilities(uses_loopback=True, data=True),
    "firefox": Abilities(data=True),
    "aiortc": Abilities(uses_loopback=True),
    "libwebrtc": Abilities(uses_loopback=True),
}


@dataclass(frozen=True)
class Call:
    """One way to call a peer."""

    peer: str
    # Who offers: `peer`, `retake`, or `page` for the page that Retake serves.
    offerer: str
    # The peer is told to wait for the handshake, so that Retake is the DTLS client.
    peer_waits: bool = False
    # What the peer sends to Retake, and what it receives.
    sends: tuple[str, ...] = _MEDIA
    receives: tuple[str, ...] = _MEDIA
    # The peer shows no address but an mDNS name, because it has no permission to use a camera.
    hides: bool = False

    @property
    def name(self):
        """A name for people and for folders."""
        words = [self.peer, "page" if self.offerer == "page" else f"{self.offerer}-offers"]
        words += ["waits"] * self.peer_waits + ["mdns"] * self.hides
        return "-".join(words)

    @property
    def abilities(self):
        """What its peer can do in any call."""
        return ABILITIES[self.peer]

    @property
    def uses_loopback(self):
        """Whether 127.0.0.1 is all that the two sides need."""
        # Without a permission Chromium leaves loopback out, whatever else it is told.
        return self.abilities.uses_loopback and not self.hides


CALLS = [
    Call("chromium", "peer"),
    Call("chromium", "retake"),
    Call("chromium", "retake", peer_waits=True),
    Call("chromium", "page"),
    Call("chromium", "peer", hides=True, sends=()),
    Call("firefox", "peer"),
    Call("firefox", "retake"),
    Call("firefox", "retake", peer_waits=True),
    Call("firefox", "page"),
    Call("aiortc", "peer"),
    Call("aiortc", "retake"),
    Call("aiortc", "retake", peer_waits=True),
    Call("libwebrtc", "peer"),
    Call("libwebrtc", "retake"),
    Call("libwebrtc", "retake", peer_waits=True),
]
