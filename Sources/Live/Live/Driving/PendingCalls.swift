import Peer

/// The API calls that a peer has not answered yet, and the answers that their callers have not
/// heard of yet.
struct PendingCalls {
  typealias Completion = @Sendable (PeerReply) -> Void

  private var waiting: [(id: UInt32, complete: Completion)] = []
  /// The replies of the step under way: callers hear of them after everything else that it did.
  private(set) var completed: [(complete: Completion, reply: PeerReply)] = []
  private var lastID: UInt32 = 0

  /// Handles a call whose reply goes to the closure; returns its number.
  mutating func begin(_ complete: @escaping Completion) -> UInt32 {
    lastID &+= 1
    waiting.append((lastID, complete))
    return lastID
  }

  /// Handles the reply to a call; one that nobody waits for is dropped.
  mutating func complete(_ reply: PeerReply, to id: UInt32) {
    guard let index = waiting.firstIndex(where: { $0.id == id }) else { return }
    completed.append((waiting.remove(at: index).complete, reply))
  }

  /// The callers have heard what was given.
  mutating func forgetGiven() { completed.removeAll(keepingCapacity: true) }

  /// Gives up what was not answered: who waits for it, oldest first.
  mutating func abandon() -> [Completion] {
    defer { waiting = [] }
    return waiting.map(\.complete)
  }
}
