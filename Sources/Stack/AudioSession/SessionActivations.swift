/// How often the session was activated and not given back, by whom: the last one ends it.
struct SessionActivations {
  private(set) var count = 0
  /// Whether making the device ready has activated the session.
  private var isHeldByUnit = false

  /// Whether there is one alone.
  var isLast: Bool { count == 1 }
  /// Whether that of the device is the only one.
  var isLastOfUnit: Bool { isHeldByUnit && isLast }

  mutating func add() { count += 1 }

  /// Gives one back; more than there are have no effect.
  mutating func remove() { count = max(0, count - 1) }

  /// The device was made ready: once counts.
  mutating func addUnit() {
    if !isHeldByUnit { add() }
    isHeldByUnit = true
  }

  /// The device was given back, or is gone.
  mutating func removeUnit() {
    if isHeldByUnit { remove() }
    isHeldByUnit = false
  }
}
