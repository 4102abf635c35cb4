import Media
import Speakers
import Wire

/// Says who speaks and who dominates among the voices that a peer sends and hears.
///
/// It looks only when a block of sound comes, so it needs no deadline: a change is told with the
/// next block of any voice, 20 ms late at most while somebody speaks.
struct SpeakerWatch {
  private var names = SpeakerNames()
  private var dominance = DominantSpeaker(settings: SpeakerWatch.settings)
  private var dominanceOutputs = Outbox<DominantSpeaker.Output>()
  private var speech = SpeechDetector()

  /// A second of silence makes nobody dominant.
  private static let settings: DominantSpeaker.Settings = {
    var settings = DominantSpeaker.Settings()
    settings.silenceTimeout = .seconds(1)
    return settings
  }()

  /// Takes the level of a voice's next block; gives what is to be told.
  mutating func hear(_ level: SoundLevel, of track: SpeakingTrack, at now: Instant) -> [PeerEvent] {
    guard let number = names.number(of: track) else { return [] }
    var events = speech.hear(level, of: number, at: now).compactMap { event(of: $0) }
    step(.level(level, of: number), at: now, &events)
    return events
  }

  /// Forgets a voice that has ended; gives what is to be told.
  mutating func forget(_ track: SpeakingTrack, at now: Instant) -> [PeerEvent] {
    guard let number = names.known(track) else { return [] }
    var events = [speech.finish(number)].compactMap { $0.flatMap { event(of: $0) } }
    step(.left(number), at: now, &events)
    names.remove(number)
    return events
  }

  private mutating func step(
    _ input: DominantSpeaker.Input, at now: Instant, _ events: inout [PeerEvent]
  ) {
    dominance.step(input, at: now, into: &dominanceOutputs)
    for case .dominant(let number) in dominanceOutputs.take() {
      events.append(.dominantSpeaker(number.flatMap { names[$0] }))
    }
  }

  private func event(of speech: SpeechDetector.Speech) -> PeerEvent? {
    guard let track = names[speech.participant] else { return nil }
    return .speech(
      SpeechRecord(
        track: track, phase: speech.phase.rawValue, from: speech.from, to: speech.to,
        blocks: speech.blocks, decibels: speech.decibels))
  }
}

/// Numbers for voices, in the order in which they were first heard; a number is never used again.
struct SpeakerNames {
  private var entries: [(number: Int, track: SpeakingTrack)] = []
  private var last = 0

  /// So many voices have names at once. The sender of a track says who contributes to it, and may
  /// name ever new ones.
  private static let maximum = 64

  /// The number of a voice; nil when there are too many.
  mutating func number(of track: SpeakingTrack) -> Int? {
    if let known = known(track) { return known }
    guard entries.count < SpeakerNames.maximum else { return nil }
    last += 1
    entries.append((last, track))
    return last
  }

  /// The number of a voice that was heard before.
  func known(_ track: SpeakingTrack) -> Int? { entries.first { $0.track == track }?.number }

  /// The voice of a number.
  subscript(number: Int) -> SpeakingTrack? { entries.first { $0.number == number }?.track }

  /// The voices that were mixed into a received track.
  func contributors(of transceiver: UInt32) -> [SpeakingTrack] {
    entries.map(\.track).filter {
      $0.transceiver == transceiver && $0.isInbound && $0.contributor != nil
    }
  }

  mutating func remove(_ number: Int) { entries.removeAll { $0.number == number } }
}

extension PeerStack {
  /// Listens to a block of sound: by the level that its sender put into the packet, else by what
  /// was decoded.
  func hear(_ record: FrameRecord, frameCount: Int) {
    let level =
      record.audioLevel ?? AudioLevel.level(energy: record.energy, frameCount: frameCount)
    let track = SpeakingTrack(transceiver: record.transceiver, isInbound: record.isInbound)
    for event in speakers.hear(SoundLevel(headerExtension: level), of: track, at: now) {
      tell(event)
    }
  }

  /// Forgets a track of sound that is no longer sent or heard.
  func forgetSpeaker(_ transceiver: UInt32, isInbound: Bool) {
    let track = SpeakingTrack(transceiver: transceiver, isInbound: isInbound)
    for event in speakers.forget(track, at: now) { tell(event) }
  }
}
