"""The calls that are made: who is called, who offers, what goes which way."""

import os
from dataclasses import dataclass

from peers.talk import BRIEF

_MEDIA = ("audio", "video")
# The codecs of video frames that Retake knows and does not offer by itself.
_NAMED = {"av1"}


@dataclass(frozen=True)
class Abilities:
    """What a peer can do in any call."""

    # Its own loopback addresses are of use to it; the others need an interface beside loopback.
    uses_loopback: bool = False
    # What it measures of that which it receives: the loudness, the contrast of video frames.
    perceives: tuple[str, ...] = _MEDIA
    # It sends back what it receives, so that Retake must not do so too.
    echoes: bool = False
    # It talks over data channels and tells what comes back.
    data: bool = False
    # It sends back what is said over a data channel: messages of these sizes, with these words
    # before each text. Retake has to begin then, so the channel is that of its own offer.
    repeats: tuple[int, ...] = ()
    repeats_after: str = ""


ABILITIES = {
    "chromium": Abilities(uses_loopback=True, data=True),
    "firefox": Abilities(data=True),
    "aiortc": Abilities(uses_loopback=True, data=True),
    "libwebrtc": Abilities(uses_loopback=True, data=True),
    "gstreamer": Abilities(data=True),
    # It repeats no empty message, and no text that becomes 64 KiB by its words.
    "janus-echotest": Abilities(
        perceives=(), echoes=True, repeats=(1, 1_200, 16_384, 60_000),
        repeats_after="Janus EchoTest here! You wrote: ",
    ),
    "janus-videoroom": Abilities(perceives=("audio",)),
    "janus-audiobridge": Abilities(perceives=("audio",)),
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
    # Retake has no UDP, so that a connection has to carry the call.
    tcp: bool = False
    # Retake shows names in the place of its addresses.
    names: bool = False
    # Who shows no address but one of a TURN server: `peer`, `retake`, or both.
    relays: tuple[str, ...] = ()
    # The sections are not bundled: signaling leaves the groups out of the descriptions.
    apart: bool = False
    # The only codec of video frames that the peer takes part with.
    codec: str = "vp8"
    # The only codec of audio that the peer offers, or answers: Chromium sends what the offer likes
    # best all the same, which Retake goes on receiving, and aiortc answers all that both know.
    audio: str = "opus"
    # Retake sends video frames from a file of that codec, as they are.
    file: bool = False
    # Retake sends video frames that it encodes itself, not what it receives.
    encodes: bool = False
    # Retake offers its video frames in three layers, and all of them are to arrive.
    layers: bool = False
    # The newest version of DTLS that a Firefox speaks; empty for its own choice.
    dtls: str = ""
    # The other end has no use for loopback addresses, whatever the peer itself could do with them.
    avoids_loopback: bool = False

    @property
    def name(self):
        """A name for people and for folders."""
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
        """What the call needs on Retake's command line."""
        options = ["--ice-tcp", "only"] * self.tcp + ["--ice-names"] * self.names
        options += ["--bundle-policy", "max-compat"] * self.apart
        options += ["--simulcast"] * self.layers
        # Browsers send what the other side likes best, whatever they answer themselves.
        prefers = self.codec != "vp8" and self.offerer == "retake" and not self.file
        # And some codecs Retake takes part with only when it is told to.
        prefers = prefers or self.codec in _NAMED
        return options + ["--video-codec", self.codec] * prefers

    @property
    def needs_private_network(self):
        """Whether it can be made nowhere else: mDNS messages and servers stay inside."""
        return self.hides or self.names or bool(self.relays)

    @property
    def remarks(self):
        """What is special about it, for people."""
        remarks = ["mDNS name"] * self.hides + ["names"] * self.names + ["TCP"] * self.tcp
        remarks += ["not bundled"] * self.apart + ["file"] * self.file
        remarks += ["simulcast"] * self.layers + ["encoded"] * self.encodes
        remarks += [self.audio.upper()] * (self.audio != "opus")
        remarks += [f"{who} relays" for who in self.relays]
        return remarks + ["receives"] * (not self.sends) + ["sends"] * (not self.receives)

    @property
    def abilities(self):
        """What its peer can do in any call."""
        return ABILITIES[self.peer]

    @property
    def talks(self):
        """Whether there is a conversation over data channels: Retake's page says little there."""
        return self.abilities.data and self.offerer != "page"

    @property
    def says(self):
        """The sizes of the messages that Retake says over its channel, for a peer that repeats."""
        return self.abilities.repeats if self.offerer == "retake" else ()

    @property
    def says_channels(self):
        """How many more channels Retake opens and closes then, each for a message."""
        if not self.says:
            return 0
        return 3 if os.environ.get(BRIEF) else 100

    @property
    def echoes(self):
        """Whether Retake sends back what it receives, instead of a test video frame and a tone."""
        return set(self.receives) <= set(self.sends) and not (
            self.abilities.echoes or self.file or self.encodes
        )

    @property
    def uses_loopback(self):
        """Whether 127.0.0.1 is all that the two sides need."""
        # Without a permission Chromium leaves loopback out, whatever else it is told.
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
