import Peer
package import Secure
import Tape
package import Wire

/// What secures the transport of a replayed peer when its take was made with other libraries: DTLS
/// is not computed but told from the recording, and the protected packets that a peer sends are
/// those of the recording wherever they hold the same.
///
/// All the rest of the stack runs: what the recording has in the clear or behind the keys that its
/// key log tells is read, and compared with what the stack does now.
package final class RecordedSecurity: SecurityFactory {
  /// Which libraries are not asked.
  package struct Parts: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let dtls = Parts(rawValue: 1)
    package static let srtp = Parts(rawValue: 2)
  }

  private let parts: Parts
  private var parcel = SecuredParcel()
  private var transports: [RecordedTransport] = []
  /// How much more, or less, randomness the recorded peer had drawn.
  private var drawnOffset: UInt64 = 0
  private var didSubstitute = false
  /// What was taken from the recording.
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

  /// Creates a transport that shows these certificates.
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

  /// Tells which step is executed next, and what the recording has of it.
  func begin(_ step: TapeChunk.Step, _ rows: RowList) {
    parcel = SecuredParcel(step, rows)
    didSubstitute = false
  }

  /// Tells that the step was executed, and what the recording says of the machine after it.
  ///
  /// - Parameters:
  ///   - recorded: the random bytes that the recorded peer had drawn.
  ///   - drawn: those that the machine has drawn.
  func end(deadline: Instant?, recorded: UInt64, drawn: UInt64) {
    for transport in transports { transport.recordedDeadline = deadline }
    // Only a step in which DTLS did something may have drawn other randomness.
    if didSubstitute { drawnOffset = recorded &- drawn }
    // What was not asked for is not to come with a step that the recording does not have.
    parcel = SecuredParcel()
  }

  /// The random bytes that the recorded peer would have drawn.
  func drawn(_ machine: UInt64) -> UInt64 { machine &+ drawnOffset }

  /// The next things that DTLS did in this step, up to a record with data.
  ///
  /// - Parameter isClosing: whether one transport after the other closes.
  func consumeTransportItems(isClosing: Bool = false) -> [SecuredParcel.Item] {
    let items = parcel.consumeTransportItems(isClosing: isClosing)
    if !items.isEmpty { didSubstitute = true }
    for case .datagram in items { ledger.datagrams += 1 }
    for case .established in items { ledger.associations += 1 }
    return items
  }

  /// The next record with data that was sent in this step.
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

/// How much of a replay was taken from the recording.
struct SubstitutionLedger: Hashable, Sendable {
  var certificates = 0
  var associations = 0
  /// Datagrams of handshakes and alerts, and records with data.
  var datagrams = 0
  var records = 0
  /// Media and control packets, and how many of them this library would have made otherwise.
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
  /// What was taken, in words: one line for each layer.
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
