import Peer

/// A wait with a time limit.
enum TimeLimit {
  /// Waits, and throws what the wait threw, if anything.
  /// - Throws: also `TimeoutError` after the limit and `AbortError` if the caller's task was
  ///   cancelled.
  static func wait(
    for what: String, within limit: Duration,
    until ended: @escaping @Sendable () async -> PeerError?
  ) async throws(PeerError) {
    let outcome = await withTaskGroup(of: PeerError?.self) { group in
      group.addTask { await ended() }
      group.addTask {
        try? await Task.sleep(for: limit)
        return PeerError(name: "TimeoutError", message: "\(what) took longer than \(limit)")
      }
      let first = await group.next() ?? nil
      group.cancelAll()
      return first
    }
    guard let outcome else { return }
    try throwIfCancelled(what)
    throw outcome
  }

  /// Throws `AbortError` if the current task was cancelled, which ends every stream of states.
  static func throwIfCancelled(_ what: String) throws(PeerError) {
    guard Task.isCancelled else { return }
    throw PeerError(name: "AbortError", message: "the wait for \(what) was cancelled")
  }
}
