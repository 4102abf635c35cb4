import Peer
package import Secure
import Tape
package import Wire

/// Replaces a replayed peer's DTLS and SRTP if its take was made with other libraries: DTLS results
/// come from the recording, and so do sent protected packets with the same contents.
///
/// The rest of the stack runs, and everything recorded unencrypted or under the key log's keys is
/// compared.
package final class RecordedSecurity: SecurityFactory {
  /// The libraries to replace.
  package struct Parts: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let dtls = Parts(rawValue: 1)
    package static let srtp = Parts(rawValue: 2)
  }

  private let parts: Parts
  private var parcel = SecuredParcel()
  private var transports: [RecordedTransport] = []
  /// How many more random bytes the recorded peer has drawn than the replayed one.
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

  /// Starts the next step, given its recording.
  func begin(_ step: TapeChunk.Step, _ rows: RowList) {
    parcel = SecuredParcel(step, rows)
    didSubstitute = false
  }

  /// Ends a step, given the machine's recorded state after it.
  ///
  /// - Parameters:
  ///   - recorded: how many random bytes the recorded peer had drawn.
  ///   - drawn: how many the machine has drawn.
  func end(deadline: Instant?, recorded: UInt64, drawn: UInt64) {
    for transport in transports { transport.recordedDeadline = deadline }
    // Only steps in which DTLS was active may have drawn different amounts.
    if didSubstitute { drawnOffset = recorded &- drawn }
    // Leftovers must not leak into a step that the recording lacks.
    parcel = SecuredParcel()
  }

  /// Returns the number of random bytes that the recorded peer would have drawn.
  func drawn(_ machine: UInt64) -> UInt64 { machine &+ drawnOffset }

  /// Consumes this step's recorded DTLS outputs, up to an application data record.
  ///
  /// - Parameter isClosing: whether transports close one after another.
  func consumeTransportItems(isClosing: Bool = false) -> [SecuredParcel.Item] {
    let items = parcel.consumeTransportItems(isClosing: isClosing)
    if !items.isEmpty { didSubstitute = true }
    for case .datagram in items { ledger.datagrams += 1 }
    for case .established in items { ledger.associations += 1 }
    return items
  }

  /// Consumes this step's next sent application data record.
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

/// Counts what a replay substituted from the recording.
struct SubstitutionLedger: Hashable, Sendable {
  var certificates = 0
  var associations = 0
  /// Handshake and alert datagrams, and application data records.
  var datagrams = 0
  var records = 0
  /// Media and control packets, and how many of them this library would have produced differently.
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
  /// Returns a description with one line per layer.
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
        "SRTP: \(replaced) of \(counted(protected, "packet")) would be others and hold the same")
    }
    return lines
  }
}

// MARK: - RecordedTransport

/// DTLS replayed from a recording: handshake results are reported, not computed.
///
/// Application data is decrypted with the logged keys, and what the stack sends is compared with
/// the recorded data; a different message is sent as a new record.
final class RecordedTransport: DTLSTransporting {
  let fingerprints: [CertificateFingerprint]
  let certificates: [[UInt8]]
  private(set) var state = DTLSTransportState.new
  /// The recorded peer's deadline after the last step; during a handshake, DTLS's deadline is no
  /// later.
  var recordedDeadline: Instant?

  private unowned let security: RecordedSecurity
  private var role = DTLSRole.client
  private var sealing: DTLSRecordProtection?
  private var opening: DTLSRecordProtection?
  private var window = RecordWindow()
  /// The last application data record sent; an additional record takes the next number.
  private var lastSent = DTLSRecord(
    type: DTLSRecord.applicationData, epoch: 1, sequence: 0,
    fragment: [UInt8](repeating: 0, count: 8))
  /// Application data that arrived before the end of the handshake.
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

  /// Emits the next recorded outputs.
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

/// The replay window for received records (RFC 6347 section 4.1.2.6).
private struct RecordWindow {
  private var newest: UInt64 = 0
  /// A bitmap of the newest record and the 63 before it.
  private var seen: UInt64 = 0

  /// Records a sequence number; returns whether it is new, and not too old to tell.
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
