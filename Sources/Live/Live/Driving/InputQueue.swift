import Peer

/// Inputs caused by a peer's outputs, in order, until the step that caused them is complete.
struct InputQueue {
  private var inputs: [PeerInput] = []
  private var head = 0

  var isEmpty: Bool { head == inputs.count }

  mutating func append(_ input: PeerInput) { inputs.append(input) }

  /// Removes and returns the oldest input.
  mutating func popFirst() -> PeerInput? {
    guard head < inputs.count else { return nil }
    let input = inputs[head]
    head += 1
    if head == inputs.count {
      inputs.removeAll(keepingCapacity: true)
      head = 0
    }
    return input
  }

  /// Queues a failed path once, until the peer has handled it.
  mutating func append(_ failure: SendFailure) {
    for index in inputs.indices[head...] {
      guard case .sendFailed(var told) = inputs[index], told.local == failure.local,
        told.remote == failure.remote
      else { continue }
      told.packets += failure.packets
      told.bytes += failure.bytes
      inputs[index] = .sendFailed(told)
      return
    }
    inputs.append(.sendFailed(failure))
  }
}
