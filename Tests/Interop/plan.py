"""The planned calls: which peer, who offers, and what is sent in which direction."""

import os
from dataclasses import dataclass

from peers.talk import BRIEF

_MEDIA = ("audio", "video")
# The video codecs that Retake supports and does not offer by default.
_NAMED = {"av1"}


@dataclass(frozen=True)
class Abilities:
    """A peer's capabilities."""

    # Whether the peer can use loopback addresses; other peers need a real interface besides
    # loopback.
    uses_loopback: bool = False
    # The peer's measurements of received media: audio energy, video contrast.
    perceives: tuple[str, ...] = _MEDIA
    # Whether the peer echoes received media; if so, Retake must not echo it as well.
    echoes: bool = False
    # Whether the peer sends messages over data channels and checks the echoes.
    data: bool = False
    # The sizes of the data messages that the peer echoes, prefixing text messages with
    # `repeats_after`. Retake has to send first, so it opens the channel in its own offer.
    repeats: tuple[int, ...] = ()
    repeats_after: str = ""


ABILITIES = {
    "chromium": Abilities(uses_loopback=True, data=True),
    "firefox": Abilities(data=True),
    "aiortc": Abilities(uses_loopback=True, data=True),
    "libwebrtc": Abilities(uses_loopback=True, data=True),
    "gstreamer": Abilities(data=True),
    # The plugin does not echo empty messages, or text messages that reach 64 KiB with the prefix.
    "janus-echotest": Abilities(
        perceives=(), echoes=True, repeats=(1, 1_200, 16_384, 60_000),
        repeats_after="Janus EchoTest here! You wrote: ",
    ),
    "janus-videoroom": Abilities(perceives=("audio",)),
    "janus-audiobridge": Abilities(perceives=("audio",)),
}


@dataclass(frozen=True)
class Call:
    """A call with a peer, and its variations."""

    peer: str
    # The offerer: `peer`, `retake`, or `page` for the page that Retake serves.
    offerer: str
    # Whether the peer is made passive, which makes Retake the DTLS client.
    peer_waits: bool = False
    # The kinds of media that the peer sends to Retake, and the kinds that it receives.
    sends: tuple[str, ...] = _MEDIA
    receives: tuple[str, ...] = _MEDIA
    # Whether the peer has only mDNS candidates, because it has no camera permission.
    hides: bool = False
    # Whether Retake gathers no UDP candidates, in which case ICE uses TCP.
    tcp: bool = False
    # Whether Retake signals mDNS names instead of its addresses.
    names: bool = False
    # The peers that use only relayed candidates: `peer`, `retake`, or both.
    relays: tuple[str, ...] = ()
    # Whether nothing is bundled, in which case signaling removes the BUNDLE group from the
    # descriptions.
    apart: bool = False
    # The only video codec that the peer negotiates.
    codec: str = "vp8"
    # The only audio codec that the peer offers or answers. Chromium still sends the offer's
    # preferred codec, which Retake keeps receiving, and aiortc answers with every codec that both
    # support.
    audio: str = "opus"
    # Whether Retake sends encoded video from a file of that codec, unchanged.
    file: bool = False
    # Whether Retake sends video that it encodes itself, instead of what it receives.
    encodes: bool = False
    # Whether Retake offers its video in three simulcast layers, all of which must arrive.
    layers: bool = False
    # The highest DTLS version that Firefox may use; empty for its default.
    dtls: str = ""
    # Whether loopback is avoided because the other peer cannot use it.
    avoids_loopback: bool = False

    @property
    def name(self):
        """The name in the output and of the folder."""
        words = [self.peer, "page" if self.offerer == "page" else f"{self.offerer}-offers"]
        words += ["waits"] * self.peer_waits + ["mdns"] * self.hides
        words += ["tcp"] * self.tcp + ["names"] * self.names
        words += [f"{who}-relays" for who in self.relays]
        words += ["apart"] * self.apart + [self.codec] * (self.codec != "vp8")
        words += [self.audio] * (self.audio != "opus")
        words += ["file"] * self.file + ["layers"] * self.layers + ["encoded"] * self.encodes
        return "-".join(words)

    @property
    def options(self):
        """The command-line options that Retake needs for the call."""
        options = ["--ice-tcp", "only"] * self.tcp + ["--ice-names"] * self.names
        options += ["--bundle-policy", "max-compat"] * self.apart
        options += ["--simulcast"] * self.layers
        # Browsers send the remote peer's preferred codec, whatever they answer themselves.
        prefers = self.codec != "vp8" and self.offerer == "retake" and not self.file
        # Retake uses some codecs only on request.
        prefers = prefers or self.codec in _NAMED
        return options + ["--video-codec", self.codec] * prefers

    @property
    def needs_private_network(self):
        """Whether the call needs a private network, to contain mDNS messages or a server."""
        return self.hides or self.names or bool(self.relays)

    @property
    def remarks(self):
        """The call's variations, for the table."""
        remarks = ["mDNS name"] * self.hides + ["names"] * self.names + ["TCP"] * self.tcp
        remarks += ["not bundled"] * self.apart + ["file"] * self.file
        remarks += ["simulcast"] * self.layers + ["encoded"] * self.encodes
        remarks += [self.audio.upper()] * (self.audio != "opus")
        remarks += [f"{who} relays" for who in self.relays]
        return remarks + ["receives"] * (not self.sends) + ["sends"] * (not self.receives)

    @property
    def abilities(self):
        return ABILITIES[self.peer]

    @property
    def talks(self):
        """Whether the peer sends messages over data channels: with Retake's page, only the page
        does."""
        return self.abilities.data and self.offerer != "page"

    @property
    def says(self):
        """The sizes of the messages that Retake sends over its channel, to a peer that echoes."""
        return self.abilities.repeats if self.offerer == "retake" else ()

    @property
    def says_channels(self):
        """How many further channels Retake opens and closes, each for one message."""
        if not self.says:
            return 0
        return 3 if os.environ.get(BRIEF) else 100

    @property
    def echoes(self):
        """Whether Retake echoes received media, instead of sending a test pattern and a tone."""
        return set(self.receives) <= set(self.sends) and not (
            self.abilities.echoes or self.file or self.encodes
        )

    @property
    def uses_loopback(self):
        """Whether both peers can use 127.0.0.1."""
        # Without camera permission Chromium omits loopback, whatever its flags.
        avoids = self.avoids_loopback or self.needs_private_network
        return self.abilities.uses_loopback and not avoids


CALLS = [
    Call("chromium", "peer"),
    Call("chromium", "retake"),
    Call("chromium", "retake", peer_waits=True),
    Call("chromium", "page"),
    Call("chromium", "peer", codec="vp9"),
    Call("chromium", "retake", codec="vp9"),
    Call("chromium", "peer", codec="h264"),
    Call("chromium", "retake", codec="h264"),
    Call("chromium", "retake", codec="h264", file=True),
    Call("chromium", "peer", codec="h264", encodes=True),
    Call("chromium", "peer", codec="av1"),
    Call("chromium", "retake", codec="av1"),
    Call("chromium", "peer", audio="pcma"),
    Call("chromium", "retake", audio="pcmu"),
    Call("chromium", "peer", hides=True, sends=()),
    Call("chromium", "peer", names=True),
    Call("chromium", "peer", tcp=True),
    Call("chromium", "retake", tcp=True),
    Call("chromium", "peer", relays=("peer",)),
    Call("chromium", "retake", relays=("peer",)),
    Call("chromium", "peer", relays=("retake",)),
    Call("chromium", "retake", relays=("retake",)),
    Call("chromium", "retake", relays=("peer", "retake")),
    Call("chromium", "peer", apart=True),
    Call("chromium", "retake", apart=True),
    Call("firefox", "peer"),
    Call("firefox", "retake"),
    Call("firefox", "retake", peer_waits=True),
    Call("firefox", "page"),
    Call("firefox", "peer", codec="vp9"),
    Call("aiortc", "peer"),
    Call("aiortc", "retake"),
    Call("aiortc", "retake", peer_waits=True),
    Call("aiortc", "peer", codec="h264"),
    Call("aiortc", "retake", codec="h264", file=True),
    Call("aiortc", "peer", audio="pcmu"),
    Call("aiortc", "retake", codec="h264", encodes=True),
    Call("aiortc", "peer", apart=True),
    Call("aiortc", "retake", apart=True),
    Call("libwebrtc", "peer"),
    Call("libwebrtc", "retake"),
    Call("libwebrtc", "retake", peer_waits=True),
    Call("libwebrtc", "peer", tcp=True),
    Call("gstreamer", "peer"),
    Call("gstreamer", "retake"),
    Call("gstreamer", "retake", peer_waits=True),
    Call("gstreamer", "peer", codec="vp9"),
    Call("gstreamer", "peer", codec="h264"),
    Call("gstreamer", "peer", codec="h264", encodes=True),
    Call("janus-echotest", "retake"),
    Call("janus-echotest", "retake", peer_waits=True),
    Call("janus-echotest", "retake", layers=True),
    Call("janus-videoroom", "retake", sends=()),
    Call("janus-videoroom", "peer", receives=()),
    Call("janus-audiobridge", "retake", sends=("audio",), receives=("audio",)),
    Call("janus-audiobridge", "peer", sends=("audio",), receives=("audio",)),
]
