/// When to emit negotiationneeded: once whenever negotiation is needed while the signaling state is
/// stable (W3C, updating the negotiation-needed flag).
struct NegotiationNeed {
  /// Whether the negotiation changed since the last check, which compares descriptions and is too
  /// expensive for every packet.
  private var isOutdated = true
  /// The last result.
  private(set) var isNeeded = false
  /// Whether negotiationneeded was emitted and is unanswered.
  private var wasEmitted = false

  mutating func outdate() { isOutdated = true }

  /// Returns whether to emit it now.
  mutating func settle(isStable: Bool, isNeeded: @autoclosure () -> Bool) -> Bool {
    if isOutdated {
      isOutdated = false
      self.isNeeded = isNeeded()
    }
    let isDue = isStable && self.isNeeded
    defer { wasEmitted = isDue }
    return isDue && !wasEmitted
  }
}
