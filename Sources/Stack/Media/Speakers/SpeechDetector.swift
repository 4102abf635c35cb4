package import Wire

/// Finds speech in the levels of participants: audio of the gate's level or more, joined over
/// pauses, long enough to be no click.
///
/// It looks only when a level comes and needs no deadline. Speech is told when it is long enough to
/// be some, once more with every second that it lasts, and when it is over, so that whoever keeps
/// what is told knows each speech to the second even when the end was never seen.
package struct SpeechDetector: Sendable {
  /// What is known of a speech.
  package struct Speech: Hashable, Sendable {
    /// How far it has come.
    package enum Phase: String, Hashable, Sendable {
      case began, lasts, ended
    }

    package var participant: Int
    package var phase: Phase
    /// The first block, and the end of the last block that was loud enough.
    package var from: Instant
    package var to: Instant
    /// The blocks that were loud enough, and the sum of their levels in dBov.
    package var blocks: Int
    package var decibels: Int
  }

  private struct Spurt {
    var participant: Int
    var from: Instant
    var to: Instant
    var blocks = 0
    var decibels = 0
    /// Up to where it was told; nil while it could still be a click.
    var told: Instant?

    func speech(_ phase: Speech.Phase) -> Speech {
      Speech(
        participant: participant, phase: phase, from: from, to: to, blocks: blocks,
        decibels: decibels)
    }
  }

  /// From this level on a block holds speech: the gate of the dominant-speaker algorithm.
  package static let gate = AudioLevel(dbov: -47)
  /// Pauses up to this belong to the speech around them; what is shorter than speech is a click.
  private static let longestPause = Interval.milliseconds(500)
  private static let shortestSpeech = Interval.milliseconds(200)
  /// The length of a block, and how often lasting speech is told.
  private static let block = Interval.milliseconds(20)
  private static let rhythm = Interval.seconds(1)

  /// In the order of their beginnings.
  private var spurts: [Spurt] = []

  package init() {}

  /// Handles the level of a participant's next block; returns the speech that ended, then what
  /// began or lasts.
  package mutating func hear(_ level: AudioLevel, of participant: Int, at now: Instant) -> [Speech]
  {
    var told: [Speech] = []
    spurts.removeAll { spurt in
      let last = spurt.to - SpeechDetector.block
      guard now - last > SpeechDetector.longestPause else { return false }
      if spurt.told != nil { told.append(spurt.speech(.ended)) }
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
    if let before = spurt.told {
      guard spurt.to - before >= SpeechDetector.rhythm else { return told }
      told.append(spurt.speech(.lasts))
    } else {
      guard spurt.to - spurt.from >= SpeechDetector.shortestSpeech else { return told }
      told.append(spurt.speech(.began))
    }
    spurts[index].told = spurt.to
    return told
  }

  /// Ends the speech of a participant that is no longer heard.
  package mutating func finish(_ participant: Int) -> Speech? {
    guard let index = spurts.firstIndex(where: { $0.participant == participant }) else {
      return nil
    }
    let spurt = spurts.remove(at: index)
    return spurt.told == nil ? nil : spurt.speech(.ended)
  }
}
