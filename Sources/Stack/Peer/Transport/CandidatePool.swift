import ICE

/// Outputs of gathering before a local description requires it (RFC 9429 section 3.5.4), held back
/// until then.
struct CandidatePool {
  private var isFilling = false
  private var kept: [ICEAgent.Output] = []

  /// Starts holding outputs back.
  mutating func fill() { isFilling = true }

  /// Stops holding outputs back.
  /// - Returns: those held, in order.
  mutating func empty() -> [ICEAgent.Output] {
    defer { (isFilling, kept) = (false, []) }
    return kept
  }

  /// Discards the outputs of a former generation.
  mutating func restart() { kept = [] }

  /// Holds back an output of gathering; false for others, and once the pool is released.
  mutating func holdsBack(_ output: ICEAgent.Output) -> Bool {
    guard isFilling else { return false }
    switch output {
    case .localCandidate, .gatheringState, .gatheringFailed, .unsignaledCandidate:
      kept.append(output)
    case .candidatesRemoved(let gone):
      // They were never reported.
      kept.removeAll { entry in
        guard case .localCandidate(let candidate?) = entry else { return false }
        return gone.contains(candidate)
      }
    default: return false
    }
    return true
  }
}
