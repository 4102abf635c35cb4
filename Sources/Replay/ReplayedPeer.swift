package import Peer
package import Wire

/// A peer as a replay drives it: the full stack, or a small one in tests.
package protocol ReplayedPeer: AnyObject {
  /// Applies one input at an instant and appends what follows from it.
  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>)
  /// When the peer wants its deadline input.
  var deadline: Instant? { get }
  /// How many random bytes were drawn so far.
  var entropyDrawn: UInt64 { get }
}

extension PeerMachine: ReplayedPeer {}
