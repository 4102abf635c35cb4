import Peer
import RTP
import Secure
import Tape
import Wire

/// The DTLS and SRTP outputs of a recorded step, in order.
struct SecuredParcel {
  enum Item {
    case datagram([UInt8])
    case data(DTLSRecord)
    case state(DTLSTransportState)
    case established(DTLSResult)
    case failure(String)
  }

  private var items: [Item] = []
  private var protected: [[UInt8]] = []
  /// The certificates that the peer generated in this step.
  private(set) var certificates: [[UInt8]] = []

  init() {}

  init(_ step: TapeChunk.Step, _ rows: RowList) {
    var secured: SecuredText?
    for row in step.outputRows {
      switch rows.table(row) {
      case .packet:
        if let packet = PacketRow(rows, row) { add(RelayedBytes.inside(packet.bytes)) }
      case .state:
        if let row = StateRow(rows, row), row.machine.hasPrefix("dtls"),
          let state = DTLSTransportState(rawValue: row.to)
        {
          items.append(.state(state))
        }
      case .event:
        guard let event = EventRow(rows, row) else { continue }
        let detail = event.detail
        switch event.type {
        case "certificate":
          if let made = CanonicalJSON.value(CertificateText.self, from: detail) {
            certificates.append(made.bytes)
          }
        case "secured": secured = CanonicalJSON.value(SecuredText.self, from: detail)
        case "keylog":
          if let secured, let log = CanonicalJSON.value(KeyLogText.self, from: detail)?.log {
            addResult(secured, log)
          }
        case "refused":
          let refusal = CanonicalJSON.value(Refusal.self, from: detail)
          if let refusal, refusal.layer == "dtls" { items.append(.failure(refusal.reason)) }
        default: break
        }
      default: break
      }
    }
  }

  private struct Refusal: Decodable {
    var layer: String
    var reason: String
  }

  private mutating func add(_ bytes: [UInt8]) {
    switch DatagramClass(bytes.span.bytes) {
    case .dtls:
      let records = DTLSRecord.all(in: bytes)
      if records.count == 1, records[0].type == DTLSRecord.applicationData {
        items.append(.data(records[0]))
      } else {
        items.append(.datagram(bytes))
      }
    case .rtp, .rtcp: protected.append(bytes)
    default: break
    }
  }

  private mutating func addResult(_ secured: SecuredText, _ log: KeyLog) {
    let profile = SRTPProtection(rawValue: secured.profile)?.profile
    guard let role = DTLSRole(rawValue: secured.role), (profile == nil) == secured.profile.isEmpty
    else { return }
    var keys: (send: [UInt8], receive: [UInt8]) = ([], [])
    if let profile {
      guard
        let derived = log.secrets.srtpKeys(profile, cipherSuite: secured.cipherSuite, role: role)
      else { return }
      keys = derived
    }
    var result = DTLSResult(
      profile: profile, sendKey: keys.send, receiveKey: keys.receive,
      version: secured.version, cipherSuite: secured.cipherSuite,
      remoteCertificate: log.remoteCertificate, localCertificate: log.localCertificate,
      secrets: log.secrets)
    result.remoteIssuers = log.remoteIssuers
    items.append(.established(result))
  }

  /// Why DTLS could not start; nil if it could.
  var failure: String? {
    if certificates.isEmpty, case .failure(let reason)? = items.first { return reason }
    return nil
  }

  /// Consumes items up to the next application data record or, while closing, to the end of an
  /// association.
  mutating func consumeTransportItems(isClosing: Bool) -> [Item] {
    let last = items.firstIndex {
      if case .state(.closed) = $0 { return isClosing }
      return false
    }
    let data = items.firstIndex {
      if case .data = $0 { return true }
      return false
    }
    let end = min(data ?? items.count, last.map { $0 + 1 } ?? items.count)
    defer { items.removeSubrange(..<end) }
    return Array(items[..<end])
  }

  /// Consumes the next application data record; nil if there is none.
  mutating func consumeDataRecord() -> DTLSRecord? {
    for (index, item) in items.enumerated() {
      guard case .data(let record) = item else { continue }
      items.remove(at: index)
      return record
    }
    return nil
  }

  /// Consumes the recorded packet that has the same length and unencrypted bytes; nil if there is
  /// none.
  mutating func consumeProtected(like packet: [UInt8], isRTCP: Bool) -> [UInt8]? {
    let clear = isRTCP ? 8 : RTPHead.length(packet)
    let index = protected.firstIndex {
      $0.count == packet.count && $0.prefix(clear).elementsEqual(packet.prefix(clear))
    }
    return index.map { protected.remove(at: $0) }
  }
}

/// Measures the part of an RTP packet that SRTP does not encrypt (RFC 3711 section 3.1).
private enum RTPHead {
  static func length(_ packet: [UInt8]) -> Int {
    guard packet.count >= 12 else { return packet.count }
    let sources = 12 + 4 * Int(packet[0] & 15)
    guard packet[0] & 0x10 != 0, packet.count >= sources + 4 else { return sources }
    return sources + 4 + 4 * (Int(packet[sources + 2]) << 8 | Int(packet[sources + 3]))
  }
}

/// Unwraps datagrams that a peer sends through a TURN server.
enum RelayedBytes {
  private static let sendIndication = 0x0016
  private static let dataAttribute = 0x0013

  /// Returns the data in a ChannelData message (RFC 8656 section 12.4) or Send indication (section
  /// 11.1); other bytes are returned unchanged.
  static func inside(_ bytes: [UInt8]) -> [UInt8] {
    func number(_ offset: Int) -> Int? {
      guard offset >= 0, offset + 1 < bytes.count else { return nil }
      return Int(bytes[offset]) << 8 | Int(bytes[offset + 1])
    }
    if let first = bytes.first, (0x40..<0x50).contains(first), let length = number(2) {
      return Array(bytes.dropFirst(4).prefix(length))
    }
    guard number(0) == sendIndication else { return bytes }
    var offset = 20
    while let type = number(offset), let length = number(offset + 2) {
      if type == dataAttribute { return Array(bytes.dropFirst(offset + 4).prefix(length)) }
      offset += 4 + (length + 3) / 4 * 4
    }
    return bytes
  }
}
