/// When negotiationneeded is told: once whenever negotiation is needed while the signaling state is
/// stable (W3C, updating the negotiation-needed flag).
struct NegotiationNeed {
  /// Whether something of the negotiation changed since it was last asked whether it is needed;
  /// the answer takes a look at the descriptions, which is too much for every packet.
  private var isOutdated = true
  /// The last answer.
  private(set) var isNeeded = false
  /// Whether negotiationneeded was told and is still unanswered.
  private var wasTold = false

  mutating func outdate() { isOutdated = true }

  /// Says whether it is to be told now.
  mutating func settle(isStable: Bool, isNeeded: @autoclosure () -> Bool) -> Bool {
    if isOutdated {
      isOutdated = false
      self.isNeeded = isNeeded()
    }
    let isDue = isStable && self.isNeeded
    defer { wasTold = isDue }
    return isDue && !wasTold
  }
}
