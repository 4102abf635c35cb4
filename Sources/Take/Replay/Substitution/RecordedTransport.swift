import Secure
import Wire

/// DTLS as a recording has it: what was sent and what became of it is told, not computed.
///
/// Data is opened with the logged keys, and what the stack sends now is compared with what it sent
/// then: another message goes out as another record.
final class RecordedTransport: DTLSTransporting {
  let fingerprints: [CertificateFingerprint]
  let certificates: [[UInt8]]
  private(set) var state = DTLSTransportState.new
  /// The deadline of the recorded peer after the last step; while a handshake is under way, that of
  /// DTLS is not later.
  var recordedDeadline: Instant?

  private unowned let security: RecordedSecurity
  private var role = DTLSRole.client
  private var sealing: DTLSRecordProtection?
  private var opening: DTLSRecordProtection?
  private var window = RecordWindow()
  /// The last record with data that was sent: one that the recording does not have comes after it.
  private var lastSent = DTLSRecord(
    type: DTLSRecord.applicationData, epoch: 1, sequence: 0,
    fragment: [UInt8](repeating: 0, count: 8))
  /// Datagrams with data that overtook the end of the handshake.
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

  /// Puts out what the recording has next.
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

/// Which records came already (RFC 6347 section 4.1.2.6).
private struct RecordWindow {
  private var newest: UInt64 = 0
  /// The newest record and the 63 before it, one bit each.
  private var seen: UInt64 = 0

  /// Whether a record is neither known nor too old to tell; notes that it came.
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
