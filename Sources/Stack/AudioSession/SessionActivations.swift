/// Counts activations of the session; the last deactivation ends it.
struct SessionActivations {
  private(set) var count = 0
  /// Whether initialising the device activated the session.
  private var isHeldByUnit = false

  /// Whether there is exactly one.
  var isLast: Bool { count == 1 }
  /// Whether the device's activation is the only one.
  var isLastOfUnit: Bool { isHeldByUnit && isLast }

  mutating func add() { count += 1 }

  /// Removes one; ignored if there is none.
  mutating func remove() { count = max(0, count - 1) }

  /// Records that the device was initialised; counts once.
  mutating func addUnit() {
    if !isHeldByUnit { add() }
    isHeldByUnit = true
  }

  /// Records that the device was released.
  mutating func removeUnit() {
    if isHeldByUnit { remove() }
    isHeldByUnit = false
  }
}
