import ICE

/// What is gathered before a local description asks for it (RFC 9429 section 3.5.4): nothing of it
/// is told until then.
struct CandidatePool {
  private var isFilling = false
  private var kept: [ICEAgent.Output] = []

  /// Keeps what is gathered from now on.
  mutating func fill() { isFilling = true }

  /// Keeps nothing any longer.
  ///
  /// - Returns: what was kept, in its order.
  mutating func empty() -> [ICEAgent.Output] {
    defer { (isFilling, kept) = (false, []) }
    return kept
  }

  /// Forgets what a generation gathered that is over.
  mutating func restart() { kept = [] }

  /// Holds an output about gathering back; false for others, and once the pool is released.
  mutating func keeps(_ output: ICEAgent.Output) -> Bool {
    guard isFilling else { return false }
    switch output {
    case .localCandidate, .gatheringState, .gatheringFailed, .unsignaledCandidate:
      kept.append(output)
    case .candidatesRemoved(let gone):
      // Nobody heard of them.
      kept.removeAll { entry in
        guard case .localCandidate(let candidate?) = entry else { return false }
        return gone.contains(candidate)
      }
    default: return false
    }
    return true
  }
}
