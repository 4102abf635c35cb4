package import Wire

/// Detects speech from the levels of participants: blocks above the gate, joined over pauses, long
/// enough not to be a click.
///
/// It acts only on levels and needs no deadline. Speech is reported once it is long enough, again
/// every second, and when it is over, so that each speech is known to the second even if its end is
/// never seen.
package struct SpeechDetector: Sendable {
  /// A speech as far as known.
  package struct Speech: Hashable, Sendable {
    /// How far it has come.
    package enum Phase: String, Hashable, Sendable {
      case began, lasts, ended
    }

    package var participant: Int
    package var phase: Phase
    /// The start of the first block and the end of the last one above the gate.
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
    /// Until when it was reported; nil while it may still be a click.
    var reported: Instant?

    func speech(_ phase: Speech.Phase) -> Speech {
      Speech(
        participant: participant, phase: phase, from: from, to: to, blocks: blocks,
        decibels: decibels)
    }
  }

  /// The minimum level of speech, as in the dominant-speaker algorithm.
  package static let gate = AudioLevel(dbov: -47)
  /// The longest pause within a speech, and its minimum length.
  private static let longestPause = Interval.milliseconds(500)
  private static let shortestSpeech = Interval.milliseconds(200)
  /// The length of a block, and how often ongoing speech is reported.
  private static let block = Interval.milliseconds(20)
  private static let rhythm = Interval.seconds(1)

  /// In the order of their starts.
  private var spurts: [Spurt] = []

  package init() {}

  /// Handles the level of a participant's next block; returns the speech that ended, then one that
  /// begins or continues.
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

  /// Ends the speech of a participant that is no longer heard.
  package mutating func finish(_ participant: Int) -> Speech? {
    guard let index = spurts.firstIndex(where: { $0.participant == participant }) else {
      return nil
    }
    let spurt = spurts.remove(at: index)
    return spurt.reported == nil ? nil : spurt.speech(.ended)
  }
}
