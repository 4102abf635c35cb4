package import Wire

// The contract; its behaviour is to be written.

/// A full ICE agent for one component (RFC 8445, 8838, 7675) without I/O.
package struct ICEAgent: Machine {
  package private(set) var localCredentials: ICECredentials
  package private(set) var role: ICERole = .controlling

  package init(servers: [ICEServer], entropy: EntropyStream) {
    localCredentials = ICECredentials(from: entropy)
  }

  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {}

  package var deadline: Instant? { nil }

  /// Every pair of the present checklist, oldest first.
  package var pairs: [ICEPairReport] { [] }
}
