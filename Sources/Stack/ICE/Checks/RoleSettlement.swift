import Wire

/// Decides which side chooses the pair (RFC 8445 section 6.1.1), and how it ends when both sides
/// think the same (sections 7.2.5.1 and 7.3.1.1).
struct RoleSettlement {
  /// What a request says of the roles.
  enum Verdict {
    /// The sides agree.
    case agreed
    /// The peer has to change its role.
    case refused
    /// This side changed its role.
    case changed
  }

  private(set) var role = ICERole.controlling
  private(set) var tieBreaker: UInt64

  init(tieBreaker: UInt64) { self.tieBreaker = tieBreaker }

  /// Sets the role; false when it does not change.
  mutating func setRole(_ new: ICERole) -> Bool {
    guard role != new else { return false }
    role = new
    return true
  }

  /// Compares what a request claims: the tie-breaker of the role that it names.
  mutating func settle(controlling: UInt64?, controlled: UInt64?) -> Verdict {
    switch role {
    case .controlling:
      guard let theirs = controlling else { return .agreed }
      if tieBreaker >= theirs { return .refused }
      role = .controlled
    case .controlled:
      guard let theirs = controlled else { return .agreed }
      if tieBreaker < theirs { return .refused }
      role = .controlling
    }
    return .changed
  }

  /// Gives way to a peer that refused a role, with another tie-breaker; false when another conflict
  /// has changed the role since the request that claimed it.
  mutating func concede(_ claimed: ICERole, _ entropy: EntropyStream) -> Bool {
    guard claimed == role else { return false }
    tieBreaker = entropy.integer(UInt64.self)
    role = role == .controlling ? .controlled : .controlling
    return true
  }
}
