"""The kinds of faults that calls between real peers can have, and the kinds of calls that are good.

Each kind says which findings name it, which end may have it, and how it is made: on the path (in
`faulty_path.py`), in the descriptions, by a script in a browser's page, or by the peer's process.
"""

import random
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """How a fault is made and which findings name it."""

    # The ids of the findings that name the fault; a media fault belongs to the peer that sends.
    accepted: frozenset
    # The ends that can have the fault: `any`, `peer` (any but Retake), `page` (browsers), or
    # `chromium`, because Firefox renders no audio without a device.
    by: str = "any"
    # Who can detect the fault: `any`, `receiver` of the culprit's packets, `end` (Retake takes
    # part), or `sender`.
    sight: str = "any"
    seconds: tuple = (7, 12)
    # When the fault begins: during the call, or before it connects.
    begins: str = "during"
    # Whether the call connects in spite of the fault, and whether video arrives at both ends at
    # first.
    connects: bool = True
    # The minimum number of affected packets; if there are fewer, another plan is drawn and the call
    # is made again.
    least: int = 0
    # Scripts for the culprit's page that begin and end the fault.
    script: str = ""
    undo: str = ""
    # Whether the script's change is negotiated.
    negotiates: bool = False
    # Whether the fault itself stops a process; if so, a stall does not mean that the machine is
    # starved.
    stalls: bool = False


def _kind(accepted, **options):
    return Kind(frozenset(accepted.split()), **options)


_LOSS = "loss loss-at-peer loss-burst"
_CAMERA = """
    const canvas = Object.assign(document.createElement("canvas"), { width: 640, height: 480 });
    const context = canvas.getContext("2d");
    const draw = () => {
      context.fillStyle = "black";
      context.fillRect(0, 0, 640, 480);
      if (SHOWS) {
        for (let i = 0; i < 40; i++) {
          context.fillStyle = `rgb(${i * 6},${255 - i * 5},${i * 53 % 255})`;
          context.fillRect(i * 16, (i * 97) % 400, 60, 60);
        }
      }
    };
    setInterval(draw, 40);
    sender("video").replaceTrack(canvas.captureStream(25).getVideoTracks()[0]);
"""
# A voice-like source: syllables of a buzz with pauses between phrases, at a peak of VOLUME.
_VOICE = """
    const context = new AudioContext({ sampleRate: 48000 });
    const sound = context.createMediaStreamDestination();
    const length = 48000 * 6;
    const buffer = context.createBuffer(1, length, 48000);
    const samples = buffer.getChannelData(0);
    for (let i = 0; i < length; i++) {
      const t = i / 48000;
      const speaks = t % 3 < 2 ? Math.abs(Math.sin(Math.PI * 4 * t)) : 0.002;
      const pitch = 130 + 15 * Math.sin(2 * t);
      let wave = 0;
      for (let k = 1; k < 12; k++) wave += Math.sin(2 * Math.PI * pitch * k * t) / k;
      samples[i] = VOLUME * speaks * wave / 2;
    }
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.loop = true;
    source.connect(sound);
    source.start();
    context.resume();
    window.kept = [context, source, sound];
    sender("audio").replaceTrack(sound.stream.getAudioTracks()[0]);
"""
_SILENCE = """
    const context = new AudioContext();
    const sound = context.createMediaStreamDestination();
    // Without a source that runs there are no samples at all.
    const source = context.createConstantSource();
    const nothing = context.createGain();
    nothing.gain.value = 0;
    source.connect(nothing).connect(sound);
    source.start();
    context.resume();
    sender("audio").replaceTrack(sound.stream.getAudioTracks()[0]);
"""
_LIMIT = """
    const parameters = sender("video").getParameters();
    parameters.encodings[0].maxBitrate = 30000 + Math.round(50000 * (1 - BAD));
    sender("video").setParameters(parameters);
"""
_UNLIMIT = """
    const parameters = sender("video").getParameters();
    delete parameters.encodings[0].maxBitrate;
    sender("video").setParameters(parameters);
"""
_TRANSFER = """
    const channel = call.connections[0].createDataChannel("file");
    channel.binaryType = "arraybuffer";
    const block = new Uint8Array(8192);
    channel.onopen = () => setInterval(() => {
      if (channel.readyState === "open" && channel.bufferedAmount < 200000) channel.send(block);
    }, SPACING);
"""

KINDS = {
    # The path.
    "loss": _kind(_LOSS, least=20),
    "videoLoss": _kind(_LOSS, least=20),
    "lossBurst": _kind(_LOSS, seconds=(0.3, 0.9), least=10),
    "shortOutages": _kind(_LOSS, seconds=(10, 16), least=20),
    "bottleneck": _kind("standing-queue"),
    "bottleneckTransfer": _kind("standing-queue", by="page"),
    "longDelay": _kind("high-round-trip path-became-longer", least=50),
    "delayOneWay": _kind("high-round-trip path-became-longer", least=50),
    "jitter": _kind("high-jitter", sight="receiver", least=150),
    "reordering": _kind("reordering", sight="receiver", least=20),
    "duplicates": _kind("duplicates", sight="receiver", least=40),
    "deadPath": _kind("path-dead", seconds=(4, 9), least=50),
    "blockedOneWay": _kind(
        "path-dead one-way-media sent-not-arriving consent-lost consent-nearly-lost",
        seconds=(10, 20), least=50),
    "mediaDeadOneWay": _kind(
        "one-way-media stream-gap sent-not-arriving", seconds=(4, 9), least=50),
    "videoDeadOneWay": _kind(
        "one-way-media stream-gap sent-not-arriving", seconds=(5, 10), least=50),
    "audioDeadOneWay": _kind(
        "one-way-media stream-gap sent-not-arriving", seconds=(5, 10), least=50),
    "repairsLost": _kind("repairs-missing no-repair", sight="receiver", least=5),
    "rtcpLost": _kind("rtcp-silence", seconds=(10, 16), sight="receiver", least=5),
    "largePacketsLost": _kind("large-packets-lost", seconds=(8, 12), least=20),
    "corruptPackets": _kind("srtp-refused", sight="receiver", least=20),
    "consentLost": _kind("consent-lost consent-nearly-lost", seconds=(20, 36), least=4),
    "addressChanges": _kind("address-changed", seconds=(10, 14), sight="receiver"),
    "dataBehindLoss": _kind("data-behind-loss", by="page", least=20),
    "slowHandshake": _kind("slow-handshake", begins="before", seconds=(2, 6)),
    "deadHandshake": _kind(
        "dtls-failed slow-handshake", begins="before", seconds=(20, 25), connects=False),
    # Negotiation and relays.
    "wrongFingerprint": _kind(
        "fingerprint-mismatch dtls-failed", begins="before", connects=False),
    "wrongPassword": _kind("ice-password-wrong", begins="before", connects=False),
    "noCandidates": _kind("no-remote-candidates", sight="end", begins="before", connects=False),
    "wrongCandidates": _kind("checks-unanswered", sight="end", begins="before", connects=False),
    "rejectedSection": _kind(
        "section-rejected refused-section direction-refused", by="page", begins="before",
        connects=False),
    "noRepairs": _kind("no-repair", begins="before", least=15),
    "bandwidthLine": _kind("encoder-capped video-held-down", by="page", begins="before"),
    "inactiveDirection": _kind(
        "media-switched-off direction-refused",
        by="page", negotiates=True,
        script="""transceiver("video").direction = "inactive";"""),
    "recvonlyDirection": _kind(
        "media-switched-off direction-refused",
        by="page", negotiates=True,
        script="""transceiver("video").direction = "recvonly";"""),
    "codecChanges": _kind(
        "codec-changed payload-type-changed", by="page", negotiates=True,
        script="""
            const { codecs } = RTCRtpReceiver.getCapabilities("video");
            const first = (one) => one.mimeType.toLowerCase() === "video/vp9" ? 0 : 1;
            transceiver("video").setCodecPreferences(codecs.sort((a, b) => first(a) - first(b)));
        """),
    "turnRefused": _kind("turn-refused turn-refused-seen", sight="end", connects=False),
    "turnUnreachable": _kind("turn-unreachable", sight="end", connects=False),
    # Sources and encoders.
    "silentMicrophone": _kind(
        "microphone-without-signal silent-audio", by="page", sight="end", seconds=(20, 20),
        script=_SILENCE, begins="before"),
    "quietMicrophone": _kind(
        "microphone-quiet", by="chromium", sight="end", seconds=(24, 28),
        script=_VOICE.replace("VOLUME", "(0.0025 + 0.003 * (1 - BAD))"), begins="before"),
    "clippedMicrophone": _kind(
        "clipped-microphone", by="chromium", sight="end", seconds=(14, 18),
        script=_VOICE.replace("VOLUME", "(6 + 14 * BAD)")),
    "mutedAudio": _kind(
        "audio-muted silent-audio microphone-without-signal", by="page", sight="end",
        seconds=(10, 14), script="""sender("audio").track.enabled = false;""",
        undo="""sender("audio").track.enabled = true;"""),
    # Chromium's black pictures differ in their lowest bits; a receiver sees no change in them.
    "mutedVideo": _kind(
        "camera-black video-paused picture-still", by="page", sight="end",
        script="""sender("video").track.enabled = false;""",
        undo="""sender("video").track.enabled = true;"""),
    "cameraStops": _kind(
        "camera-stopped video-paused video-stopped encoder-stopped", by="page",
        script="""sender("video").track.stop();"""),
    "trackRemoved": _kind(
        "camera-stopped video-paused video-stopped encoder-stopped", by="page",
        script="""sender("video").replaceTrack(null);"""),
    "microphoneStops": _kind(
        "audio-paused audio-muted silent-audio microphone-without-signal", by="page", sight="end",
        seconds=(12, 16), script="""sender("audio").track.stop();"""),
    "cameraBlack": _kind(
        "camera-black", by="page", sight="end", script=_CAMERA.replace("SHOWS", "false")),
    # A browser's encoder keeps refining a repeated picture, so its frames are not equal.
    "cameraRepeats": _kind(
        "camera-repeats picture-still", by="page", sight="end",
        script=_CAMERA.replace("SHOWS", "true")),
    "maxBitrate": _kind(
        "encoder-capped video-held-down", by="page", script=_LIMIT, undo=_UNLIMIT,
        seconds=(9, 13)),
    # Processes.
    "peerStalls": _kind(
        "peer-starved", by="peer", sight="receiver", seconds=(1.5, 4), stalls=True),
    "slowProcessor": _kind(
        "media-in-bursts peer-starved encoder-limited-by-processor", by="peer", sight="receiver",
        stalls=True),
    "peerKilled": _kind(
        "path-dead consent-lost disconnected", by="peer", sight="receiver", seconds=(14, 20)),
}

GOOD = {
    "plain": Kind(frozenset()),
    "mutedStart": Kind(
        frozenset(), by="page", begins="before",
        script="""for (const each of call.connections[0].getSenders()) {
            if (each.track?.kind === "audio") each.track.enabled = false; }"""),
    "dtx": Kind(
        frozenset(), by="chromium", begins="before", script=_VOICE.replace("VOLUME", "0.4")),
    "stillScreen": Kind(
        frozenset(), by="page",
        script="""
            const canvas = Object.assign(
              document.createElement("canvas"), { width: 1280, height: 720 });
            const context = canvas.getContext("2d");
            context.fillStyle = "white";
            context.fillRect(0, 0, 1280, 720);
            context.fillStyle = "black";
            context.font = "20px monospace";
            for (let i = 0; i < 30; i++) context.fillText("let line = " + i * 7919, 20, 24 * i);
            // Frames come only when something is drawn.
            const track = canvas.captureStream(25).getVideoTracks()[0];
            track.contentHint = "detail";
            sender("video").replaceTrack(track);
            for (const at of [300, 3000, 8000]) {
              setTimeout(() => context.fillText("typed " + at, 400, at / 20), at);
            }
        """),
    "transfer": Kind(
        frozenset(), by="page", script=_TRANSFER.replace("SPACING", "60")),
    "renegotiation": Kind(frozenset(), by="page", negotiates=True, script="call.addVideo();"),
    "restart": Kind(
        frozenset(), by="page", negotiates=True, script="call.connections[0].restartIce();"),
    "hold": Kind(
        frozenset(), by="page", negotiates=True,
        script="""for (const each of call.connections[0].getTransceivers()) {
            if (each.currentDirection !== "stopped") each.direction = "sendonly"; }"""),
}

_HELPERS = """
    const transceiver = (kind) => call.connections[0].getTransceivers()
      .find((one) => one.receiver.track.kind === kind);
    const sender = (kind) => transceiver(kind).sender;
"""
TRANSFERS = {
    "dataBehindLoss": "20", "bottleneckTransfer": "40",
}


def script(text, plan):
    """Returns a script for the page, with the plan's severity."""
    return _HELPERS + text.replace("BAD", f"{plan.severity:.3f}")


def transfer(kind):
    """Returns the script that sends over a data channel for a kind of fault, if it needs one."""
    return _TRANSFER.replace("SPACING", TRANSFERS[kind]) if kind in TRANSFERS else ""


def payload_types(sdp, kind, repairs=False):
    """Returns the payload types of a kind of media: those of its codecs, or of retransmissions."""
    found = set()
    for section in re.split(r"(?m)^m=", sdp)[1:]:
        if section.startswith(kind):
            for number, codec in re.findall(r"(?m)^a=rtpmap:(\d+) ([^/\s]+)/", section):
                if (codec.lower() == "rtx") == repairs:
                    found.add(int(number))
    return found


def described(plan, sdp, end):
    """Returns an end's description as the other end receives it, with the plan's fault."""
    if plan.kind == "dtx":
        return re.sub(r"(?m)^(a=fmtp:\d+ .*useinbandfec=1[^\r\n]*)", r"\1;usedtx=1", sdp)
    if plan.kind == "noRepairs":
        # Removed from both descriptions, so that no end offers repairs that the other lacks.
        rtx = payload_types(sdp, "video", repairs=True)
        lines = []
        for line in sdp.splitlines():
            if re.match(r"a=rtcp-fb:\S+ nack\s*$|a=ssrc-group:FID", line):
                continue
            if any(re.match(rf"a=(rtpmap|fmtp|rtcp-fb):{each}\b", line) for each in rtx):
                continue
            if line.startswith("m=video"):
                words = line.split()
                line = " ".join(
                    words[:3] + [one for one in words[3:] if int(one) not in rtx])
            lines.append(line)
        return "\r\n".join(lines) + "\r\n"
    if plan.kind == "bandwidthLine":
        # The end that receives the line has to obey it.
        if end == plan.culprit:
            return sdp
        rate = 50 + round(110 * (1 - plan.severity))
        head, *sections = re.split(r"(?m)^(?=m=)", sdp)
        for place, section in enumerate(sections):
            if section.startswith("m=video"):
                section = re.sub(r"(?m)^b=.*\r?\n", "", section)
                sections[place] = re.sub(
                    r"(?m)^(c=.*\r?\n)", rf"\1b=AS:{rate}\r\nb=TIAS:{rate * 1000}\r\n", section,
                    count=1)
        return head + "".join(sections)
    if plan.kind == "noCandidates":
        # Removed from both descriptions: an end that knew the other's candidates would reach the
        # other end with its checks.
        return re.sub(r"(?m)^a=(candidate:.*|end-of-candidates)\r?\n", "", sdp)
    if plan.kind == "wrongCandidates":
        # Nothing listens at that port.
        return re.sub(r"(?mi)^(a=candidate:\S+ \d udp \d+ \S+) \d+", r"\1 9", sdp)
    if end != plan.culprit:
        return sdp
    match plan.kind:
        case "wrongFingerprint":
            chance = random.Random(plan.seed)
            def other(match):
                return match[1] + ":".join(
                    f"{chance.randrange(256):02X}" for _ in match[2].split(":"))
            return re.sub(r"(?m)^(a=fingerprint:\S+ )([0-9A-Fa-f:]+)", other, sdp)
        case "wrongPassword":
            return re.sub(
                r"(?m)^a=ice-pwd:(.*?)(\r?)$",
                lambda match: f"a=ice-pwd:{match[1][::-1]}{match[2]}", sdp)
    return sdp
