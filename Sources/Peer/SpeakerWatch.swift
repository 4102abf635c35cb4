import Media
import Speakers
import Wire

/// A track of sound as one peer sends or hears it.
public struct SpeakingTrack: Hashable, Sendable {
  /// The transceiver's number.
  public var transceiver: UInt32
  /// Whether the peer hears it; else it sends it.
  public var isInbound: Bool

  /// Names a track.
  public init(transceiver: UInt32, isInbound: Bool) {
    self.transceiver = transceiver
    self.isInbound = isInbound
  }
}

/// Says who dominates among the tracks that a peer sends and hears.
///
/// It looks only when a block of sound comes, so it needs no deadline: a change is told with the
/// next block of any track, 20 ms late at most while somebody speaks.
struct SpeakerWatch {
  private var machine = DominantSpeaker(settings: SpeakerWatch.settings)
  private var outbox = Outbox<DominantSpeaker.Output>()

  /// A second of silence makes nobody dominant.
  private static let settings: DominantSpeaker.Settings = {
    var settings = DominantSpeaker.Settings()
    settings.silenceTimeout = .seconds(1)
    return settings
  }()

  /// Takes the level of a track's next block; gives the changes of who dominates.
  mutating func hear(_ level: SoundLevel, of track: SpeakingTrack, at now: Instant)
    -> [SpeakingTrack?]
  {
    step(.level(level, of: SpeakerWatch.number(track)), at: now)
  }

  /// Forgets a track that has ended; gives the change when it dominated.
  mutating func forget(_ track: SpeakingTrack, at now: Instant) -> [SpeakingTrack?] {
    step(.left(SpeakerWatch.number(track)), at: now)
  }

  private mutating func step(_ input: DominantSpeaker.Input, at now: Instant) -> [SpeakingTrack?] {
    machine.step(input, at: now, into: &outbox)
    return outbox.take().map { output in
      guard case .dominant(let number?) = output else { return nil }
      return SpeakingTrack(
        transceiver: UInt32(truncatingIfNeeded: number >> 1), isInbound: number & 1 == 1)
    }
  }

  private static func number(_ track: SpeakingTrack) -> Int {
    Int(track.transceiver) << 1 | (track.isInbound ? 1 : 0)
  }
}

extension PeerStack {
  /// Listens to a block of sound: by the level that its sender put into the packet, else by what
  /// was decoded.
  func hear(_ record: FrameRecord, frameCount: Int) {
    let level =
      record.audioLevel ?? AudioLevel.level(energy: record.energy, frameCount: frameCount)
    let track = SpeakingTrack(transceiver: record.transceiver, isInbound: record.isInbound)
    for speaker in speakers.hear(SoundLevel(headerExtension: level), of: track, at: now) {
      tell(.dominantSpeaker(speaker))
    }
  }

  /// Forgets a track of sound that is no longer sent or heard.
  func forgetSpeaker(_ transceiver: UInt32, isInbound: Bool) {
    let track = SpeakingTrack(transceiver: transceiver, isInbound: isInbound)
    for speaker in speakers.forget(track, at: now) { tell(.dominantSpeaker(speaker)) }
  }
}
