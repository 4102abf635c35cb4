package import Wire

/// The typed value of a known attribute.
package protocol AttributeValue: Hashable, Sendable {
  /// The name before the colon.
  static var attributeName: AttributeName { get }
  /// The syntax, for error messages.
  static var syntax: String { get }

  /// Parses the text after the colon; nil if it does not follow the syntax.
  init?(_ text: String)

  /// The text after the colon.
  var text: String { get }
}

/// What attributes belong to: the session level or an m-section.
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

  /// The text after the colon of the first attribute with this name.
  package func value(_ name: AttributeName) -> String? {
    for case .attribute(let attribute) in lines where attribute.name == name {
      return attribute.value
    }
    return nil
  }

  /// The typed values of an attribute that may occur several times, in order.
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

  /// The ICE options as tokens (RFC 8839 section 5.6).
  package var iceOptions: [String] { (value(.iceOptions) ?? "").fields.map { String($0) } }

  /// The candidate lines, each as the text after `a=`; ICE parses them.
  package var candidates: [String] {
    attributes.filter { $0.name == .candidate }.map(\.text)
  }

  /// Whether all candidates have been stated (RFC 8840 section 8.2).
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
  /// The payload types and what they mean (RFC 8866 section 6.6).
  package var rtpMaps: [RTPMap] { values(RTPMap.self) }

  /// The parameters of formats (RFC 8866 section 6.15).
  package var formatParameters: [FormatParameters] { values(FormatParameters.self) }

  /// The feedback messages (RFC 4585 section 4.2).
  package var rtcpFeedback: [RTCPFeedback] { values(RTCPFeedback.self) }

  /// The attributes of sources (RFC 5576 section 4.1).
  package var ssrcs: [SSRCAttribute] { values(SSRCAttribute.self) }

  /// The relations between sources (RFC 5576 section 4.2).
  package var ssrcGroups: [SSRCGroup] { values(SSRCGroup.self) }

  /// The streams and the track that the section's sender belongs to (RFC 8830 section 2).
  package var msids: [MSID] { values(MSID.self) }

  /// The restriction identifiers (RFC 8851 section 4).
  package var rids: [RestrictionID] { values(RestrictionID.self) }

  /// The simulcast streams (RFC 8853 section 5.1).
  package var simulcast: Simulcast? { values(Simulcast.self).first }

  /// Where RTCP goes when it is not multiplexed (RFC 3605).
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
