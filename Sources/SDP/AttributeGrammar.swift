/// What the parser knows about attributes: how their values must read, and which stand alone.
enum AttributeGrammar {
  /// What is wrong with an attribute; nil when it is fine or not known here.
  static func complaint(about attribute: SDPAttribute) -> String? {
    let value = attribute.value ?? ""
    switch attribute.name {
    case .rtpMap: return check(RTPMap.self, value)
    case .formatParameters: return check(FormatParameters.self, value)
    case .rtcpFeedback: return check(RTCPFeedback.self, value)
    case .extensionMap: return check(ExtensionMap.self, value)
    case .ssrc: return check(SSRCAttribute.self, value)
    case .ssrcGroup: return check(SSRCGroup.self, value)
    case .msid: return check(MSID.self, value)
    case .rid: return check(RestrictionID.self, value)
    case .simulcast: return check(Simulcast.self, value)
    case .group: return check(SectionGroup.self, value)
    case .fingerprint: return check(Fingerprint.self, value)
    case .setup: return check(SetupRole.self, value)
    case .rtcp: return check(RTCPAddress.self, value)
    case .mid: return value.isVisible ? nil : "a=mid must name the section"
    case .iceUsernameFragment: return credential(attribute.name, value, 4)
    case .icePassword: return credential(attribute.name, value, 22)
    case .candidate: return value.isEmpty ? "a=candidate must describe a candidate" : nil
    case .sctpPort: return UInt16(decimal: value) == nil ? "a=sctp-port must be a port" : nil
    case .maximumMessageSize:
      return UInt64(decimal: value) == nil ? "a=max-message-size must be a number of bytes" : nil
    default: return nil
    }
  }

  /// What stands at most once in a scope, as a word for error messages; nil for all else.
  static func loner(_ name: AttributeName) -> String? {
    if MediaDirection(rawValue: name.rawValue) != nil { return "direction" }
    return switch name {
    case .mid, .iceUsernameFragment, .icePassword, .setup, .rtcp, .simulcast, .sctpPort,
      .maximumMessageSize, .tlsID:
      "a=" + name.rawValue
    default: nil
    }
  }

  private static func check<Value: AttributeValue>(_: Value.Type, _ text: String) -> String? {
    Value(text) == nil ? "a=\(Value.attributeName.rawValue) must read \(Value.syntax)" : nil
  }

  /// The lengths of RFC 8839 section 5.4.
  private static func credential(_ name: AttributeName, _ value: String, _ least: Int) -> String? {
    if value.isVisible, (least...256).contains(value.utf8.count) { return nil }
    return "a=\(name.rawValue) must have \(least) to 256 characters"
  }
}
