import Peer

/// A wait that ends in time.
enum TimeLimit {
  /// Returns when a wait ends, and throws what it ended with, if anything.
  ///
  /// - Throws: besides, `TimeoutError` after the limit and `AbortError` when the caller's task was
  ///   cancelled, whatever the wait made of that.
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

  /// Throws `AbortError` when the present task was cancelled, which ends every stream of states.
  static func throwIfCancelled(_ what: String) throws(PeerError) {
    guard Task.isCancelled else { return }
    throw PeerError(name: "AbortError", message: "the wait for \(what) was cancelled")
  }
}
