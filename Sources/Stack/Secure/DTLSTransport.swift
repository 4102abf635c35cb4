package import Wire

/// One DTLS 1.2 association over OpenSSL with controlled time and randomness (RFC 6347, 5764,
/// 8842).
///
/// Creating it draws key, certificate and context from the stream in a fixed order. Bytes and
/// states then depend only on the inputs and their order; retransmission times depend on when the
/// inputs arrive.
package final class DTLSTransport: Machine {
  package enum Input {
    /// Starts in a role; the peer's certificate must match one of the fingerprints.
    case start(DTLSRole, remoteFingerprints: [CertificateFingerprint])
    /// Starts another association with the same certificates, because the peer has other
    /// fingerprints (RFC 8842 section 4).
    case restart(DTLSRole, remoteFingerprints: [CertificateFingerprint])
    /// A datagram whose first byte is in the DTLS range (RFC 7983 section 7).
    ///
    /// Before `start`, datagrams are queued up to a small limit.
    case datagram([UInt8])
    /// Data for the peer (SCTP packets) over the established association.
    case send([UInt8])
    case deadline
    /// Ends the association; sends close_notify if it is established.
    case close
  }

  package enum Output {
    case datagram([UInt8])
    case state(DTLSTransportState)
    /// The handshake is finished and the peer's certificate matches; emitted before the state.
    case established(DTLSResult)
    case data([UInt8])
    /// The reason the association failed, as a sentence; emitted before the state.
    case failure(String)
  }

  /// The maximum number of datagrams queued before the start.
  package static let earlyDatagramsMaximum = 16
  /// A handshake's time limit.
  package static let handshakeMaximum = Interval.seconds(30)

  /// The local certificates' SHA-256 fingerprints.
  package let fingerprints: [CertificateFingerprint]
  /// The local certificates in DER.
  package let certificates: [[UInt8]]
  package private(set) var state: DTLSTransportState = .new
  /// The number of inputs ignored because they did not fit the state, exceeded a limit or were
  /// malformed.
  package private(set) var dropped: UInt64 = 0

  /// The values that the certificates are derived from.
  private struct Origin {
    /// The peer's random stream as it was before the first certificate was drawn from it.
    let entropy: EntropyStream
    let unixSeconds: Int64
    let certificates: [PeerCertificate]
    let profiles: [SRTPProtection]
  }

  private let origin: Origin
  private let association: DTLSAssociation
  private let verifier = CertificateVerifier()
  private var role = DTLSRole.client
  private var early: [[UInt8]] = []
  private var timer = RetransmissionTimer()
  private var handshakeEnd: Instant?

  /// Recreates the given certificates, or creates a key and a certificate valid around the start of
  /// the take.
  ///
  /// The first transport in a process also checks whether OpenSSL can be driven deterministically.
  package convenience init(
    entropy: EntropyStream, wallClock: WallClock, certificates given: [PeerCertificate] = [],
    profiles: [SRTPProtection] = SRTPProtection.preferred
  ) throws(SecureError) {
    _ = try Self.engineFingerprint()
    let now = wallClock.unixNanosecondsAtZero / 1_000_000_000
    guard !given.contains(where: { $0.hasExpired(atUnixSeconds: now) }) else {
      throw SecureError(reason: "a certificate has expired")
    }
    try self.init(
      Origin(
        entropy: entropy.copy, unixSeconds: now, certificates: given, profiles: profiles), entropy,
      isFirst: true)
  }

  /// Creates a peer's certificates from its randomness, or recreates stored ones.
  private init(_ origin: Origin, _ entropy: EntropyStream, isFirst: Bool) throws(SecureError) {
    self.origin = origin
    if origin.certificates.isEmpty {
      association = try DTLSAssociation(
        entropy: entropy, certificateEntropy: isFirst ? nil : origin.entropy.copy,
        unixSeconds: origin.unixSeconds, profiles: origin.profiles)
    } else {
      association = try DTLSAssociation(
        entropy: entropy, certificates: origin.certificates, profiles: origin.profiles)
    }
    certificates = association.certificates
    fingerprints = certificates.compactMap {
      CertificateFingerprint(algorithm: "sha-256", certificate: $0)
    }
    guard fingerprints.count == certificates.count else {
      throw SecureError(reason: "OpenSSL has no SHA-256")
    }
    association.acceptsCertificate = { [verifier] in verifier.accepts($0) }
  }

  package func another(entropy: EntropyStream) throws(SecureError) -> any DTLSTransporting {
    try DTLSTransport(origin, entropy, isFirst: false)
  }

  package var deadline: Instant? { earliest(timer.deadline, handshakeEnd) }

  package func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    switch (input, state) {
    case (.start(let role, let fingerprints), .new):
      start(role, fingerprints, at: now, into: &outbox)
    case (.restart(let role, let fingerprints), _):
      if state != .new { forget() }
      start(role, fingerprints, at: now, into: &outbox)
    case (.datagram(let bytes), .new):
      queue(bytes)
    case (.datagram(let bytes), _) where DTLSRecord.isCutShort(in: bytes):
      dropped += 1
    case (.datagram(let bytes), .connecting) where !bytes.isEmpty:
      let progress = association.handshake(bytes)
      handle(progress, at: now, into: &outbox)
    case (.datagram(let bytes), .connected) where !bytes.isEmpty:
      receive(bytes, into: &outbox)
    case (.send(let message), .connected):
      if !association.write(message) { dropped += 1 }
      flush(into: &outbox)
    case (.deadline, _):
      passDeadline(at: now, into: &outbox)
    case (.close, .new), (.close, .connecting), (.close, .connected):
      close(into: &outbox)
    default:
      dropped += 1
    }
  }
}

// MARK: - Handshake

extension DTLSTransport {
  private func start(
    _ role: DTLSRole, _ fingerprints: [CertificateFingerprint], at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    self.role = role
    verifier.expected = fingerprints
    change(to: .connecting, into: &outbox)
    guard association.start(role) else {
      return fail("OpenSSL cannot begin a handshake", into: &outbox)
    }
    handshakeEnd = now + Self.handshakeMaximum
    handle(association.handshake(), at: now, into: &outbox)
    var kept: [[UInt8]] = []
    swap(&kept, &early)
    for bytes in kept { step(.datagram(bytes), at: now, into: &outbox) }
  }

  private func forget() {
    association.reset()
    verifier.forget()
    early = []
    timer = RetransmissionTimer()
    handshakeEnd = nil
  }

  private func queue(_ bytes: [UInt8]) {
    if early.count < Self.earlyDatagramsMaximum {
      early.append(bytes)
    } else {
      dropped += 1
    }
  }

  private func handle(
    _ progress: DTLSAssociation.Progress, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    flush(into: &outbox)
    timer.follow(flight: association.waitingFlight, at: now)
    switch progress {
    case .waiting: break
    case .finished: finish(into: &outbox)
    case .failed(let reason): fail(verifier.refusal ?? reason, into: &outbox)
    }
  }

  private func finish(into outbox: inout Outbox<Output>) {
    handshakeEnd = nil
    // OpenSSL called the verifier during the handshake; without an accepted certificate, the
    // handshake has failed.
    guard let remote = verifier.accepted else {
      association.shutdown()
      flush(into: &outbox)
      return fail("the peer showed no certificate", into: &outbox)
    }
    guard let result = association.result(role: role, remoteCertificate: remote) else {
      association.shutdown()
      flush(into: &outbox)
      return fail("the handshake gives no keys for SRTP", into: &outbox)
    }
    outbox.append(.established(result))
    change(to: .connected, into: &outbox)
    // The datagram that finished the handshake may also contain application data.
    receive([], into: &outbox)
  }

  private func passDeadline(at now: Instant, into outbox: inout Outbox<Output>) {
    if let handshakeEnd, handshakeEnd <= now {
      return fail(
        "the handshake did not finish within \(Self.handshakeMaximum.milliseconds / 1000) s",
        into: &outbox)
    }
    guard let due = timer.deadline, due <= now else { return }
    let progress = association.retransmit()
    timer.didRetransmit(at: now)
    handle(progress, at: now, into: &outbox)
  }
}

// MARK: - Established association

extension DTLSTransport {
  /// Reads all messages in a datagram; may also answer a retransmission by the peer.
  private func receive(_ bytes: [UInt8], into outbox: inout Outbox<Output>) {
    var reading = association.read(bytes)
    while case .message(let message) = reading {
      outbox.append(.data(message))
      reading = association.read()
    }
    flush(into: &outbox)
    switch reading {
    case .nothing, .message: break
    case .closed: close(into: &outbox)
    case .failed(let reason): fail(reason, into: &outbox)
    }
  }

  private func close(into outbox: inout Outbox<Output>) {
    if state == .connected {
      association.shutdown()
      flush(into: &outbox)
    }
    end(as: .closed, into: &outbox)
  }

  private func fail(_ reason: String, into outbox: inout Outbox<Output>) {
    outbox.append(.failure(reason))
    end(as: .failed, into: &outbox)
  }

  private func end(as state: DTLSTransportState, into outbox: inout Outbox<Output>) {
    early = []
    handshakeEnd = nil
    timer = RetransmissionTimer()
    change(to: state, into: &outbox)
  }

  private func flush(into outbox: inout Outbox<Output>) {
    association.drainSent { outbox.append(.datagram($0)) }
  }

  private func change(to state: DTLSTransportState, into outbox: inout Outbox<Output>) {
    self.state = state
    outbox.append(.state(state))
  }
}

/// The schedule for retransmitting an unanswered DTLS flight (RFC 6347 section 4.2.4.1).
///
/// The first retransmission comes much earlier than the RFC's one second, as in browsers, because
/// ICE has just proved that the path works, so silence means loss.
struct RetransmissionTimer {
  /// The time-out for a flight's first copy.
  static let initial = Interval.milliseconds(100)
  /// The limit up to which the time-out doubles.
  static let maximum = Interval.seconds(3)
  /// The maximum number of retransmissions; with one more, OpenSSL would declare the association
  /// broken.
  static let retransmissionsMaximum = 12

  /// When to retransmit; nil if no flight is waiting or no retransmission is left.
  private(set) var deadline: Instant?

  private var flight: UInt32 = 0
  private var timeout = initial
  private var retransmissions = 0

  /// Records the waiting flight, 0 if there is none; a new flight starts with the initial time-out.
  mutating func follow(flight: UInt32, at now: Instant) {
    guard flight != self.flight else { return }
    self.flight = flight
    timeout = Self.initial
    retransmissions = 0
    deadline = flight == 0 ? nil : now + timeout
  }

  mutating func didRetransmit(at now: Instant) {
    retransmissions += 1
    timeout = min(timeout * 2, Self.maximum)
    deadline = retransmissions < Self.retransmissionsMaximum ? now + timeout : nil
  }
}
