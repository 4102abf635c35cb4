package import Wire

/// The session's originator and version: the `o=` line (RFC 8866 section 5.2).
package struct Origin: Hashable, Sendable {
  package var username: String
  /// A decimal number; kept as text because peers may exceed 64 bits.
  package var sessionID: String
  /// A decimal number that grows with every changed description.
  package var sessionVersion: String
  package var address: ConnectionData

  /// The syntax, for error messages.
  static let syntax = "USERNAME SESSION-ID VERSION IN IP4|IP6 ADDRESS"

  /// Creates the origin that WebRTC endpoints use (RFC 9429 section 5.2.1): no name, no address.
  package init(sessionID: UInt64, sessionVersion: UInt64) {
    username = "-"
    self.sessionID = String(sessionID)
    self.sessionVersion = String(sessionVersion)
    address = ConnectionData(addressType: "IP4", address: "127.0.0.1")
  }

  /// Parses the text after `o=`.
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
  /// `IP4` or `IP6`.
  package var addressType: String
  /// An address or a host name.
  package var address: String

  /// The syntax, for error messages.
  static let syntax = "IN IP4|IP6 ADDRESS"

  /// The value while the address is not known (RFC 9429 section 5.2.1).
  package static let unknown = ConnectionData(addressType: "IP4", address: "0.0.0.0")

  package init(addressType: String, address: String) {
    self.addressType = addressType
    self.address = address
  }

  package init(_ address: IPAddress) {
    addressType = address.isIPv4 ? "IP4" : "IP6"
    self.address = address.description
  }

  /// Parses the text after `c=`.
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
