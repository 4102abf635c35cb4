package import Peer
package import Secure
package import Stats
package import Wire

/// A peer as a replay drives it: the full stack, or a small one in tests.
package protocol ReplayedPeer: AnyObject {
  /// Lets something else secure the transport; comes before the genesis.
  func use(_ security: any SecurityFactory)
  /// Applies one input at an instant and appends what follows from it.
  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>)
  /// When the peer wants its deadline input.
  var deadline: Instant? { get }
  /// How many random bytes were drawn so far.
  var entropyDrawn: UInt64 { get }
  /// The state of all layers; nil when there is none to tell.
  var snapshot: PeerSnapshot? { get }
  /// What getStats would give, or its objects of some types.
  func stats(of types: Set<String>?) -> StatsReport
}

extension ReplayedPeer {
  package func use(_ security: any SecurityFactory) {}
  package var snapshot: PeerSnapshot? { nil }
  package func stats(of types: Set<String>?) -> StatsReport { StatsReport() }
}

extension PeerMachine: ReplayedPeer {}
