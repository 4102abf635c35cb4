import Media
import RTP
package import Wire

/// Determines which of a peer's local and remote voices speak, which one dominates, which are
/// loudest and which have a slot.
///
/// Speech and dominance are evaluated only when an audio block arrives, so they need no deadline: a
/// change is reported with the next block of any voice, at most 20 ms late during speech.
struct SpeakerWatch {
  private var names = SpeakerNames()
  private var dominance = DominantSpeaker(settings: SpeakerWatch.settings)
  private var dominanceOutputs = Outbox<DominantSpeaker.Output>()
  private var speech = SpeechDetector()
  /// The detector of the loudest voices; nil unless the application requests them.
  private var loudest: LoudestSpeakers?
  private var loudestOutputs = Outbox<LoudestSpeakers.Output>()
  private var slots: AudioSlots?
  /// The transceivers that are played without a slot.
  private var exempt: Set<UInt32> = []

  /// The usual settings, but after a second of silence no voice is dominant.
  private static let settings: DominantSpeaker.Settings = {
    var settings = DominantSpeaker.Settings()
    settings.silenceTimeout = .seconds(1)
    return settings
  }()

  /// The instant of the next report on the loudest voices; nil if no reports are requested or all
  /// voices are silent.
  ///
  /// Inlined, because each step reads it, and a call would copy the complete structure.
  @inline(__always)
  var deadline: Instant? { loudest?.deadline }

  // MARK: Blocks

  /// Handles the level of a voice's next block; returns the events.
  mutating func observe(_ level: AudioLevel, of track: SpeakingTrack, at now: Instant)
    -> [PeerEvent]
  {
    var events: [PeerEvent] = []
    for absent in names.absent(at: now) { events += forget(absent, at: now) }
    guard let number = names.number(of: track, at: now) else { return events }
    events += speech.observe(level, of: number, at: now).compactMap { event(of: $0) }
    step(.level(level, of: number), at: now, &events)
    stepLoudest(.level(level, of: number), at: now, &events)
    if track.isInbound, !exempt.contains(track.transceiver) {
      events += (slots?.observe(level, of: number, at: now) ?? []).compactMap { event(of: $0) }
    }
    return events
  }

  /// Handles an audio block and returns the resulting events.
  ///
  /// If a mixer reported the levels of the voices in the block, they replace the block's own level.
  mutating func observe(_ record: FrameRecord, level: UInt8, at now: Instant) -> [PeerEvent] {
    var events: [PeerEvent] = []
    var track = SpeakingTrack(transceiver: record.transceiver, isInbound: record.isInbound)
    var isMixed = false
    for voice in record.contributors where record.isInbound {
      guard let level = voice.level else { continue }
      track.contributor = voice.source
      events += observe(AudioLevel(headerExtension: level), of: track, at: now)
      isMixed = true
    }
    if !isMixed { events += observe(AudioLevel(headerExtension: level), of: track, at: now) }
    return events
  }

  mutating func forgetAll(_ track: SpeakingTrack, at now: Instant) -> [PeerEvent] {
    let contributors = track.isInbound ? names.contributors(of: track.transceiver) : []
    return (contributors + [track]).flatMap { forget($0, at: now) }
  }

  private mutating func forget(_ track: SpeakingTrack, at now: Instant) -> [PeerEvent] {
    guard let number = names.known(track) else { return [] }
    var events = [speech.finish(number)].compactMap { $0.flatMap { event(of: $0) } }
    step(.left(number), at: now, &events)
    stepLoudest(.left(number), at: now, &events)
    events += (slots?.remove(number) ?? []).compactMap { event(of: $0) }
    names.remove(number)
    return events
  }

  private mutating func step(
    _ input: DominantSpeaker.Input, at now: Instant, _ events: inout [PeerEvent]
  ) {
    dominance.step(input, at: now, into: &dominanceOutputs)
    for case .dominant(let number) in dominanceOutputs.drain() {
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

  // MARK: Requests

  /// Starts reporting the loudest voices; with nil, stops.
  mutating func observeLoudest(_ settings: LoudestSettings?) {
    loudest = settings.map { settings in
      var machine = LoudestSpeakers.Settings()
      machine.maxEntries = settings.count
      machine.threshold = AudioLevel(dbov: settings.threshold)
      machine.interval = .milliseconds(Int64(clamping: settings.intervalMilliseconds))
      return LoudestSpeakers(settings: machine)
    }
  }

  /// Assigns slots to this many received voices; with nil, all voices are played.
  mutating func limitSlots(_ count: Int?) -> [PeerEvent] {
    let former = slots?.levels.compactMap { names[$0.participant] } ?? []
    slots = count.map { AudioSlots(count: $0) }
    return former.map { .audioSlot($0, isHeld: false) }
  }

  /// Sets whether a transceiver's audio is played without a slot.
  mutating func exempt(_ transceiver: UInt32, _ isExempt: Bool) -> [PeerEvent] {
    guard isExempt else {
      exempt.remove(transceiver)
      return []
    }
    exempt.insert(transceiver)
    let holders = slots?.levels.map(\.participant) ?? []
    var events: [PeerEvent] = []
    for holder in holders where names[holder]?.transceiver == transceiver {
      events += (slots?.remove(holder) ?? []).compactMap { event(of: $0) }
    }
    return events
  }

  mutating func reachDeadline(at now: Instant) -> [PeerEvent] {
    var events: [PeerEvent] = []
    stepLoudest(.deadline, at: now, &events)
    return events
  }

  private mutating func stepLoudest(
    _ input: LoudestSpeakers.Input, at now: Instant, _ events: inout [PeerEvent]
  ) {
    guard loudest != nil else { return }
    loudest?.step(input, at: now, into: &loudestOutputs)
    for output in loudestOutputs.drain() {
      switch output {
      case .silence: events.append(.loudestSpeakers([]))
      case .loudest(let volumes):
        events.append(
          .loudestSpeakers(
            volumes.compactMap { volume in
              names[volume.id].map { SpeakerVolume(track: $0, decibels: volume.level.dbov) }
            }))
      }
    }
  }

  private func event(of change: AudioSlots.Change) -> PeerEvent? {
    switch change {
    case .subscribed(let number): names[number].map { .audioSlot($0, isHeld: true) }
    case .unsubscribed(let number): names[number].map { .audioSlot($0, isHeld: false) }
    }
  }
}

/// Numbers voices in order of appearance; a number is never reused.
struct SpeakerNames {
  private struct Entry {
    var number: Int
    var track: SpeakingTrack
    var lastHeard: Instant
  }

  private var entries: [Entry] = []
  private var last = 0

  /// The maximum number of voices, because a sender can name new contributors endlessly.
  private static let maximum = 64
  /// A contributor counts as gone once no packet has named it for this long.
  private static let patience = Interval.seconds(10)

  /// Returns a voice's number, or nil if there are too many voices.
  mutating func number(of track: SpeakingTrack, at now: Instant) -> Int? {
    if let index = entries.firstIndex(where: { $0.track == track }) {
      entries[index].lastHeard = now
      return entries[index].number
    }
    guard entries.count < SpeakerNames.maximum else { return nil }
    last += 1
    entries.append(Entry(number: last, track: track, lastHeard: now))
    return last
  }

  func known(_ track: SpeakingTrack) -> Int? { entries.first { $0.track == track }?.number }

  subscript(number: Int) -> SpeakingTrack? { entries.first { $0.number == number }?.track }

  /// Returns the contributors that count as gone.
  func absent(at now: Instant) -> [SpeakingTrack] {
    entries.filter { $0.track.contributor != nil && now - $0.lastHeard > SpeakerNames.patience }
      .map(\.track)
  }

  /// Returns the contributors that were seen in a received track's packets and have not left.
  func contributors(of transceiver: UInt32) -> [SpeakingTrack] {
    entries.map(\.track).filter {
      $0.transceiver == transceiver && $0.isInbound && $0.contributor != nil
    }
  }

  mutating func remove(_ number: Int) { entries.removeAll { $0.number == number } }
}

extension PeerStack {
  func observe(_ record: FrameRecord, level: UInt8) {
    for event in speakers.observe(record, level: level, at: now) { emit(event) }
  }

  /// Forgets an audio track that is no longer sent or received.
  func forgetSpeaker(_ transceiver: UInt32, isInbound: Bool) {
    let track = SpeakingTrack(transceiver: transceiver, isInbound: isInbound)
    for event in speakers.forgetAll(track, at: now) { emit(event) }
  }
}

// MARK: - SpeakingTrack

/// A voice that a peer sends or receives: an audio track, or a contributor mixed into it.
public struct SpeakingTrack: Hashable, Sendable {
  /// The number of the transceiver that sends or receives the voice.
  public var transceiver: UInt32
  /// Whether the voice is received rather than sent.
  public var isInbound: Bool
  /// The contributing source (CSRC, RFC 3550 section 5.1) for which a mixer reported a level
  /// (RFC 6465); nil for the track itself.
  public var contributor: UInt32?

  /// Identifies a track, or with `contributor` one of the voices mixed into it.
  public init(transceiver: UInt32, isInbound: Bool, contributor: UInt32? = nil) {
    self.transceiver = transceiver
    self.isInbound = isInbound
    self.contributor = contributor
  }
}

/// An utterance in the take, recorded once it is longer than a click, every second while it lasts,
/// and when it ends.
package struct SpeechRecord: Hashable, Sendable {
  package var track: SpeakingTrack
  /// The phase: `began`, `lasts` or `ended`.
  package var phase: String
  /// The start of the first block above the gate, and the end of the last block above it.
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

/// One of the loudest voices with its mean level in dBov, where 0 is full scale.
public struct SpeakerVolume: Hashable, Sendable {
  /// The track or contributor that has this volume.
  public var track: SpeakingTrack
  /// The mean level, from -127 (silence) to 0.
  public var decibels: Int

  /// Creates a volume; `decibels` ranges from -127 (silence) to 0.
  public init(track: SpeakingTrack, decibels: Int) {
    self.track = track
    self.decibels = decibels
  }
}

/// The selection of the loudest voices, and the interval between reports.
public struct LoudestSettings: Hashable, Sendable, Codable {
  /// The maximum number of voices in a report.
  public var count: Int
  /// The minimum mean level in dBov, -127 to 0.
  public var threshold: Int
  /// The time between reports, from 250 to 5000 ms.
  public var intervalMilliseconds: Int

  /// Creates settings; the defaults are common in media servers.
  public init(count: Int = 1, threshold: Int = -80, intervalMilliseconds: Int = 1000) {
    self.count = count
    self.threshold = threshold
    self.intervalMilliseconds = intervalMilliseconds
  }
}
