package import Media
package import Secure
package import Wire

/// The full client stack of one peer connection as one deterministic machine.
///
/// It starts with a genesis. Each input passes completely through all layers: what one layer
/// outputs goes to the next within the same step.
package final class PeerMachine: Machine {
  private let codecs: any CodecFactory
  private var security: any SecurityFactory
  private(set) var stack: PeerStack?
  /// Called with every packet in the clear, for inspecting a replay; set it before the genesis.
  package var onlooker: ((ClearPacket) -> Void)?

  /// Creates a peer that waits for its genesis.
  package init(codecs: any CodecFactory, security: any SecurityFactory = LibrarySecurity()) {
    self.codecs = codecs
    self.security = security
  }

  /// Substitutes what secures the transport; call it before the genesis.
  package func use(_ security: any SecurityFactory) { self.security = security }

  package func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    if stack == nil, case .genesis(let genesis) = input {
      stack = PeerStack(genesis, codecs: codecs, security: security)
      stack?.bundles.first.show(packetsTo: onlooker)
    }
    stack?.step(input, at: now, into: &outbox)
  }

  package var deadline: Instant? { stack?.deadline }

  /// Whether a datagram from an unknown endpoint is a check of the remote peer: it carries this
  /// side's credentials.
  ///
  /// Changes nothing.
  package func recognizes(_ datagram: Datagram) -> Bool {
    stack?.bundles.bound(to: datagram.local).transport.recognizes(datagram.bytes) ?? false
  }

  /// The number of random bytes drawn so far, over all streams.
  package var entropyDrawn: UInt64 { stack?.entropy.drawn ?? 0 }

  /// Label and number of bytes drawn of every random stream.
  package var entropyLedger: [(label: String, drawn: UInt64)] { stack?.entropy.ledger ?? [] }
}
