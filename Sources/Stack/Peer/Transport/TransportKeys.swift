import JSEP
import Secure
import Wire

/// The DTLS association and its keys: role, the peer's fingerprints (RFC 8842 section 4), and SRTP
/// with the keys (RFC 5764).
struct TransportKeys: ~Copyable {
  /// Why there are no certificates, as a sentence.
  let failure: String?
  /// The role in the current or last association.
  private(set) var role: DTLSRole?
  /// The result of the last handshake.
  private(set) var secured: DTLSResult?

  private let dtls: (any DTLSTransporting)?
  private let security: any SecurityFactory
  private var srtp: SRTPContext?
  /// The peer's expected fingerprints.
  private var remoteFingerprints: [CertificateFingerprint] = []
  private var outputs = Outbox<DTLSTransport.Output>()

  /// Creates the peer's certificate, unless some are given.
  init(
    entropy: EntropyStream, wallClock: WallClock, certificates: [PeerCertificate],
    profiles: [SRTPProtection], security: any SecurityFactory
  ) {
    self.security = security
    do throws(SecureError) {
      dtls = try security.transport(
        entropy: entropy, wallClock: wallClock, certificates: certificates, profiles: profiles)
      failure = nil
    } catch {
      dtls = nil
      failure = error.reason
    }
  }

  /// Uses the certificates of another transport.
  init(beside first: borrowing TransportKeys, entropy: EntropyStream) {
    security = first.security
    do throws(SecureError) {
      dtls = try first.dtls?.another(entropy: entropy)
      failure = first.failure
    } catch {
      dtls = nil
      failure = error.reason
    }
  }

  var state: DTLSTransportState { dtls?.state ?? .new }
  var deadline: Instant? { dtls?.deadline }
  var certificates: [[UInt8]] { dtls?.certificates ?? [] }
  var fingerprints: [CertificateFingerprint] { dtls?.fingerprints ?? [] }
  var hasProtection: Bool { srtp != nil }

  // MARK: The association

  /// Returns the input that starts an association, or another one for other fingerprints; nil while
  /// the roles are open, and if there is nothing to start.
  /// - Parameter pathIsOld: whether the path may still lead to the previous peer.
  mutating func begin(with peer: RemoteTransport, pathIsOld: Bool) -> DTLSTransport.Input? {
    guard let dtls, let isClient = peer.localIsDTLSClient else { return nil }
    let isFirst = dtls.state == .new
    guard isFirst || peer.fingerprints != remoteFingerprints && !pathIsOld else { return nil }
    let role: DTLSRole = isClient ? .client : .server
    self.role = role
    remoteFingerprints = peer.fingerprints
    return isFirst
      ? .start(role, remoteFingerprints: peer.fingerprints)
      : .restart(role, remoteFingerprints: peer.fingerprints)
  }

  /// Passes an input to the association.
  /// - Returns: whether to process its outputs; false if an outer call already does.
  mutating func step(_ input: DTLSTransport.Input, at now: Instant) -> Bool {
    guard let dtls else { return false }
    let isOutermost = outputs.isEmpty
    dtls.step(input, at: now, into: &outputs)
    return isOutermost
  }

  /// The association's next output.
  mutating func next() -> DTLSTransport.Output? { outputs.next() }

  // MARK: Protection

  /// Sets up SRTP with the keys that a finished handshake exported (RFC 5764 section 4.2).
  mutating func secure(_ result: DTLSResult) throws(SecureError) {
    srtp = try security.protection(result)
    secured = result
  }

  /// Protects a packet in place, if there are keys.
  mutating func protect(_ packet: inout [UInt8], isRTCP: Bool) throws(SRTPContext.Refusal) {
    if isRTCP { try srtp?.protectRTCP(&packet) } else { try srtp?.protectRTP(&packet) }
  }

  /// Decrypts a packet in place, if there are keys.
  mutating func unprotect(_ packet: inout [UInt8], isRTCP: Bool) throws(SRTPContext.Refusal) {
    if isRTCP { try srtp?.unprotectRTCP(&packet) } else { try srtp?.unprotectRTP(&packet) }
  }
}
