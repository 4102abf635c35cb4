package import Wire

/// Grouped sections: `BUNDLE 0 1 2` (RFC 5888 section 5).
package struct SectionGroup: AttributeValue {
  package static let attributeName = AttributeName.group
  package static let syntax = "SEMANTICS MID ..."

  package var semantics: String
  package var mids: [String]

  package init(semantics: String, mids: [String]) {
    self.semantics = semantics
    self.mids = mids
  }

  /// Returns a group of sections that share a transport (RFC 9143 section 7.1).
  package static func bundle(_ mids: [String]) -> Self { Self(semantics: "BUNDLE", mids: mids) }

  /// Returns a lip-sync group: sections that play together (RFC 5888 section 7).
  package static func lipSync(_ mids: [String]) -> Self { Self(semantics: "LS", mids: mids) }

  package init?(_ text: String) {
    let fields = text.fields.map { String($0) }
    guard let semantics = fields.first else { return nil }
    self.init(semantics: semantics, mids: Array(fields.dropFirst()))
  }

  package var text: String { ([semantics] + mids).joined(separator: " ") }
}

extension CertificateFingerprint: AttributeValue {
  package static let attributeName = AttributeName.fingerprint
  package static let syntax = "HASH XX:XX:..."

  package init?(_ text: String) {
    let fields = text.fields
    guard fields.count == 2, fields[0].isToken, fields[1].utf8.count % 3 == 2 else { return nil }
    for (index, character) in fields[1].utf8.enumerated() {
      switch character {
      case UInt8(ascii: ":"):
        guard index % 3 == 2 else { return nil }
      case 0x30...0x39, 0x41...0x46, 0x61...0x66:
        guard index % 3 != 2 else { return nil }
      default: return nil
      }
    }
    self.init(algorithm: String(fields[0]), value: String(fields[1]))
  }

  package var text: String { algorithm + " " + value }
}

/// The side that opens the DTLS association (RFC 4145 section 4, RFC 8842 section 5.3).
package enum SetupRole: String, AttributeValue, CaseIterable {
  /// The writer is the client.
  case active
  /// The writer is the server.
  case passive
  /// The answerer chooses.
  case actpass
  /// No association for now.
  case holdconn

  package static let attributeName = AttributeName.setup
  package static let syntax = "active|passive|actpass|holdconn"

  package init?(_ text: String) { self.init(rawValue: text) }

  package var text: String { rawValue }
}

/// The RTCP destination when it does not share RTP's port: `9 IN IP4 0.0.0.0` (RFC 3605).
package struct RTCPAddress: AttributeValue {
  package static let attributeName = AttributeName.rtcp
  package static let syntax = "PORT [IN IP4|IP6 ADDRESS]"

  package var port: UInt16
  package var address: ConnectionData?

  package init?(_ text: String) {
    let fields = text.fields
    guard fields.count == 1 || fields.count == 4, let port = UInt16(decimal: fields[0]) else {
      return nil
    }
    if fields.count == 4 {
      guard let address = ConnectionData(fields[1...].joined(separator: " ")) else { return nil }
      self.address = address
    }
    self.port = port
  }

  package var text: String { "\(port)" + (address.map { " " + $0.text } ?? "") }
}

/// The protocol on an SCTP port: `5000 webrtc-datachannel 1024` (draft-ietf-mmusic-sctp-sdp-07,
/// which browsers used until 2018; RFC 8841 dropped it).
package struct SCTPMap: AttributeValue {
  package static let attributeName = AttributeName.sctpMap
  package static let syntax = "PORT PROTOCOL [STREAMS]"

  package var port: UInt16
  /// The application protocol over SCTP: `webrtc-datachannel`, or another one.
  package var application: String
  /// The number of streams the writer accepts.
  package var streams: UInt32?

  package init(port: UInt16, application: String, streams: UInt32? = nil) {
    self.port = port
    self.application = application
    self.streams = streams
  }

  package init?(_ text: String) {
    let fields = text.fields
    guard fields.count >= 2, let port = UInt16(decimal: fields[0]) else { return nil }
    self.init(
      port: port, application: String(fields[1]),
      streams: fields.count > 2 ? UInt32(decimal: fields[2]) : nil)
  }

  package var text: String { "\(port) \(application)" + (streams.map { " \($0)" } ?? "") }
}
