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
