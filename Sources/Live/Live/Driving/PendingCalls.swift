import Peer

/// Unanswered API calls of a peer, and replies not delivered to their callers yet.
struct PendingCalls {
  typealias Completion = @Sendable (PeerReply) -> Void

  private var waiting: [(id: UInt32, complete: Completion)] = []
  /// Replies of the current step; delivered after everything else in it.
  private(set) var completed: [(complete: Completion, reply: PeerReply)] = []
  private var lastID: UInt32 = 0

  /// Records a call whose reply goes to the closure; returns its number.
  mutating func begin(_ complete: @escaping Completion) -> UInt32 {
    lastID &+= 1
    waiting.append((lastID, complete))
    return lastID
  }

  /// Records the reply to a call; dropped if nobody waits for it.
  mutating func complete(_ reply: PeerReply, to id: UInt32) {
    guard let index = waiting.firstIndex(where: { $0.id == id }) else { return }
    completed.append((waiting.remove(at: index).complete, reply))
  }

  /// Clears delivered replies.
  mutating func forgetGiven() { completed.removeAll(keepingCapacity: true) }

  /// Removes all unanswered calls; returns their closures, oldest first.
  mutating func abandon() -> [Completion] {
    defer { waiting = [] }
    return waiting.map(\.complete)
  }
}
