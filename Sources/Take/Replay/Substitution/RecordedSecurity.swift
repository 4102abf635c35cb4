import Peer
package import Secure
import Tape
package import Wire

/// Replaces the DTLS and SRTP of a replayed peer whose take was recorded with other libraries.
///
/// DTLS results come from the recording, and so do sent SRTP packets whose contents are the same.
/// The rest of the stack runs. Everything that was recorded unencrypted, or that the key log can
/// decrypt, is compared.
package final class RecordedSecurity: SecurityFactory {
  /// The libraries that are replaced.
  package struct Parts: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let dtls = Parts(rawValue: 1)
    package static let srtp = Parts(rawValue: 2)
  }

  private let parts: Parts
  private var parcel = SecuredParcel()
  private var transports: [RecordedTransport] = []
  /// How many more random bytes the recorded peer had drawn than the replayed one has.
  private var drawnOffset: UInt64 = 0
  private var didSubstitute = false
  private(set) var ledger = SubstitutionLedger()

  init(_ parts: Parts) { self.parts = parts }

  package func transport(
    entropy: EntropyStream, wallClock: WallClock, certificates: [PeerCertificate],
    profiles: [SRTPProtection]
  ) throws(SecureError) -> any DTLSTransporting {
    guard parts.contains(.dtls) else {
      return try LibrarySecurity().transport(
        entropy: entropy, wallClock: wallClock, certificates: certificates, profiles: profiles)
    }
    didSubstitute = true
    if let reason = parcel.failure { throw SecureError(reason: reason) }
    ledger.certificates += parcel.certificates.count
    return make(parcel.certificates)
  }

  /// Creates a transport with these local certificates.
  func make(_ certificates: [[UInt8]]) -> RecordedTransport {
    didSubstitute = true
    let made = RecordedTransport(self, certificates: certificates)
    transports.append(made)
    return made
  }

  package func protection(_ result: DTLSResult) throws(SecureError) -> SRTPContext? {
    guard let profile = result.profile else { return nil }
    return try SRTPContext(
      profile: profile, sendKey: result.sendKey, receiveKey: result.receiveKey,
      recording: parts.contains(.srtp) ? self : nil)
  }

  // MARK: Steps

  /// Begins a step, and reads its recorded outputs.
  func begin(_ step: TapeChunk.Step, _ rows: RowList) {
    parcel = SecuredParcel(step, rows)
    didSubstitute = false
  }

  /// Ends a step.
  ///
  /// - Parameters:
  ///   - deadline: the recorded deadline after the step.
  ///   - recorded: the number of random bytes that the recorded peer had drawn.
  ///   - drawn: the number of random bytes that the replayed peer has drawn.
  func end(deadline: Instant?, recorded: UInt64, drawn: UInt64) {
    for transport in transports { transport.recordedDeadline = deadline }
    // The numbers of random bytes may differ only in steps with DTLS.
    if didSubstitute { drawnOffset = recorded &- drawn }
    // Outputs that were not consumed must not be used in a step that the recording does not have.
    parcel = SecuredParcel()
  }

  /// Returns how many random bytes the recorded peer would have drawn by now.
  func drawn(_ machine: UInt64) -> UInt64 { machine &+ drawnOffset }

  /// Consumes the step's recorded DTLS outputs up to its next application data record.
  ///
  /// - Parameter isClosing: whether to stop after an association's end, because transports close
  ///   one after another.
  func consumeTransportItems(isClosing: Bool = false) -> [SecuredParcel.Item] {
    let items = parcel.consumeTransportItems(isClosing: isClosing)
    if !items.isEmpty { didSubstitute = true }
    for case .datagram in items { ledger.datagrams += 1 }
    for case .established in items { ledger.associations += 1 }
    return items
  }

  /// Consumes the step's next application data record; nil if there is none.
  func consumeDataRecord() -> DTLSRecord? {
    didSubstitute = true
    return parcel.consumeDataRecord()
  }

  func didTakeData() { ledger.records += 1 }
}

extension RecordedSecurity: SRTPContext.Recording {
  package func sent(like packet: [UInt8], isRTCP: Bool) -> [UInt8]? {
    ledger.protected += 1
    return parcel.consumeProtected(like: packet, isRTCP: isRTCP)
  }

  package func didReplace(isRTCP: Bool) { ledger.replaced += 1 }
}

/// Counts what a replay used from the recording.
struct SubstitutionLedger: Hashable, Sendable {
  var certificates = 0
  var associations = 0
  /// The numbers of handshake and alert datagrams, and of application data records.
  var datagrams = 0
  var records = 0
  /// The number of SRTP and SRTCP packets, and how many of them this machine's library would have
  /// made differently.
  var protected = 0
  var replaced = 0

  static func + (left: Self, right: Self) -> Self {
    SubstitutionLedger(
      certificates: left.certificates + right.certificates,
      associations: left.associations + right.associations,
      datagrams: left.datagrams + right.datagrams, records: left.records + right.records,
      protected: left.protected + right.protected, replaced: left.replaced + right.replaced)
  }
}

extension SubstitutionLedger {
  /// Describes the counts, with a line for each layer.
  func words(_ parts: RecordedSecurity.Parts) -> [String] {
    var lines: [String] = []
    if parts.contains(.dtls) {
      lines.append(
        "DTLS: \(counted(certificates, "certificate")), the keys of "
          + "\(counted(associations, "association")), \(counted(datagrams, "datagram")) and "
          + "\(counted(records, "record")) with data from the recording")
    }
    if parts.contains(.srtp) {
      lines.append(
        "SRTP: \(replaced) of \(counted(protected, "packet")) would differ but have the same "
          + "contents")
    }
    return lines
  }
}

// MARK: - RecordedTransport

/// A DTLS transport that reports recorded handshake results instead of computing them.
///
/// Application data is decrypted with the logged keys. If the stack sends other data than the
/// recording has, the data is encrypted as a new record.
final class RecordedTransport: DTLSTransporting {
  let fingerprints: [CertificateFingerprint]
  let certificates: [[UInt8]]
  private(set) var state = DTLSTransportState.new
  /// The peer's recorded deadline after the last step, which the transport uses during a handshake.
  var recordedDeadline: Instant?

  private unowned let security: RecordedSecurity
  private var role = DTLSRole.client
  private var sealing: DTLSRecordProtection?
  private var opening: DTLSRecordProtection?
  private var window = RecordWindow()
  /// The last application data record that was sent; a record that the recording lacks gets the
  /// next number.
  private var lastSent = DTLSRecord(
    type: DTLSRecord.applicationData, epoch: 1, sequence: 0,
    fragment: [UInt8](repeating: 0, count: 8))
  /// Datagrams that arrived before the handshake was complete.
  private var early: [[UInt8]] = []

  private static let earlyMaximum = 16

  init(_ security: RecordedSecurity, certificates: [[UInt8]]) {
    self.security = security
    self.certificates = certificates
    fingerprints = certificates.compactMap {
      CertificateFingerprint(algorithm: "sha-256", certificate: $0)
    }
  }

  func another(entropy: EntropyStream) throws(SecureError) -> any DTLSTransporting {
    security.make(certificates)
  }

  var deadline: Instant? { state == .connecting ? recordedDeadline : nil }

  func step(
    _ input: DTLSTransport.Input, at now: Instant,
    into outbox: inout Outbox<DTLSTransport.Output>
  ) {
    switch input {
    case .start(let role, _), .restart(let role, _):
      self.role = role
      (sealing, opening, window, early) = (nil, nil, RecordWindow(), [])
      change(to: .connecting, into: &outbox)
      report(into: &outbox)
    case .datagram(let bytes):
      let wasConnected = state == .connected
      if wasConnected { open(bytes, into: &outbox) }
      if state != .new { report(into: &outbox) }
      if !wasConnected, state == .connected {
        for bytes in early + [bytes] { open(bytes, into: &outbox) }
        early = []
      } else if state == .connecting, early.count < Self.earlyMaximum {
        early.append(bytes)
      }
    case .send(let message):
      if state == .connected { send(message, into: &outbox) }
    case .deadline: report(into: &outbox)
    case .close:
      report(isClosing: true, into: &outbox)
      if state != .closed, state != .failed { change(to: .closed, into: &outbox) }
    }
  }

  private func change(to state: DTLSTransportState, into outbox: inout Outbox<DTLSTransport.Output>)
  {
    self.state = state
    outbox.append(.state(state))
  }

  /// Emits recorded outputs up to the next application data record.
  private func report(isClosing: Bool = false, into outbox: inout Outbox<DTLSTransport.Output>) {
    for item in security.consumeTransportItems(isClosing: isClosing) {
      switch item {
      case .datagram(let bytes): outbox.append(.datagram(bytes))
      case .state(let state):
        if state != self.state { change(to: state, into: &outbox) }
      case .established(let result):
        sealing = DTLSRecordProtection(
          result.secrets, cipherSuite: result.cipherSuite, sender: role)
        opening = DTLSRecordProtection(
          result.secrets, cipherSuite: result.cipherSuite,
          sender: role == .client ? .server : .client)
        outbox.append(.established(result))
      case .failure(let reason): outbox.append(.failure(reason))
      case .data: break
      }
    }
  }

  private func open(_ bytes: [UInt8], into outbox: inout Outbox<DTLSTransport.Output>) {
    for record in DTLSRecord.all(in: bytes) where record.type == DTLSRecord.applicationData {
      guard let text = opening?.open(record), window.isNew(record.sequence) else { continue }
      outbox.append(.data(text))
    }
  }

  private func send(_ message: [UInt8], into outbox: inout Outbox<DTLSTransport.Output>) {
    if let sent = security.consumeDataRecord() {
      lastSent = sent
      if sealing == nil || sealing?.open(sent) == message {
        security.didTakeData()
        return outbox.append(.datagram(sent.bytes))
      }
    } else {
      lastSent.sequence += 1
    }
    if let sealed = sealing?.seal(message, like: lastSent) {
      outbox.append(.datagram(sealed.bytes))
    }
  }
}

/// The window that rejects repeated records (RFC 6347 section 4.1.2.6).
private struct RecordWindow {
  private var newest: UInt64 = 0
  /// A bitmap of the records seen among the last 64; the lowest bit is the newest record.
  private var seen: UInt64 = 0

  /// Records a sequence number; returns false if it was seen before or is too old to be checked.
  mutating func isNew(_ sequence: UInt64) -> Bool {
    if seen == 0 || sequence > newest {
      let distance = seen == 0 ? 0 : sequence - newest
      seen = distance < 64 ? seen << distance | 1 : 1
      newest = sequence
      return true
    }
    let age = newest - sequence
    guard age < 64, seen >> age & 1 == 0 else { return false }
    seen |= 1 << age
    return true
  }
}
