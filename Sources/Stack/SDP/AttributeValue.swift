package import Wire

/// A known attribute's parsed value.
package protocol AttributeValue: Hashable, Sendable {
  /// The attribute's name, before the colon.
  static var attributeName: AttributeName { get }
  /// The syntax as error messages show it.
  static var syntax: String { get }

  /// Parses the text after the colon; nil if it does not follow the syntax.
  init?(_ text: String)

  /// The text after the colon.
  var text: String { get }
}

/// The scope of attributes: the session level or an m-section.
package protocol AttributeScope: Hashable, Sendable {
  var lines: [SDPLine] { get set }
}

extension AttributeScope {
  package var attributes: [SDPAttribute] {
    lines.compactMap { if case .attribute(let attribute) = $0 { attribute } else { nil } }
  }

  package func has(_ name: AttributeName) -> Bool {
    lines.contains {
      if case .attribute(let attribute) = $0 { attribute.name == name } else { false }
    }
  }

  /// Returns the text after the colon of the first attribute with this name; nil if there is none.
  package func value(_ name: AttributeName) -> String? {
    for case .attribute(let attribute) in lines where attribute.name == name {
      return attribute.value
    }
    return nil
  }

  /// Returns the parsed values of an attribute that may occur several times, in order.
  package func values<Value: AttributeValue>(_: Value.Type) -> [Value] {
    var values: [Value] = []
    for case .attribute(let attribute) in lines where attribute.name == Value.attributeName {
      if let value = Value(attribute.value ?? "") { values.append(value) }
    }
    return values
  }

  /// The direction, if present (RFC 8866 section 6.7).
  package var direction: MediaDirection? {
    for case .attribute(let attribute) in lines {
      if let direction = MediaDirection(rawValue: attribute.name.rawValue) { return direction }
    }
    return nil
  }

  /// The ICE username fragment (RFC 8839 section 5.4).
  package var iceUsernameFragment: String? { value(.iceUsernameFragment) }

  /// The ICE password (RFC 8839 section 5.4).
  package var icePassword: String? { value(.icePassword) }

  /// The ICE options, one token each (RFC 8839 section 5.6).
  package var iceOptions: [String] { (value(.iceOptions) ?? "").fields.map { String($0) } }

  /// The candidate lines, each as the text after `a=`; ICE parses them.
  package var candidates: [String] {
    attributes.filter { $0.name == .candidate }.map(\.text)
  }

  /// Whether all candidates are listed (RFC 8840 section 8.2).
  package var endOfCandidates: Bool { has(.endOfCandidates) }

  /// The certificate fingerprints (RFC 8122 section 5).
  package var fingerprints: [CertificateFingerprint] { values(CertificateFingerprint.self) }

  /// The DTLS role (RFC 8842 section 5.3).
  package var setup: SetupRole? { values(SetupRole.self).first }

  /// The header extensions (RFC 8285 section 8).
  package var extensionMaps: [ExtensionMap] { values(ExtensionMap.self) }

  /// Whether one-byte and two-byte header extensions may be mixed (RFC 8285 section 4.1.2).
  package var allowsMixedExtensions: Bool { has(.extensionMapAllowMixed) }

  package mutating func append(_ line: SDPLine) { lines.append(line) }

  package mutating func append(_ value: some AttributeValue) { lines.append(SDPLine(value)) }

  package mutating func append(_ name: AttributeName) { lines.append(SDPLine(name)) }
}

extension SDPSection {
  /// Payload types and the codecs they stand for (RFC 8866 section 6.6).
  package var rtpMaps: [RTPMap] { values(RTPMap.self) }

  /// Format parameters, from the `fmtp` lines (RFC 8866 section 6.15).
  package var formatParameters: [FormatParameters] { values(FormatParameters.self) }

  /// Feedback messages allowed for the section (RFC 4585 section 4.2).
  package var rtcpFeedback: [RTCPFeedback] { values(RTCPFeedback.self) }

  /// Source attributes, from the `ssrc` lines (RFC 5576 section 4.1).
  package var ssrcs: [SSRCAttribute] { values(SSRCAttribute.self) }

  /// Groups of related sources (RFC 5576 section 4.2).
  package var ssrcGroups: [SSRCGroup] { values(SSRCGroup.self) }

  /// The media streams and the track of the section's sender (RFC 8830 section 2).
  package var msids: [MSID] { values(MSID.self) }

  /// The restriction identifiers (RFC 8851 section 4).
  package var rids: [RestrictionID] { values(RestrictionID.self) }

  /// The simulcast streams (RFC 8853 section 5.1).
  package var simulcast: Simulcast? { values(Simulcast.self).first }

  /// The RTCP destination if RTCP is not multiplexed (RFC 3605).
  package var rtcp: RTCPAddress? { values(RTCPAddress.self).first }

  /// Whether RTP and RTCP share a port (RFC 5761).
  package var multiplexesRTCP: Bool { has(.rtcpMux) || has(.rtcpMuxOnly) }

  /// Whether RTCP may be sent in reduced size (RFC 5506).
  package var reducesRTCPSize: Bool { has(.rtcpReducedSize) }

  /// Whether receivers may measure the round trip with extended reports (RFC 3611 section 5.1).
  package var measuresReceiverRoundTrip: Bool {
    attributes.contains {
      $0.name == .rtcpExtendedReports && $0.value?.contains("rcvr-rtt") ?? false
    }
  }

  /// The SCTP port of data channels (RFC 8841 section 5).
  package var sctpPort: UInt16? { value(.sctpPort).flatMap { UInt16(decimal: $0) } }

  /// The largest message that data channels may carry, in bytes (RFC 8841 section 6).
  package var maximumMessageSize: UInt64? {
    value(.maximumMessageSize).flatMap { UInt64(decimal: $0) }
  }
}

// MARK: - AttributeName

/// An attribute's name; unlisted names are kept as they are.
package struct AttributeName: RawRepresentable, Hashable, Sendable {
  package var rawValue: String

  package init(rawValue: String) { self.rawValue = rawValue }

  // Grouping and identification.
  package static let group = AttributeName(rawValue: "group")
  package static let mid = AttributeName(rawValue: "mid")
  package static let bundleOnly = AttributeName(rawValue: "bundle-only")
  package static let msid = AttributeName(rawValue: "msid")
  package static let msidSemantic = AttributeName(rawValue: "msid-semantic")

  // ICE (RFC 8839, 8840).
  package static let iceUsernameFragment = AttributeName(rawValue: "ice-ufrag")
  package static let icePassword = AttributeName(rawValue: "ice-pwd")
  package static let iceOptions = AttributeName(rawValue: "ice-options")
  package static let iceLite = AttributeName(rawValue: "ice-lite")
  package static let candidate = AttributeName(rawValue: "candidate")
  package static let endOfCandidates = AttributeName(rawValue: "end-of-candidates")

  // DTLS (RFC 8842).
  package static let fingerprint = AttributeName(rawValue: "fingerprint")
  package static let setup = AttributeName(rawValue: "setup")
  package static let tlsID = AttributeName(rawValue: "tls-id")

  // RTP and RTCP.
  package static let rtcp = AttributeName(rawValue: "rtcp")
  package static let rtcpMux = AttributeName(rawValue: "rtcp-mux")
  package static let rtcpMuxOnly = AttributeName(rawValue: "rtcp-mux-only")
  package static let rtcpReducedSize = AttributeName(rawValue: "rtcp-rsize")
  package static let rtcpExtendedReports = AttributeName(rawValue: "rtcp-xr")
  package static let rtcpFeedback = AttributeName(rawValue: "rtcp-fb")
  package static let extensionMap = AttributeName(rawValue: "extmap")
  package static let extensionMapAllowMixed = AttributeName(rawValue: "extmap-allow-mixed")
  package static let rtpMap = AttributeName(rawValue: "rtpmap")
  package static let formatParameters = AttributeName(rawValue: "fmtp")
  package static let ssrc = AttributeName(rawValue: "ssrc")
  package static let ssrcGroup = AttributeName(rawValue: "ssrc-group")
  package static let rid = AttributeName(rawValue: "rid")
  package static let simulcast = AttributeName(rawValue: "simulcast")

  // Directions (RFC 8866 section 6.7).
  package static let sendrecv = AttributeName(rawValue: "sendrecv")
  package static let sendonly = AttributeName(rawValue: "sendonly")
  package static let recvonly = AttributeName(rawValue: "recvonly")
  package static let inactive = AttributeName(rawValue: "inactive")

  // Data channels (RFC 8841).
  package static let sctpPort = AttributeName(rawValue: "sctp-port")
  /// From drafts before RFC 8841: port, protocol and number of streams.
  package static let sctpMap = AttributeName(rawValue: "sctpmap")
  package static let maximumMessageSize = AttributeName(rawValue: "max-message-size")
}

// MARK: - AttributeRule

/// The parser's rule for an attribute: its syntax and whether it may occur only once.
struct AttributeRule: Sendable {
  /// The attribute's name in error messages, if a scope may have it only once.
  var loner: String?
  /// The syntax as error messages show it.
  var syntax: String?
  var accepts: @Sendable (String) -> Bool = { _ in true }

  /// Returns the rule for an attribute; nil if the attribute is unknown.
  static func rule(for name: AttributeName) -> AttributeRule? { rules[name.rawValue] }

  /// Returns the error in an attribute; nil if it is valid.
  func complaint(about attribute: SDPAttribute) -> String? {
    guard let syntax, !accepts(attribute.value ?? "") else { return nil }
    return "a=\(attribute.name.rawValue) must \(syntax)"
  }

  private static let rules: [String: AttributeRule] = {
    var rules: [String: AttributeRule] = [
      AttributeName.tlsID.rawValue: AttributeRule(loner: "a=tls-id"),
      AttributeName.mid.rawValue: AttributeRule(
        loner: "a=mid", syntax: "name the section", accepts: { $0.isVisible }),
      AttributeName.candidate.rawValue: AttributeRule(
        syntax: "describe a candidate", accepts: { !$0.isEmpty }),
      // Lengths as in RFC 8839 section 5.4.
      AttributeName.iceUsernameFragment.rawValue: AttributeRule(
        loner: "a=ice-ufrag", syntax: "have 4 to 256 characters",
        accepts: { $0.isVisible && (4...256).contains($0.utf8.count) }),
      AttributeName.icePassword.rawValue: AttributeRule(
        loner: "a=ice-pwd", syntax: "have 22 to 256 characters",
        accepts: { $0.isVisible && (22...256).contains($0.utf8.count) }),
      AttributeName.sctpPort.rawValue: AttributeRule(
        loner: "a=sctp-port", syntax: "be a port", accepts: { UInt16(decimal: $0) != nil }),
      AttributeName.maximumMessageSize.rawValue: AttributeRule(
        loner: "a=max-message-size", syntax: "be a number of bytes",
        accepts: { UInt64(decimal: $0) != nil }),
    ]
    for direction in MediaDirection.allCases {
      rules[direction.rawValue] = AttributeRule(loner: "direction")
    }
    func add<Value: AttributeValue>(_: Value.Type, isLoner: Bool = false) {
      let name = Value.attributeName.rawValue
      rules[name] = AttributeRule(
        loner: isLoner ? "a=" + name : nil, syntax: "read " + Value.syntax,
        accepts: { Value($0) != nil })
    }
    add(RTPMap.self)
    add(FormatParameters.self)
    add(RTCPFeedback.self)
    add(ExtensionMap.self)
    add(SSRCAttribute.self)
    add(SSRCGroup.self)
    add(MSID.self)
    add(RestrictionID.self)
    add(Simulcast.self, isLoner: true)
    add(SectionGroup.self)
    add(CertificateFingerprint.self)
    add(SetupRole.self, isLoner: true)
    add(RTCPAddress.self, isLoner: true)
    add(SCTPMap.self)
    return rules
  }()
}

// MARK: - Fields

// Descriptions are split by bytes, because a space followed by a combining mark is one Swift
// character, but still a space to every other parser.

extension Substring {
  /// The non-empty parts between spaces.
  var fields: [Substring] { split(on: UInt8(ascii: " ")) }

  /// Returns the non-empty parts between occurrences of an ASCII character.
  func split(on separator: UInt8) -> [Substring] {
    var parts: [Substring] = []
    var rest = self
    while let end = rest.utf8.firstIndex(of: separator) {
      if end != rest.startIndex { parts.append(rest[..<end]) }
      rest = rest[rest.utf8.index(after: end)...]
    }
    if !rest.isEmpty { parts.append(rest) }
    return parts
  }

  /// Splits at the first occurrence of an ASCII character; nil if there is none.
  func cut(at separator: UInt8) -> (head: Substring, tail: Substring)? {
    guard let index = utf8.firstIndex(of: separator) else { return nil }
    return (self[..<index], self[utf8.index(after: index)...])
  }

  /// Whether this is a token (RFC 8866 section 9), that is, visible ASCII except a few separators.
  var isToken: Bool {
    for byte in utf8 {
      switch byte {
      case 0x21, 0x23...0x27, 0x2a...0x2b, 0x2d...0x2e, 0x30...0x39, 0x41...0x5a, 0x5e...0x7e:
        continue
      default: return false
      }
    }
    return !isEmpty
  }

  /// Whether this is visible ASCII text without spaces.
  var isVisible: Bool {
    for byte in utf8 where byte < 0x21 || byte > 0x7e { return false }
    return !isEmpty
  }

  /// Whether this is a decimal number of any length.
  var isNumber: Bool {
    for byte in utf8 where byte < 0x30 || byte > 0x39 { return false }
    return !isEmpty
  }
}

extension String {
  /// The non-empty parts between spaces.
  var fields: [Substring] { self[...].fields }

  /// Returns the non-empty parts between occurrences of an ASCII character.
  func split(on separator: UInt8) -> [Substring] { self[...].split(on: separator) }

  /// Splits at the first occurrence of an ASCII character; nil if there is none.
  func cut(at separator: UInt8) -> (head: Substring, tail: Substring)? {
    self[...].cut(at: separator)
  }

  /// The text without leading and trailing spaces and tabs.
  var withoutSpacesAround: String {
    let isSpace: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    let rest = utf8.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
    return String(decoding: Array(rest), as: UTF8.self)
  }

  /// Whether this is a token (RFC 8866 section 9), that is, visible ASCII except a few separators.
  package var isToken: Bool { self[...].isToken }

  /// Whether this is visible ASCII text without spaces.
  var isVisible: Bool { self[...].isVisible }
}

extension FixedWidthInteger {
  /// Parses decimal digits only: no sign, no spaces, no overflow; nil for anything else.
  init?(decimal text: Substring) {
    guard text.isNumber else { return nil }
    self.init(text)
  }

  /// Parses decimal digits only: no sign, no spaces, no overflow; nil for anything else.
  package init?(decimal text: String) { self.init(decimal: text[...]) }
}
