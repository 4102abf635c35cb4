package import Wire

/// Lists the loudest participants of each interval, or reports silence.
///
/// Levels are averaged per interval; participants with too few packets do not count. Ties are
/// broken by the order of joining. Intervals are on a grid that starts at instant zero.
package struct LoudestSpeakers: Machine {
  /// What can happen.
  package enum Input: Hashable, Sendable {
    /// Adds a participant; a level of an unknown one does so too.
    case joined(Int)
    /// Removes a participant.
    case left(Int)
    /// The level of a packet.
    case level(AudioLevel, of: Int)
    /// The instant of `deadline` has been reached.
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

  /// What it tells.
  package enum Output: Hashable, Sendable {
    /// Those at or above the threshold, loudest first.
    case loudest([Volume])
    /// Nobody is at or above the threshold; reported once.
    case silence
  }

  /// The configuration.
  package struct Settings: Hashable, Sendable {
    /// The most participants in a report.
    package var maxEntries = 1
    /// The minimum mean level.
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

  /// With fewer packets in an interval a participant does not count.
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
      // Skip whole intervals without levels.
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
      // Rounded half away from 0.
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
