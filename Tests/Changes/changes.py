"""The deliberate one-line changes to the stack that the captures have to detect."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """A line of the stack and its replacement; the file is named without its folder."""

    name: str
    file: str
    before: str
    after: str
    # The layers in which the change may show first in a capture: the report has to name one of
    # them.
    layers: tuple[str, ...]

    @property
    def switched(self):
        """Returns the line with both values, selected when the program runs."""
        head, separator, old = self.before.rpartition(" = ")
        if separator:
            new = self.after.removeprefix(head + separator)
        else:
            indent = len(self.before) - len(self.before.lstrip())
            head, old, new = self.before[:indent], self.before.lstrip(), self.after.lstrip()
        # A switch's case, such as `case .host: 126`, keeps its pattern.
        pattern, colon, value = old.partition(": ")
        if old.startswith("case ") and colon:
            head, old, new = head + pattern + colon, value, new.partition(": ")[2]
        return f'{head}{separator}isChanged("{self.name}") ? {new} : {old}'


CHANGES = [
    Change(
        "DTLS retransmission timer", "DTLSTransport.swift",
        "  static let initial = Interval.milliseconds(100)",
        "  static let initial = Interval.milliseconds(130)", ("timer",)),
    Change(
        "ICE pacing", "ICESettings.swift",
        "  static let paceSmall = Interval.milliseconds(20)",
        "  static let paceSmall = Interval.milliseconds(25)", ("timer",)),
    Change(
        "consent interval", "ICESettings.swift",
        "  static let consentIntervalMinimum = Interval.seconds(4)",
        "  static let consentIntervalMinimum = Interval.seconds(1)", ("timer", "ice")),
    Change(
        "candidate priority", "ICECandidate.swift",
        "    case .host: isTCP ? 90 : 126", "    case .host: isTCP ? 90 : 125", ("ice",)),
    Change(
        "patience before a NACK", "FrameReception.swift",
        "  static let reorderedTime = Interval.milliseconds(10)",
        "  static let reorderedTime = Interval.milliseconds(12)", ("timer",)),
    Change(
        "reordering before a NACK", "FrameReception.swift",
        "  static let reorderedPackets: Int64 = 3", "  static let reorderedPackets: Int64 = 1",
        ("rtcp", "rtp", "timer")),
    Change(
        "NACK limit", "FrameReception.swift",
        "  static let maximumTries = 10", "  static let maximumTries = 1",
        ("rtcp", "rtp", "timer")),
    Change(
        "transport feedback interval", "ArrivalFeedback.swift",
        "  private static let interval = Interval.milliseconds(100)",
        "  private static let interval = Interval.milliseconds(120)", ("timer",)),
    Change(
        "pacing of video", "RateControl.swift",
        "  static let burst = Interval.milliseconds(5)",
        "  static let burst = Interval.milliseconds(7)", ("timer", "rtp")),
    Change(
        "largest packet", "SendStreams.swift",
        "  private static let largestPacket = 1200", "  private static let largestPacket = 1100",
        ("rtp",)),
    Change(
        "key frame request spacing", "FrameReception.swift",
        "  private static let leastSpacing = Interval.milliseconds(300)",
        "  private static let leastSpacing = Interval.milliseconds(20)", ("timer", "rtcp")),
    Change(
        "jitter target of audio", "AudioPlayout.swift",
        "  package static let leastDelay = Interval.milliseconds(40)",
        "  package static let leastDelay = Interval.milliseconds(60)", ("timer", "media")),
    Change(
        "jitter target of video frames", "VideoPlayout.swift",
        "  package static let leastDelay = Interval.milliseconds(10)",
        "  package static let leastDelay = Interval.milliseconds(15)", ("timer", "media")),
    Change(
        "Opus complexity", "Codecs.swift",
        "  package var complexity: Int32 = 5", "  package var complexity: Int32 = 0",
        ("media",)),
]
