package import Wire

/// A session description (RFC 8866) as WebRTC uses it.
///
/// Unknown lines stay in place: a parsed description prints the same lines again. Typed values are
/// parsed on access, which cannot fail because the parser has validated them. Lines that cannot be
/// parsed are left out and listed in `remarks`, which equality ignores.
package struct SDPDocument: AttributeScope {
  package var origin: Origin
  /// The value of the `s=` line.
  package var sessionName: String
  /// The session-level lines after `s=`, in order.
  package var lines: [SDPLine]
  /// The m-sections, in order.
  package var sections: [SDPSection]
  /// The errors in skipped lines, in order; only the first few are kept.
  package internal(set) var remarks: [SDPError] = []
  /// The numbers of all skipped lines, ascending.
  var omittedLines: [Int] = []

  package static func == (left: Self, right: Self) -> Bool {
    left.origin == right.origin && left.sessionName == right.sessionName
      && left.lines == right.lines && left.sections == right.sections
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(origin)
    hasher.combine(sessionName)
    hasher.combine(lines)
    hasher.combine(sections)
  }

  /// Creates a description with `s=-` and `t=0 0` (RFC 9429 section 5.2.1).
  package init(origin: Origin) {
    self.origin = origin
    sessionName = "-"
    lines = [.other(type: UInt8(ascii: "t"), value: "0 0")]
    sections = []
  }

  package init(origin: Origin, sessionName: String, lines: [SDPLine], sections: [SDPSection]) {
    self.origin = origin
    self.sessionName = sessionName
    self.lines = lines
    self.sections = sections
  }

  /// The `a=group` lines (RFC 5888 section 5).
  package var groups: [SectionGroup] { values(SectionGroup.self) }

  /// The mids of every BUNDLE group (RFC 9143 section 7.1), in order.
  package var bundles: [[String]] { groups.filter { $0.semantics == "BUNDLE" }.map(\.mids) }

  /// Whether the writer supports trickle ICE, stated for the session or in any m-section (RFC 8838
  /// section 3).
  package var trickles: Bool {
    iceOptions.contains("trickle") || sections.contains { $0.iceOptions.contains("trickle") }
  }

  /// The DTLS role of the first transport.
  package var firstSetup: SetupRole? { sections.lazy.compactMap(\.setup).first ?? setup }

  /// Whether the writer is an ICE-lite agent (RFC 8839 section 5.3).
  package var isICELite: Bool { has(.iceLite) }
}

/// One m-section: its `m=` line and the lines up to the next one.
package struct SDPSection: AttributeScope {
  /// The media type, such as audio, video or application.
  package var kind: SectionKind
  /// The port; 0 rejects the section, 9 stands for an address not known yet.
  package var port: UInt16
  /// The number of ports, stated after the port and a slash; nil if none is stated, as in WebRTC.
  package var portCount: UInt16?
  /// The transport protocol, for example `UDP/TLS/RTP/SAVPF`.
  package var transport: String
  /// The media formats: payload types, `webrtc-datachannel`, or the SCTP port in older forms.
  package var formats: [String]
  /// The lines after `m=`, in order.
  package var lines: [SDPLine]

  package init(kind: SectionKind, port: UInt16, transport: String, formats: [String]) {
    self.kind = kind
    self.port = port
    self.transport = transport
    self.formats = formats
    lines = []
  }

  /// The identification tag (RFC 5888 section 4).
  package var mid: String? { value(.mid) }

  /// Whether the section is disabled, that is, has port 0 and is not `bundle-only` (RFC 9143
  /// section 6).
  package var isRejected: Bool { port == 0 && !has(.bundleOnly) }

  package var connection: ConnectionData? {
    get {
      for case .other(UInt8(ascii: "c"), let value) in lines { return ConnectionData(value) }
      return nil
    }
    set {
      let place = lines.firstIndex { $0.type == UInt8(ascii: "c") }
      let line = newValue.map { SDPLine.other(type: UInt8(ascii: "c"), value: $0.text) }
      switch (place, line) {
      case (let place?, let line?): lines[place] = line
      case (let place?, nil): lines.remove(at: place)
      case (nil, let line?): lines.insert(line, at: 0)
      case (nil, nil): break
      }
    }
  }
}

/// The media type: the first token of the `m=` line.
package struct SectionKind: RawRepresentable, Hashable, Sendable {
  package var rawValue: String

  package init(rawValue: String) { self.rawValue = rawValue }

  package static let audio = SectionKind(rawValue: "audio")
  package static let video = SectionKind(rawValue: "video")
  /// Data channels (RFC 8841).
  package static let application = SectionKind(rawValue: "application")
}

// MARK: - SDPLine

/// A line of a description other than the `v=`, `o=`, `s=` and `m=` lines.
package enum SDPLine: Hashable, Sendable {
  /// An `a=` line.
  case attribute(SDPAttribute)
  /// Any other line: the type as ASCII, and everything after the equals sign.
  case other(type: UInt8, value: String)

  /// Creates a line from a typed attribute value.
  package init(_ value: some AttributeValue) {
    self = .attribute(SDPAttribute(Swift.type(of: value).attributeName, value.text))
  }

  package init(_ name: AttributeName, _ value: String? = nil) {
    self = .attribute(SDPAttribute(name, value))
  }

  /// The character before the equals sign, as ASCII.
  package var type: UInt8 {
    switch self {
    case .attribute: UInt8(ascii: "a")
    case .other(let type, _): type
    }
  }

  /// The line without its line end.
  package var text: String {
    switch self {
    case .attribute(let attribute): "a=" + attribute.text
    case .other(let type, let value): String(UnicodeScalar(type)) + "=" + value
    }
  }
}

/// An attribute: a name, and a value unless it is only a property (RFC 8866 section 5.13).
package struct SDPAttribute: Hashable, Sendable {
  package var name: AttributeName
  /// The text after the colon; nil when there is no colon.
  package var value: String?

  package init(_ name: AttributeName, _ value: String? = nil) {
    self.name = name
    self.value = value
  }

  /// The text after `a=`.
  package var text: String { value.map { name.rawValue + ":" + $0 } ?? name.rawValue }
}

// MARK: - SDPSection: Bandwidth

/// The `b=` lines of an m-section (RFC 8866 section 5.8): limits on what the writer receives.
extension SDPSection {
  /// The highest bit rate the peer may send, in bits per second of payload without RTP and lower
  /// headers; nil for no limit.
  ///
  /// From `TIAS` (RFC 3890), or else from `AS` reduced as in RFC 9429 section 5.10. A negative
  /// number, which libwebrtc once wrote for "no limit", is ignored.
  package var receiveBitrateLimit: UInt64? {
    if let bits = bandwidth("TIAS") { return bits }
    guard let kilobits = bandwidth("AS") else { return nil }
    // RTCP gets 5 %, and 50 packets per second have 40 bytes of headers each.
    let (bits, overflows) = kilobits.multipliedReportingOverflow(by: 950)
    let headers: UInt64 = 50 * 40 * 8
    return overflows ? nil : bits - min(bits, headers)
  }

  /// Returns the value of the first `b=` line of a type; nil if there is none.
  private func bandwidth(_ type: String) -> UInt64? {
    for case .other(UInt8(ascii: "b"), let value) in lines {
      guard let (name, number) = value.cut(at: UInt8(ascii: ":")), name == type else { continue }
      return UInt64(decimal: number)
    }
    return nil
  }
}

// MARK: - Origin

/// The session's originator and version, from the `o=` line (RFC 8866 section 5.2).
package struct Origin: Hashable, Sendable {
  package var username: String
  /// The session id: a decimal number, kept as text because peers' numbers may exceed 64 bits.
  package var sessionID: String
  /// The session version: a decimal number that grows with each changed description.
  package var sessionVersion: String
  package var address: ConnectionData

  /// The syntax as error messages show it.
  static let syntax = "USERNAME SESSION-ID VERSION IN IP4|IP6 ADDRESS"

  /// Creates the origin that WebRTC endpoints use (RFC 9429 section 5.2.1): the name is `-` and the
  /// address is 127.0.0.1.
  package init(sessionID: UInt64, sessionVersion: UInt64) {
    username = "-"
    self.sessionID = String(sessionID)
    self.sessionVersion = String(sessionVersion)
    address = ConnectionData(addressType: "IP4", address: "127.0.0.1")
  }

  /// Parses the text after `o=`; nil if it does not follow the syntax.
  init?(_ text: String) {
    let fields = text.fields
    guard fields.count == 6, fields[1].isNumber, fields[2].isNumber,
      let address = ConnectionData(fields[3...].joined(separator: " "))
    else { return nil }
    username = String(fields[0])
    sessionID = String(fields[1])
    sessionVersion = String(fields[2])
    self.address = address
  }

  /// The text after `o=`.
  package var text: String { "\(username) \(sessionID) \(sessionVersion) \(address.text)" }
}

/// The value of a `c=` line (RFC 8866 section 5.7).
package struct ConnectionData: Hashable, Sendable {
  /// The address type, `IP4` or `IP6`.
  package var addressType: String
  /// An address or a host name.
  package var address: String

  /// The syntax as error messages show it.
  static let syntax = "IN IP4|IP6 ADDRESS"

  /// The placeholder until the address is known (RFC 9429 section 5.2.1).
  package static let unknown = ConnectionData(addressType: "IP4", address: "0.0.0.0")

  package init(addressType: String, address: String) {
    self.addressType = addressType
    self.address = address
  }

  package init(_ address: IPAddress) {
    addressType = address.isIPv4 ? "IP4" : "IP6"
    self.address = address.description
  }

  /// Parses the text after `c=`; nil if it does not follow the syntax.
  init?(_ text: String) {
    let fields = text.fields
    guard fields.count == 3, fields[0] == "IN", fields[1] == "IP4" || fields[1] == "IP6" else {
      return nil
    }
    addressType = String(fields[1])
    address = String(fields[2])
  }

  /// The text after `c=`.
  package var text: String { "IN \(addressType) \(address)" }
}

/// The direction of media in a section, as seen by its writer (RFC 8866 section 6.7).
package enum MediaDirection: String, Hashable, Sendable, CaseIterable {
  case sendrecv
  case sendonly
  case recvonly
  case inactive

  package init(sends: Bool, receives: Bool) {
    self = sends ? (receives ? .sendrecv : .sendonly) : (receives ? .recvonly : .inactive)
  }

  package var sends: Bool { self == .sendrecv || self == .sendonly }

  package var receives: Bool { self == .sendrecv || self == .recvonly }

  /// The same direction as seen by the peer.
  package var reversed: MediaDirection { MediaDirection(sends: receives, receives: sends) }

  /// Returns the direction that both this one and `other` allow.
  package func intersected(with other: MediaDirection) -> MediaDirection {
    MediaDirection(sends: sends && other.sends, receives: receives && other.receives)
  }

  package var attributeName: AttributeName { AttributeName(rawValue: rawValue) }
}
