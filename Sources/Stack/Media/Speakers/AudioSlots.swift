package import Wire

/// Selects the participants that are heard when their number is limited: those that hold an audio
/// slot.
///
/// A participant that speaks takes a free slot, or the slot of the one silent for longest. It keeps
/// the slot when it falls silent, so that slots do not change with every pause. Nobody loses a slot
/// while speaking.
package struct AudioSlots: Sendable {
  /// A change of who is heard.
  package enum Change: Hashable, Sendable {
    /// The participant is heard from now on.
    case subscribed(Int)
    /// The participant is no longer heard.
    case unsubscribed(Int)
  }

  private struct Slot {
    var participant: Int
    var level: AudioLevel
    var lastSpoke: Instant
  }

  /// The default number of slots.
  package static let usualCount = 4
  /// The minimum level of speech.
  package static let gate = SpeechDetector.gate
  /// Somebody who spoke within this time still counts as speaking.
  private static let hold = Interval.milliseconds(500)

  private let count: Int
  /// In the order in which the slots were first assigned.
  private var slots: [Slot] = []

  package init(count: Int = AudioSlots.usualCount) { self.count = max(1, count) }

  /// The level of every holder from 0 to 100, in the order of their slots; 0 is silence.
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

  /// Frees the slot of a participant that left.
  package mutating func remove(_ participant: Int) -> [Change] {
    guard let index = slots.firstIndex(where: { $0.participant == participant }) else { return [] }
    slots.remove(at: index)
    return [.unsubscribed(participant)]
  }
}
