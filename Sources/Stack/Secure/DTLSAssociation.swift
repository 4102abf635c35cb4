import CDTLS
import COpenSSL
import Wire

/// The Swift side of one OpenSSL association: bytes in, bytes out, no clock and no policy.
///
/// It draws all randomness from the initialiser's streams, even for its creation.
final class DTLSAssociation {
  /// The largest datagram sent, in bytes; small enough for all common tunnels.
  static let mtu = 1200
  /// The largest application message, one record (RFC 5246 section 6.2.1).
  static let messageMaximum = 16_384

  /// The result of a handshake step.
  enum Progress: Equatable {
    case waiting
    case finished
    case failed(String)
  }

  enum Reading: Equatable {
    case nothing
    case message([UInt8])
    case closed
    case failed(String)
  }

  /// Checks the peer's certificate in DER during the handshake; refusing it sends a fatal alert.
  var acceptsCertificate: ([UInt8]) -> Bool = { _ in false }

  private let entropy: EntropyStream
  /// The source of randomness while a certificate is being generated; nil otherwise, or if
  /// `entropy` is used for that.
  private var certificateEntropy: EntropyStream?
  private(set) var handle: OpaquePointer?
  /// Local certificates in DER.
  private(set) var certificates: [[UInt8]] = []
  private var sent: [[UInt8]] = []
  /// The length of the longest datagram so far; no message is longer.
  private var readCapacity = 0

  /// Generates a P-256 key and a certificate valid around a Unix time in seconds.
  /// - Parameter certificateEntropy: the randomness for both; nil for the association's stream.
  convenience init(
    entropy: EntropyStream, certificateEntropy: EntropyStream? = nil, unixSeconds: Int64,
    profiles: [SRTPProtection] = SRTPProtection.preferred
  ) throws(SecureError) {
    try self.init(entropy)
    self.certificateEntropy = certificateEntropy
    try add(
      .ecdsaP256, from: unixSeconds,
      to: unixSeconds + PeerCertificate.defaultLifetimeSeconds)
    self.certificateEntropy = nil
    try prepare(profiles)
  }

  /// Recreates stored certificates, at most one per algorithm.
  convenience init(
    entropy: EntropyStream, certificates: [PeerCertificate], profiles: [SRTPProtection]
  ) throws(SecureError) {
    try self.init(entropy)
    for (index, certificate) in certificates.enumerated() {
      guard !certificates[..<index].contains(where: { $0.algorithm == certificate.algorithm })
      else {
        throw SecureError(
          reason: "there are two certificates with a key of type \(certificate.algorithm.rawValue)")
      }
      certificateEntropy = try certificate.entropy()
      try add(
        certificate.algorithm, from: certificate.createdUnixSeconds,
        to: certificate.expiresUnixSeconds)
    }
    certificateEntropy = nil
    try prepare(profiles)
  }

  private init(_ entropy: EntropyStream) throws(SecureError) {
    self.entropy = entropy
    var callbacks = cdtls_callbacks()
    // The C object is freed before this object, so its reference may be unowned.
    callbacks.user = Unmanaged.passUnretained(self).toOpaque()
    callbacks.draw = { user, bytes, count in
      guard let user, let bytes else { return 0 }
      let association = DTLSAssociation.from(user)
      let entropy = association.certificateEntropy ?? association.entropy
      for index in 0..<count { bytes[index] = entropy.byte() }
      return 1
    }
    callbacks.send = { user, bytes, count in
      guard let user else { return }
      let datagram = [UInt8](UnsafeBufferPointer(start: bytes, count: count))
      DTLSAssociation.from(user).sent.append(datagram)
    }
    callbacks.accept = { user, bytes, count in
      guard let user else { return 0 }
      let certificate = [UInt8](UnsafeBufferPointer(start: bytes, count: count))
      return DTLSAssociation.from(user).acceptsCertificate(certificate) ? 1 : 0
    }
    handle = cdtls_new(&callbacks)
    if handle == nil {
      throw SecureError(reason: "OpenSSL cannot be opened: \(Self.libraryError())")
    }
  }

  /// Creates a certificate that is valid from one day before `created`, because a peer's clock may
  /// be slow.
  private func add(
    _ algorithm: CertificateAlgorithm, from created: Int64, to expires: Int64
  ) throws(SecureError) {
    let made = cdtls_add_certificate(
      handle, algorithm == .rsa2048 ? 1 : 0, created - 86_400, expires)
    guard let made, let bytes = Self.bytes(of: made) else {
      throw SecureError(reason: "OpenSSL cannot make a certificate: \(Self.libraryError())")
    }
    certificates.append(bytes)
  }

  private func prepare(_ profiles: [SRTPProtection]) throws(SecureError) {
    let names = profiles.map(\.libraryName).joined(separator: ":")
    guard cdtls_prepare(handle, names) == 1 else {
      throw SecureError(reason: "OpenSSL cannot make a DTLS context: \(Self.libraryError())")
    }
  }

  deinit { cdtls_free(handle) }

  private static func from(_ user: UnsafeMutableRawPointer) -> DTLSAssociation {
    Unmanaged<DTLSAssociation>.fromOpaque(user).takeUnretainedValue()
  }

  /// Returns a certificate in DER; nil if OpenSSL fails.
  private static func bytes(of x509: OpaquePointer) -> [UInt8]? {
    let length = i2d_X509(x509, nil)
    guard length > 0 else { return nil }
    return [UInt8](unsafeUninitializedCapacity: Int(length)) { buffer, count in
      var position = buffer.baseAddress
      count = Int(max(0, i2d_X509(x509, &position)))
    }
  }

  /// Sets the role; must be called first.
  func start(_ role: DTLSRole) -> Bool {
    cdtls_start(handle, role == .server ? 1 : 0, Self.mtu) == 1
  }

  /// Resets the connection so that another association can start.
  func reset() {
    cdtls_reset(handle)
    sent = []
  }

  /// Continues the handshake with or without a datagram.
  func handshake(_ datagram: [UInt8] = []) -> Progress {
    learn(datagram)
    let result = datagram.withUnsafeBufferPointer {
      cdtls_handshake(handle, $0.baseAddress, $0.count)
    }
    switch Int(result) {
    case CDTLS_DONE: return .finished
    case CDTLS_WAITING: return .waiting
    case CDTLS_CLOSED: return .failed("the peer closed the association in the handshake")
    default: return .failed(Self.libraryError())
    }
  }

  private func learn(_ datagram: [UInt8]) {
    readCapacity = min(max(readCapacity, datagram.count), Self.messageMaximum)
  }

  /// Reads the next message, from a new datagram or from the rest of the previous one.
  func read(_ datagram: [UInt8] = []) -> Reading {
    var result: Int32 = 0
    learn(datagram)
    guard readCapacity > 0 else { return .nothing }
    let message = [UInt8](unsafeUninitializedCapacity: readCapacity) { buffer, count in
      result = datagram.withUnsafeBufferPointer {
        cdtls_read(handle, $0.baseAddress, $0.count, buffer.baseAddress, buffer.count)
      }
      count = Int(max(0, result))
    }
    switch Int(result) {
    case CDTLS_WAITING: return .nothing
    case CDTLS_CLOSED: return .closed
    case 1...: return .message(message)
    default: return .failed(Self.libraryError())
    }
  }

  /// Sends one message; returns false if it is empty, too long, or the association is broken.
  func write(_ message: [UInt8]) -> Bool {
    guard (1...Self.messageMaximum).contains(message.count) else { return false }
    return message.withUnsafeBufferPointer {
      cdtls_write(handle, $0.baseAddress, $0.count) == 1
    }
  }

  /// Sends close_notify.
  func shutdown() { cdtls_shutdown(handle) }

  /// The number of the flight that is waiting for the peer's answer; 0 if there is none.
  var waitingFlight: UInt32 { cdtls_flight(handle) }

  /// Retransmits the waiting flight.
  func retransmit() -> Progress {
    cdtls_retransmit(handle) >= 0 ? .waiting : .failed(Self.libraryError())
  }

  /// Passes to `body` the datagrams sent since the last drain.
  func drainSent(_ body: ([UInt8]) -> Void) {
    for datagram in sent { body(datagram) }
    sent.removeAll(keepingCapacity: true)
  }

  /// The number of times that OpenSSL has read the clock.
  var clockReads: UInt32 { cdtls_clock_reads(handle) }

  /// Returns OpenSSL's text for the last error on this thread.
  private static func libraryError() -> String {
    var text = [CChar](repeating: 0, count: 128)
    guard cdtls_library_error(&text, text.count) == 1 else { return "no reason given" }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

// MARK: - Negotiated values

extension DTLSAssociation {
  private var connection: OpaquePointer? { cdtls_connection(handle) }

  /// Returns the result of the finished handshake; nil if its keys cannot be exported.
  func result(role: DTLSRole, remoteCertificate: [UInt8]) -> DTLSResult? {
    guard let connection else { return nil }
    var result = DTLSResult(
      profile: nil, sendKey: [], receiveKey: [],
      version: version(connection),
      cipherSuite: cipherSuite(connection),
      remoteCertificate: remoteCertificate,
      localCertificate: SSL_get_certificate(connection).flatMap(Self.bytes) ?? [],
      secrets: secrets(connection))
    result.remoteIssuers = issuers
    guard let selected = SSL_get_selected_srtp_profile(connection) else { return result }
    let profile = SRTPProfile(rawValue: UInt16(truncatingIfNeeded: selected.pointee.id))
    guard let length = profile.keyingMaterialLength,
      let material = exportKeys(connection, count: length),
      let keys = profile.keys(in: material, role: role)
    else { return nil }
    result.profile = profile
    result.sendKey = keys.send
    result.receiveKey = keys.receive
    return result
  }

  /// The certificates that follow the peer's own, in DER and in the peer's order.
  private var issuers: [[UInt8]] {
    var issuers: [[UInt8]] = []
    while let issuer = cdtls_issuer(handle, Int32(issuers.count)),
      let bytes = Self.bytes(of: issuer)
    {
      issuers.append(bytes)
    }
    return issuers
  }

  private func secrets(_ connection: OpaquePointer) -> DTLSSecrets {
    func bytes(_ capacity: Int, _ read: (UnsafeMutablePointer<UInt8>?, Int) -> Int) -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: capacity)
      let count = bytes.withUnsafeMutableBufferPointer { read($0.baseAddress, $0.count) }
      return Array(bytes.prefix(count))
    }
    return DTLSSecrets(
      clientRandom: bytes(32) { SSL_get_client_random(connection, $0, $1) },
      serverRandom: bytes(32) { SSL_get_server_random(connection, $0, $1) },
      masterSecret: bytes(48) {
        SSL_SESSION_get_master_key(SSL_get_session(connection), $0, $1)
      })
  }

  private func exportKeys(_ connection: OpaquePointer, count: Int) -> [UInt8]? {
    let label = "EXTRACTOR-dtls_srtp"
    var material = [UInt8](repeating: 0, count: count)
    let done = SSL_export_keying_material(
      connection, &material, material.count, label, label.utf8.count, nil, 0, 0)
    return done == 1 ? material : nil
  }

  private func cipherSuite(_ connection: OpaquePointer) -> String {
    guard let cipher = SSL_get_current_cipher(connection),
      let name = SSL_CIPHER_standard_name(cipher)
    else { return "unknown" }
    return String(cString: name)
  }

  /// Returns the record layer version as four hexadecimal digits.
  private func version(_ connection: OpaquePointer) -> String {
    var writer = ByteWriter()
    writer.uint16(UInt16(truncatingIfNeeded: SSL_version(connection)))
    return hexadecimal(writer.bytes).uppercased()
  }
}

extension SRTPProfile {
  /// Master key length in bytes; nil if the profile is not supported.
  var keyLength: Int? { SRTPSuite(self)?.keyLength }

  /// Master salt length in bytes; nil if the profile is not supported.
  var saltLength: Int? { SRTPSuite(self)?.saltLength }
}
