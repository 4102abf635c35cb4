package import Wire

/// Determines the dominant speaker with the algorithm of Volfin & Cohen and the parameters that
/// video bridges use.
///
/// Every participant's last second is scored on three time scales. At each decision, the
/// participants who beat the dominant speaker on all three scales compete, and the best on the
/// middle scale wins: a cough is too short, and a murmur is not loud enough. Decisions are on a
/// grid that starts at instant zero, and ties are broken by order of joining, so the same levels at
/// the same instants always lead to the same speakers.
package struct DominantSpeaker: Machine {
  package enum Input: Hashable, Sendable {
    /// Adds a participant; a level from an unknown participant also adds it.
    case joined(Int)
    /// Removes a participant; if it was dominant, there is no dominant speaker until the next
    /// decision.
    case left(Int)
    /// The level of a packet lasting about 20 ms.
    case level(AudioLevel, of: Int)
    /// The `deadline` was reached.
    case deadline
  }

  package enum Output: Hashable, Sendable {
    /// The dominant speaker changed; nil if the previous one left, or if no participant is speaking
    /// any more.
    case dominant(Int?)
  }

  /// The time between decisions, and the silence after which there is no dominant speaker.
  package struct Settings: Hashable, Sendable {
    /// The time between decisions, 100 ms to 5 s.
    package var decisionInterval = Interval.milliseconds(300)
    /// The silence after which there is no dominant speaker; nil keeps the last one.
    package var silenceTimeout: Interval?

    package init() {}
  }

  private struct Participant {
    var id: Int
    var history = SpeechHistory()
    var lastLevel: Instant
  }

  /// A participant that sends no packet for longer than this gets one silent level per such period.
  private static let levelTimeout = Interval.milliseconds(40)
  /// A participant without a packet for this long is removed unless it is dominant.
  private static let participantTimeout = Interval.seconds(3600)
  // The ratios of a challenger's scores to the dominant speaker's must exceed e^3, e^2 and e^0. The
  // published rule compares the logarithms of the ratios with 3, 2 and 0.
  private static let immediateRatio = 20.085_536_923_187_668
  private static let mediumRatio = 7.389_056_098_930_65
  private static let longRatio = 1.0

  private let settings: Settings
  /// The participants in order of joining.
  private var participants: [Participant] = []
  /// The dominant speaker; nil while there is none.
  package private(set) var dominant: Int?
  /// When a decision last found that the dominant speaker had spoken within a second, or when that
  /// speaker became dominant.
  private var lastSpeech = Instant.zero
  private var nextCheck: Instant?
  private var nextDecision = Instant.zero

  package init(settings: Settings = Settings()) {
    var settings = settings
    settings.decisionInterval = min(
      .seconds(5), max(.milliseconds(100), settings.decisionInterval))
    self.settings = settings
  }

  /// When the next decision or time-out is due; nil while time alone changes nothing.
  package var deadline: Instant? {
    guard let nextCheck, !isSettled else { return nil }
    return min(nextCheck, nextDecision)
  }

  /// Whether time alone changes nothing: all participants are silent, and no decision would change
  /// the dominant speaker.
  ///
  /// With a silence time-out, no speaker remains dominant; without one, someone is dominant as long
  /// as there are participants.
  private var isSettled: Bool {
    participants.allSatisfy(\.history.isSilent)
      && (participants.isEmpty || dominant != nil || settings.silenceTimeout != nil)
      && (settings.silenceTimeout == nil || dominant == nil)
  }

  package mutating func step(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    catchUp(before: now, &outbox)
    switch input {
    case .joined(let id): _ = place(of: id, at: now)
    case .left(let id):
      participants.removeAll { $0.id == id }
      if dominant == id {
        dominant = nil
        outbox.append(.dominant(nil))
      }
    case .level(let level, let id):
      let index = place(of: id, at: now)
      participants[index].history.add(level.loudness)
      participants[index].lastLevel = now
    case .deadline:
      if let deadline, deadline <= now { runDue(at: deadline, &outbox) }
    }
  }

  private mutating func place(of id: Int, at now: Instant) -> Int {
    if let index = participants.firstIndex(where: { $0.id == id }) { return index }
    participants.append(Participant(id: id, lastLevel: now))
    return participants.count - 1
  }

  /// Makes the decisions that were due before an instant; skips time in which nothing can change.
  private mutating func catchUp(before now: Instant, _ outbox: inout Outbox<Output>) {
    while let deadline, deadline < now { runDue(at: deadline, &outbox) }
    if nextCheck == nil || isSettled {
      nextCheck = DominantSpeaker.gridPoint(from: now, DominantSpeaker.levelTimeout)
      nextDecision = DominantSpeaker.gridPoint(from: now, settings.decisionInterval)
      forgetAbsent(at: now)
    }
  }

  /// Returns the first multiple of an interval at or after an instant.
  private static func gridPoint(from now: Instant, _ interval: Interval) -> Instant {
    let rest = now.nanoseconds % interval.nanoseconds
    guard rest != 0 else { return now }
    return now + Interval(nanoseconds: rest > 0 ? interval.nanoseconds -| rest : 0 -| rest)
  }

  private mutating func runDue(at due: Instant, _ outbox: inout Outbox<Output>) {
    if let check = nextCheck, check <= due {
      nextCheck = check + DominantSpeaker.levelTimeout
      for index in participants.indices
      where due - participants[index].lastLevel > DominantSpeaker.levelTimeout {
        participants[index].history.add(0)
      }
      forgetAbsent(at: due)
    }
    if nextDecision <= due {
      nextDecision = nextDecision + settings.decisionInterval
      decide(at: due, &outbox)
    }
  }

  private mutating func forgetAbsent(at now: Instant) {
    participants.removeAll {
      $0.id != dominant && now - $0.lastLevel > DominantSpeaker.participantTimeout
    }
  }

  private mutating func decide(at now: Instant, _ outbox: inout Outbox<Output>) {
    for index in participants.indices { participants[index].history.evaluate() }
    var winner = dominant
    if let timeout = settings.silenceTimeout {
      winner = dominant ?? participants.first { $0.history.longScore > SpeechScore.least }?.id
      if let holder = participants.first(where: { $0.id == winner }) {
        if holder.history.longScore > SpeechScore.least { lastSpeech = now }
        if now - lastSpeech > timeout { winner = nil }
      }
    } else if winner == nil {
      winner = participants.first?.id
    }
    winner = challenger(of: winner) ?? winner
    guard winner != dominant else { return }
    dominant = winner
    lastSpeech = now
    outbox.append(.dominant(winner))
  }

  /// Returns the participant who beats a speaker on all three scales; nil if there is none.
  ///
  /// If several do, the one with the best score on the middle scale is returned.
  private func challenger(of id: Int?) -> Int? {
    guard let holder = participants.first(where: { $0.id == id })?.history else { return nil }
    var best: Int?
    var bestRatio = DominantSpeaker.mediumRatio
    for participant in participants where participant.id != id {
      let rival = participant.history
      let ratio = rival.mediumScore / holder.mediumScore
      if rival.immediateScore / holder.immediateScore > DominantSpeaker.immediateRatio,
        rival.longScore / holder.longScore > DominantSpeaker.longRatio, ratio > bestRatio
      {
        best = participant.id
        bestRatio = ratio
      }
    }
    return best
  }
}

// MARK: - SpeechHistory

/// A participant's levels in the last second, and their scores.
struct SpeechHistory {
  /// The number of levels: one second of 20 ms packets.
  static let length = 50

  /// A level above this, in steps of 10 dB, is loud.
  private static let loudAbove: UInt8 = 7
  /// A tenth of a second with more loud levels than this is loud.
  private static let busyAbove: UInt8 = 4
  /// The noise floor rises only after this many levels above it: 15 s.
  private static let floorWindow = 750
  /// A level less than this many decibels above the noise floor is scored as silence.
  private static let floorMargin = 10
  private static let levelsPerMedium = 5

  /// Loudness values from 0 to 127, newest first.
  private var levels = [UInt8](repeating: 0, count: SpeechHistory.length)
  /// The noise floor; 0 before the first level above silence.
  private var floor: UInt8 = 0
  private var nextFloor: UInt8 = 0
  private var nextFloorCount = 0

  /// The scores of the latest level, the latest tenth of a second, and the complete second.
  private(set) var immediateScore = SpeechScore.least
  private(set) var mediumScore = SpeechScore.least
  private(set) var longScore = SpeechScore.least
  /// Consecutive silent levels, at most `length`.
  private var silentCount = SpeechHistory.length

  /// Whether all levels are silent, in which case another silent level changes nothing.
  var isSilent: Bool { silentCount >= SpeechHistory.length }

  mutating func add(_ loudness: UInt8) {
    levels.removeLast()
    levels.insert(loudness, at: 0)
    silentCount = loudness == 0 ? min(silentCount + 1, SpeechHistory.length) : 0
    follow(loudness)
  }

  /// Moves the noise floor: it falls immediately and rises slowly, to the geometric mean of itself
  /// and the quietest recent level.
  private mutating func follow(_ loudness: UInt8) {
    guard loudness > 0 else { return }
    if floor == 0 || floor > loudness {
      floor = loudness
      (nextFloor, nextFloorCount) = (0, 0)
      return
    }
    nextFloor = nextFloor == 0 ? loudness : min(nextFloor, loudness)
    nextFloorCount += 1
    if nextFloorCount >= SpeechHistory.floorWindow {
      floor = UInt8((Double(floor) * Double(nextFloor)).squareRoot())
      (nextFloor, nextFloorCount) = (0, 0)
    }
  }

  /// Recomputes the scores from the levels and the noise floor.
  mutating func evaluate() {
    let least = Int(floor) + SpeechHistory.floorMargin
    var newestInstant: UInt8 = 0
    var newestTenth: UInt8 = 0
    var loudInTenth: UInt8 = 0
    var busyTenths: UInt8 = 0
    for (index, level) in levels.enumerated() {
      let instant = Int(level) < least ? 0 : level / 10
      if index == 0 { newestInstant = instant }
      if instant > SpeechHistory.loudAbove { loudInTenth += 1 }
      guard index % SpeechHistory.levelsPerMedium == SpeechHistory.levelsPerMedium - 1 else {
        continue
      }
      if index < SpeechHistory.levelsPerMedium { newestTenth = loudInTenth }
      if loudInTenth > SpeechHistory.busyAbove { busyTenths += 1 }
      loudInTenth = 0
    }
    immediateScore = SpeechScore.score(newestInstant, in: SpeechScore.immediate)
    mediumScore = SpeechScore.score(newestTenth, in: SpeechScore.medium)
    longScore = SpeechScore.score(busyTenths, in: SpeechScore.long)
  }
}

/// How strongly a window's activity indicates speech: the scores of Volfin & Cohen.
///
/// The score of `v` active parts out of `n` is ln C(n, v) + n ln p - ln λ + λ v with p = 1/2, at
/// least `least`. Only a few values of `v` exist, so the scores are constants: logarithms of
/// different libraries differ in the last bit, and speakers must not depend on the machine.
package enum SpeechScore {
  /// The score of a window without activity.
  package static let least = 1e-10

  /// The scores of one level, by its loudness in steps of 10 dB (n = 13, λ = 0.78).
  package static let immediate: [Double] = [
    least, least, least, least, 0.929_830_554_713_218_8, 2.297_617_219_615_338_6,
    3.365_299_292_067_118_8, 4.145_299_292_067_119, 4.637_617_219_615_338,
    4.829_830_554_713_219, 4.693_539_822_839_064, 4.174_256_838_708_803,
    3.162_497_369_480_746_6, 1.377_548_012_019_211_4,
  ]

  /// The scores of a tenth of a second, by how many of its five levels are loud (n = 5, λ = 24).
  package static let medium: [Double] = [
    least, 18.965_648_179_286_43, 43.658_795_359_846_37, 67.658_795_359_846_38,
    90.965_648_179_286_43, 113.356_210_266_852_33,
  ]

  /// The scores of a second, by how many of its tenths are loud (n = 10, λ = 47).
  package static let long: [Double] = [
    least, 38.520_965_685_684_53, 87.025_043_082_460_81, 135.005_872_335_472_53,
    182.565_488_123_407_96, 229.747_809_680_201_93, 276.565_488_123_407_93,
    323.005_872_335_472_53, 369.025_043_082_460_8, 414.520_965_685_684_53, 459.218_380_592_690_5,
  ]

  /// Returns the score for a count, clamped to the window.
  static func score(_ count: UInt8, in scores: [Double]) -> Double {
    scores[min(Int(count), scores.count - 1)]
  }
}
