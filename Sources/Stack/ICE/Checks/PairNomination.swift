import Wire

/// Which side wants a pair to be selected (RFC 8445 section 8.1).
struct PairNomination {
  private(set) var isNominated = false
  /// Whether checks carry USE-CANDIDATE because this side chose the pair.
  private(set) var isNominating = false
  /// Whether the peer chose the pair before it was known to work.
  private var wasChosenEarly = false
  /// When the peer last sent USE-CANDIDATE here, and how often since it did so anywhere else.
  private(set) var chosenAt: Instant?
  private(set) var timesChosen = 0

  /// Marks the pair as nominated; false when it was before.
  mutating func setNominated() -> Bool {
    defer { isNominated = true }
    return !isNominated
  }

  mutating func begin() { isNominating = true }

  mutating func end() { isNominating = false }

  /// Records that the peer chose the pair, which is known to work or not.
  mutating func choose(at now: Instant, works: Bool) {
    timesChosen += 1
    chosenAt = now
    if !works { wasChosenEarly = true }
  }

  /// Records that the peer chose another one.
  mutating func chooseOther() { timesChosen = 0 }

  /// Whether the peer chose the pair before it was known to work; true once.
  mutating func removeEarlyChoice() -> Bool {
    defer { wasChosenEarly = false }
    return wasChosenEarly
  }

  /// Forgets who wanted it, because the sides changed their roles.
  mutating func forgetChoices() {
    isNominating = false
    wasChosenEarly = false
  }
}
