import Media
package import Wire

/// A voice that a peer sends or receives: an audio track, or one mixed into it.
public struct SpeakingTrack: Hashable, Sendable {
  /// The transceiver's number.
  public var transceiver: UInt32
  /// Whether it is received rather than sent.
  public var isInbound: Bool
  /// The contributing source (CSRC, RFC 3550 section 5.1) whose level a mixer reported (RFC 6465);
  /// nil for the track itself.
  public var contributor: UInt32?

  /// Creates the name of a voice.
  public init(transceiver: UInt32, isInbound: Bool, contributor: UInt32? = nil) {
    self.transceiver = transceiver
    self.isInbound = isInbound
    self.contributor = contributor
  }
}

/// A speech in the take, recorded once it is too long for a click, every second while it lasts, and
/// when it is over.
package struct SpeechRecord: Hashable, Sendable {
  package var track: SpeakingTrack
  /// `began`, `lasts` or `ended`.
  package var phase: String
  /// The start of the first block and the end of the last one above the gate.
  package var from: Instant
  package var to: Instant
  /// The number of blocks above the gate, and the sum of their levels in dBov.
  package var blocks: Int
  package var decibels: Int

  package init(
    track: SpeakingTrack, phase: String, from: Instant, to: Instant, blocks: Int, decibels: Int
  ) {
    self.track = track
    self.phase = phase
    self.from = from
    self.to = to
    self.blocks = blocks
    self.decibels = decibels
  }
}

/// One of the loudest voices with its mean level in dBov: 0 is full scale.
public struct SpeakerVolume: Hashable, Sendable {
  /// The voice.
  public var track: SpeakingTrack
  /// From -127, silence, to 0.
  public var decibels: Int

  /// Creates the volume of a voice.
  public init(track: SpeakingTrack, decibels: Int) {
    self.track = track
    self.decibels = decibels
  }
}

/// Which of the loudest voices are reported, and how often.
public struct LoudestSettings: Hashable, Sendable, Codable {
  /// The most voices in a report.
  public var count: Int
  /// The minimum mean level in dBov, -127 to 0.
  public var threshold: Int
  /// The time between reports, 250 to 5000 ms.
  public var intervalMilliseconds: Int

  /// Creates settings; the defaults are those of media servers.
  public init(count: Int = 1, threshold: Int = -80, intervalMilliseconds: Int = 1000) {
    self.count = count
    self.threshold = threshold
    self.intervalMilliseconds = intervalMilliseconds
  }
}
