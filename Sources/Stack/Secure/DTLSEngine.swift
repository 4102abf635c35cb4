import COpenSSL
import Crypto
import Wire

extension DTLSTransport {
  package static var opensslVersion: String {
    String(cString: OpenSSL_version(OPENSSL_FULL_VERSION_STRING))
  }

  /// Returns a fingerprint of how this OpenSSL performs a fixed handshake, 64 hexadecimal digits.
  ///
  /// With equal fingerprints, equal inputs produce equal bytes; with different fingerprints, they
  /// may not. Throws if OpenSSL cannot be driven deterministically, because it then reads a clock
  /// or random source of its own, which no replay could repeat.
  package static func engineFingerprint() throws(SecureError) -> String {
    try engine.get()
  }

  private static let engine = Result<String, SecureError> { () throws(SecureError) in
    var check = DTLSEngineCheck()
    return try check.run()
  }
}

/// A handshake with fixed seeds in which the first copy of every flight is lost.
///
/// It proves that flights are retransmitted on request and only then, and that time and randomness
/// are controlled. A handshake without loss would not reveal a running clock.
private struct DTLSEngineCheck: ~Copyable {
  /// One end of the handshake, with the datagrams that it has yet to process.
  private final class End {
    let role: DTLSRole
    let entropy: EntropyStream
    let association: DTLSAssociation
    var inbox: [[UInt8]] = []
    var certificate: [UInt8] = []
    var isFinished = false

    init(_ role: DTLSRole) throws(SecureError) {
      self.role = role
      entropy = Entropy(seed: [role == .client ? 1 : 2]).stream("dtls")
      association = try DTLSAssociation(entropy: entropy, unixSeconds: 1_700_000_000)
    }
  }

  private static let roundsMaximum = 12
  /// The number of bytes that each end draws at least; fewer mean that OpenSSL uses other
  /// randomness.
  private static let drawnMinimum: UInt64 = 300

  private var trace = SHA256()

  /// Runs the handshake and returns a digest of everything sent and negotiated.
  mutating func run() throws(SecureError) -> String {
    let client = try End(.client)
    let server = try End(.server)
    for end in [client, server] {
      try require(end.association.start(end.role), "a handshake cannot begin")
      end.association.acceptsCertificate = { [unowned end] certificate in
        end.certificate = certificate
        return true
      }
    }
    for round in 0..<Self.roundsMaximum where !(client.isFinished && server.isFinished) {
      let (end, peer) = round % 2 == 0 ? (client, server) : (server, client)
      try require(round == 0 || !end.inbox.isEmpty, "a flight stays away")
      try turn(of: end, peer)
    }
    try require(client.isFinished && server.isFinished, "the handshake does not finish")
    let clientResult = client.association.result(role: .client, remoteCertificate: [])
    let serverResult = server.association.result(role: .server, remoteCertificate: [])
    try require(
      clientResult != nil && clientResult?.sendKey == serverResult?.receiveKey
        && clientResult?.receiveKey == serverResult?.sendKey, "the keys differ")
    trace.update((clientResult?.sendKey ?? []) + (clientResult?.receiveKey ?? []))
    for end in [client, server] {
      try require(end.association.clockReads > 0, "OpenSSL does not read the clock it is given")
      try require(
        end.entropy.drawn >= Self.drawnMinimum, "OpenSSL does not draw its randomness from us")
    }
    return hexadecimal(trace.finish())
  }

  /// Processes an end's inbox, drops the datagrams that it sends, and makes it retransmit them.
  private mutating func turn(of end: End, _ peer: End) throws(SecureError) {
    let datagrams = end.inbox.isEmpty ? [[]] : end.inbox
    end.inbox = []
    for datagram in datagrams {
      let progress = end.association.handshake(datagram)
      if case .failed(let reason) = progress { throw error("the handshake fails: \(reason)") }
      if progress == .finished { end.isFinished = true }
    }
    let lost = record(end)
    if end.isFinished && end.association.waitingFlight == 0 {
      // The server's last flight has no timer; the server repeats it when the client repeats its
      // own last flight.
      guard end.role == .server else { return }
      try require(peer.association.retransmit() == .waiting, "a flight is not sent again")
      for datagram in record(peer) { _ = end.association.read(datagram) }
      peer.inbox = record(end)
      return try require(!peer.inbox.isEmpty, "the last flight is not sent again")
    }
    try require(!lost.isEmpty, "a flight stays away")
    try requireSilence(of: end)
    try require(end.association.retransmit() == .waiting, "a flight is not sent again")
    peer.inbox = record(end)
    try require(!peer.inbox.isEmpty, "a flight is not sent again")
    try requireSilence(of: end)
  }

  private mutating func requireSilence(of end: End) throws(SecureError) {
    try require(
      end.association.handshake() == .waiting && record(end).isEmpty,
      "OpenSSL sends a flight again by itself")
  }

  /// Collects the datagrams an end sent and adds them to the trace, with the number of bytes drawn.
  private mutating func record(_ end: End) -> [[UInt8]] {
    var sent: [[UInt8]] = []
    end.association.drainSent { sent.append($0) }
    var line = ByteWriter()
    line.append(end.role.rawValue)
    line.uint64(end.entropy.drawn)
    line.uint32(UInt32(truncatingIfNeeded: sent.count))
    trace.update(line.bytes)
    for datagram in sent {
      var length = ByteWriter()
      length.uint32(UInt32(truncatingIfNeeded: datagram.count))
      trace.update(length.bytes)
      trace.update(datagram)
    }
    return sent
  }

  private func require(_ condition: Bool, _ problem: String) throws(SecureError) {
    if !condition { throw error(problem) }
  }

  private func error(_ problem: String) -> SecureError {
    SecureError(
      reason:
        "OpenSSL \(DTLSTransport.opensslVersion) cannot be driven deterministically: \(problem)")
  }
}
