import Peer

/// The inputs that follow from outputs of a peer and wait, in order, until the step that caused
/// them is complete.
struct InputQueue {
  private var inputs: [PeerInput] = []
  private var head = 0

  var isEmpty: Bool { head == inputs.count }

  mutating func append(_ input: PeerInput) { inputs.append(input) }

  /// Takes out the oldest input; nil when none waits.
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

  /// Handles a path that refuses packets: once per path until the peer has heard of it.
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
