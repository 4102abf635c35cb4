import Wire

/// The instant at which an observer works, and when it wants its next deadline.
struct ObserverTime {
  /// What waited longer to show that it is of a call was not of one.
  private static let admissionMaximum = Interval.seconds(60)

  private(set) var now = Instant.zero
  private(set) var deadline: Instant?

  /// Works at an instant from now on.
  mutating func move(to instant: Instant) { now = instant }

  /// Works at the instant when something came that waited since; at most so long is believed.
  mutating func moveBack(to arrival: Instant) {
    if arrival < now { now = max(arrival, now - ObserverTime.admissionMaximum) }
  }

  /// Wants a deadline no later than this.
  mutating func schedule(_ due: Instant?) { deadline = earliest(deadline, due) }

  /// The deadline is there, or no more wanted.
  mutating func forgetDeadline() { deadline = nil }
}
