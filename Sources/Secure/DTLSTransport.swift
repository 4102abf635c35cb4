package import Wire

// The contract; its behaviour is to be written.

/// One DTLS 1.2 association over OpenSSL whose time and randomness are ours (RFC 6347, 5764, 8842).
///
/// Making it draws the key, certificate and context from the stream in a fixed order.
package final class DTLSTransport: Machine {
  package enum Input {
    /// Begins in a role; the peer's certificate must match one of the fingerprints.
    case start(DTLSRole, remoteFingerprints: [Fingerprint])
    /// A datagram of the DTLS range. Those that come before `start` are kept, up to a small limit.
    case datagram([UInt8])
    /// Data for the peer over the established association (SCTP packets).
    case send([UInt8])
    case deadline
    /// Sends close_notify.
    case close
  }

  package enum Output {
    case datagram([UInt8])
    case state(DTLSState)
    case established(DTLSResult)
    case data([UInt8])
    /// Why the association failed, in words.
    case failure(String)
  }

  /// The fingerprint of the own certificate, sha-256.
  package let fingerprint: Fingerprint
  /// The own certificate in DER.
  package let certificate: [UInt8]
  package private(set) var state: DTLSState = .new

  package init(entropy: EntropyStream, wallClock: WallClock) throws(SecureError) {
    throw SecureError(reason: "not written yet")
  }

  package func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {}
  package var deadline: Instant? { nil }
}

/// A failure inside one of the cryptographic libraries.
package struct SecureError: Error, Hashable, Sendable {
  /// What failed, in words, with the library's code where it has one.
  package var reason: String
  package init(reason: String) { self.reason = reason }
}
