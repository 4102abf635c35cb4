import Media
package import Wire

/// A voice as one peer sends or hears it: a track of audio, or one of those mixed into it.
public struct SpeakingTrack: Hashable, Sendable {
  /// The transceiver's number.
  public var transceiver: UInt32
  /// Whether the peer hears it; else it sends it.
  public var isInbound: Bool
  /// The contributing source (CSRC, RFC 3550 section 5.1) of which a mixer told the level
  /// (RFC 6465); nil for the track itself.
  public var contributor: UInt32?

  /// Names a voice.
  public init(transceiver: UInt32, isInbound: Bool, contributor: UInt32? = nil) {
    self.transceiver = transceiver
    self.isInbound = isInbound
    self.contributor = contributor
  }
}

/// What is known of a speech, as the take keeps it: when it is long enough to be no click, with
/// every second that it lasts, and when it is over.
package struct SpeechRecord: Hashable, Sendable {
  package var track: SpeakingTrack
  /// `began`, `lasts` or `ended`.
  package var phase: String
  /// The first block, and the end of the last one that was loud enough.
  package var from: Instant
  package var to: Instant
  /// The blocks that were loud enough, and the sum of their levels in dBov.
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

/// A voice that is among the loudest, and the mean of its levels in dBov: 0 is full scale.
public struct SpeakerVolume: Hashable, Sendable {
  /// The voice.
  public var track: SpeakingTrack
  /// From -127, silence, to 0.
  public var decibels: Int

  /// Describes a voice.
  public init(track: SpeakingTrack, decibels: Int) {
    self.track = track
    self.decibels = decibels
  }
}

/// Which of the loudest voices are told, and how often.
public struct LoudestSettings: Hashable, Sendable, Codable {
  /// How many are told at most.
  public var count: Int
  /// The least mean level in dBov, -127 to 0.
  public var threshold: Int
  /// The time between reports, 250 to 5000 ms.
  public var intervalMilliseconds: Int

  /// Chooses; as media servers do where nothing is said.
  public init(count: Int = 1, threshold: Int = -80, intervalMilliseconds: Int = 1000) {
    self.count = count
    self.threshold = threshold
    self.intervalMilliseconds = intervalMilliseconds
  }
}
