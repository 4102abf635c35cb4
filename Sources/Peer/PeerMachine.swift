package import Media
package import Wire

// The contract; its behaviour is to be written.

/// The full client stack of one peer connection as one deterministic machine.
package final class PeerMachine: Machine {
  /// Creates a peer that waits for its genesis.
  package init(codecs: any CodecFactory) {}

  package func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {}

  package var deadline: Instant? { nil }

  /// How many random bytes were drawn so far, over all streams.
  package var entropyDrawn: UInt64 { 0 }
}
