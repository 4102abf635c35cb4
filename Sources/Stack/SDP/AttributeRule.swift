import Wire

/// The parser's rule for an attribute: its syntax, and whether it may occur only once.
struct AttributeRule: Sendable {
  /// What a scope may have only one of, as a noun for error messages.
  var loner: String?
  /// The syntax, for error messages.
  var syntax: String?
  /// Whether a value is valid.
  var accepts: @Sendable (String) -> Bool = { _ in true }

  /// The rule of an attribute, if it is known.
  static func rule(for name: AttributeName) -> AttributeRule? { rules[name.rawValue] }

  /// What is wrong with an attribute; nil if it is valid.
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
      // The lengths of RFC 8839 section 5.4.
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
