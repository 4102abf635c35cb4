import Media
import Wire

/// Drives a dominant-speaker machine in virtual time, as its owner would.
struct Room {
  private var machine: DominantSpeaker
  private var outbox = Outbox<DominantSpeaker.Output>()
  /// The changes of the dominant speaker, in milliseconds.
  private(set) var changes: [Change] = []

  struct Change: Equatable {
    var milliseconds: Int64
    var speaker: Int?
  }

  init(settings: DominantSpeaker.Settings = DominantSpeaker.Settings()) {
    machine = DominantSpeaker(settings: settings)
  }

  var dominant: Int? { machine.dominant }
  var deadline: Instant? { machine.deadline }

  /// Advances the time, meeting deadlines up to and including the end.
  mutating func run(to milliseconds: Int64) {
    let end = Instant.zero + .milliseconds(milliseconds)
    while let due = machine.deadline, due <= end { step(.deadline, at: due) }
  }

  /// Applies an input at a time, after any earlier deadlines.
  mutating func apply(_ input: DominantSpeaker.Input, at milliseconds: Int64) {
    let now = Instant.zero + .milliseconds(milliseconds)
    while let due = machine.deadline, due < now { step(.deadline, at: due) }
    step(input, at: now)
  }

  mutating func step(_ input: DominantSpeaker.Input, at now: Instant) {
    machine.step(input, at: now, into: &outbox)
    for case .dominant(let speaker) in outbox.drain() {
      changes.append(Change(milliseconds: now.nanoseconds / 1_000_000, speaker: speaker))
    }
  }

  /// Applies every participant's packets, 20 ms apart; loudness ranges from 0 (silent) to 127.
  mutating func talk(
    from start: Int64, to end: Int64, _ loudness: [(speaker: Int, loudness: Int)]
  ) {
    var at = start
    while at < end {
      for (speaker, loudness) in loudness {
        apply(.level(AudioLevel(dbov: loudness - 127), of: speaker), at: at)
      }
      at += 20
    }
  }
}
