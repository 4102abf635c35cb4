package import Wire

/// Lists the loudest participants per interval, or reports silence.
///
/// Levels are averaged per interval; participants with too few packets are left out. Ties are
/// broken by order of joining. Intervals are on a grid that starts at instant zero.
package struct LoudestSpeakers: Machine {
  package enum Input: Hashable, Sendable {
    /// Adds a participant; a level from an unknown participant also adds it.
    case joined(Int)
    /// Removes a participant, with its levels in the current interval.
    case left(Int)
    /// The level of a participant's next packet.
    case level(AudioLevel, of: Int)
    /// The `deadline` was reached.
    case deadline
  }

  /// A participant and its mean level in an interval.
  package struct Volume: Hashable, Sendable {
    package var id: Int
    package var level: AudioLevel

    package init(id: Int, level: AudioLevel) {
      self.id = id
      self.level = level
    }
  }

  package enum Output: Hashable, Sendable {
    /// Participants at or above the threshold, loudest first.
    case loudest([Volume])
    /// No participant is at or above the threshold; reported once.
    case silence
  }

  /// The size of a report, its threshold, and the time between reports.
  package struct Settings: Hashable, Sendable {
    /// The maximum number of participants in a report.
    package var maxEntries = 1
    /// The lowest mean level that a report lists.
    package var threshold = AudioLevel(dbov: -80)
    /// The time between reports, 250 ms to 5 s.
    package var interval = Interval.seconds(1)

    package init() {}
  }

  private struct Participant {
    var id: Int
    /// The sum of the levels in dBov, negative or 0.
    var sum = 0
    var count = 0
  }

  /// A participant with fewer packets than this in an interval is left out.
  private static let leastPackets = 10

  private let settings: Settings
  private var participants: [Participant] = []
  private var nextReport: Instant?
  private var isSilent = true

  package init(settings: Settings = Settings()) {
    var settings = settings
    settings.interval = min(.seconds(5), max(.milliseconds(250), settings.interval))
    self.settings = settings
  }

  /// When the next report is due; nil if there is nothing to report.
  package var deadline: Instant? {
    isSilent && participants.allSatisfy { $0.count == 0 } ? nil : nextReport
  }

  package mutating func step(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    while let deadline, deadline < now { report(at: deadline, &outbox) }
    if deadline == nil {
      // Skip complete intervals without levels.
      let length = settings.interval.nanoseconds
      let rest = (now.nanoseconds % length + length) % length
      nextReport = now + Interval(nanoseconds: rest == 0 ? 0 : length - rest)
    }
    switch input {
    case .joined(let id): _ = place(of: id)
    case .left(let id): participants.removeAll { $0.id == id }
    case .level(let level, let id):
      let index = place(of: id)
      participants[index].sum += level.dbov
      participants[index].count += 1
    case .deadline: if let deadline, deadline <= now { report(at: deadline, &outbox) }
    }
  }

  private mutating func place(of id: Int) -> Int {
    if let index = participants.firstIndex(where: { $0.id == id }) { return index }
    participants.append(Participant(id: id))
    return participants.count - 1
  }

  private mutating func report(at now: Instant, _ outbox: inout Outbox<Output>) {
    nextReport = now + settings.interval
    var volumes: [(order: Int, volume: Volume)] = []
    for index in participants.indices {
      let (sum, count) = (participants[index].sum, participants[index].count)
      (participants[index].sum, participants[index].count) = (0, 0)
      guard count >= LoudestSpeakers.leastPackets else { continue }
      // The mean is rounded half away from 0.
      let mean = AudioLevel(dbov: -((-sum * 2 + count) / (count * 2)))
      guard mean >= settings.threshold else { continue }
      volumes.append((index, Volume(id: participants[index].id, level: mean)))
    }
    volumes.sort { ($1.volume.level, $0.order) < ($0.volume.level, $1.order) }
    if !volumes.isEmpty {
      isSilent = false
      outbox.append(.loudest(volumes.prefix(max(1, settings.maxEntries)).map(\.volume)))
    } else if !isSilent {
      isSilent = true
      outbox.append(.silence)
    }
  }
}

// MARK: - AudioSlots

/// Selects the participants to play when their number is limited: the holders of audio slots.
///
/// A participant that speaks gets a free slot, or the slot of the participant that has been silent
/// longest. It keeps the slot when it stops speaking, so that slots do not change with every pause.
/// No participant loses its slot while speaking.
package struct AudioSlots: Sendable {
  /// A change to the set of participants that are played.
  package enum Change: Hashable, Sendable {
    /// The participant is played from now on.
    case subscribed(Int)
    /// The participant is no longer played.
    case unsubscribed(Int)
  }

  private struct Slot {
    var participant: Int
    var level: AudioLevel
    var lastSpoke: Instant
  }

  /// The default number of slots.
  package static let usualCount = 4
  /// The lowest level that counts as speech.
  package static let gate = SpeechDetector.gate
  /// The time for which a participant still counts as speaking after its last level above the gate.
  private static let hold = Interval.milliseconds(500)

  private let count: Int
  /// Slots in the order they were first assigned.
  private var slots: [Slot] = []

  package init(count: Int = AudioSlots.usualCount) { self.count = max(1, count) }

  /// Every slot holder's level from 0 to 100, in slot order; 0 is silence.
  package var levels: [(participant: Int, percent: Int)] {
    slots.map { ($0.participant, $0.level.percent) }
  }

  /// Records a participant's level; returns the slots that change hands.
  package mutating func observe(_ level: AudioLevel, of participant: Int, at now: Instant)
    -> [Change]
  {
    let speaks = level >= AudioSlots.gate
    if let index = slots.firstIndex(where: { $0.participant == participant }) {
      slots[index].level = level
      if speaks { slots[index].lastSpoke = now }
      return []
    }
    guard speaks else { return [] }
    let taken = Slot(participant: participant, level: level, lastSpoke: now)
    guard slots.count == count else {
      slots.append(taken)
      return [.subscribed(participant)]
    }
    guard let index = slots.indices.min(by: { slots[$0].lastSpoke < slots[$1].lastSpoke }),
      now - slots[index].lastSpoke > AudioSlots.hold
    else { return [] }
    let former = slots[index].participant
    slots[index] = taken
    return [.unsubscribed(former), .subscribed(participant)]
  }

  /// Frees the slot of a participant who left.
  package mutating func remove(_ participant: Int) -> [Change] {
    guard let index = slots.firstIndex(where: { $0.participant == participant }) else { return [] }
    slots.remove(at: index)
    return [.unsubscribed(participant)]
  }
}

// MARK: - SpeechDetector

/// Detects speech in participants' levels: runs of blocks above the gate, which may contain short
/// pauses and are longer than a click.
///
/// It acts only on levels and needs no deadline. Speech is reported once it is long enough, again
/// every second, and when it is over, so that each stretch of speech is known to the second even if
/// its end is never observed.
package struct SpeechDetector: Sendable {
  /// A stretch of a participant's speech, up to the latest report.
  package struct Speech: Hashable, Sendable {
    /// Whether the speech has just begun, continues or has ended.
    package enum Phase: String, Hashable, Sendable {
      case began, lasts, ended
    }

    package var participant: Int
    package var phase: Phase
    /// The start of the first block above the gate, and the end of the last block above it.
    package var from: Instant
    package var to: Instant
    /// The number of blocks above the gate, and the sum of their levels in dBov.
    package var blocks: Int
    package var decibels: Int
  }

  private struct Spurt {
    var participant: Int
    var from: Instant
    var to: Instant
    var blocks = 0
    var decibels = 0
    /// The instant up to which the speech has been reported; nil while it may still be a click.
    var reported: Instant?

    func speech(_ phase: Speech.Phase) -> Speech {
      Speech(
        participant: participant, phase: phase, from: from, to: to, blocks: blocks,
        decibels: decibels)
    }
  }

  /// The lowest level that counts as speech, as in the dominant-speaker algorithm.
  package static let gate = AudioLevel(dbov: -47)
  /// The longest pause within speech, and the shortest speech.
  private static let longestPause = Interval.milliseconds(500)
  private static let shortestSpeech = Interval.milliseconds(200)
  /// The length of a block, and the interval between reports on ongoing speech.
  private static let block = Interval.milliseconds(20)
  private static let rhythm = Interval.seconds(1)

  /// Stretches of speech in order of their starts.
  private var spurts: [Spurt] = []

  package init() {}

  /// Handles the level of a participant's next block; returns speech that ended, then speech that
  /// starts or continues.
  package mutating func observe(_ level: AudioLevel, of participant: Int, at now: Instant)
    -> [Speech]
  {
    var told: [Speech] = []
    spurts.removeAll { spurt in
      let last = spurt.to - SpeechDetector.block
      guard now - last > SpeechDetector.longestPause else { return false }
      if spurt.reported != nil { told.append(spurt.speech(.ended)) }
      return true
    }
    guard level >= SpeechDetector.gate else { return told }
    let known = spurts.firstIndex { $0.participant == participant }
    if known == nil {
      spurts.append(Spurt(participant: participant, from: now, to: now))
    }
    let index = known ?? spurts.count - 1
    spurts[index].to = max(spurts[index].to, now + SpeechDetector.block)
    spurts[index].blocks += 1
    spurts[index].decibels += level.dbov
    let spurt = spurts[index]
    if let before = spurt.reported {
      guard spurt.to - before >= SpeechDetector.rhythm else { return told }
      told.append(spurt.speech(.lasts))
    } else {
      guard spurt.to - spurt.from >= SpeechDetector.shortestSpeech else { return told }
      told.append(spurt.speech(.began))
    }
    spurts[index].reported = spurt.to
    return told
  }

  /// Ends the speech of a participant who is no longer played; returns the end to report, or nil if
  /// its beginning was never reported.
  package mutating func finish(_ participant: Int) -> Speech? {
    guard let index = spurts.firstIndex(where: { $0.participant == participant }) else {
      return nil
    }
    let spurt = spurts.remove(at: index)
    return spurt.reported == nil ? nil : spurt.speech(.ended)
  }
}
