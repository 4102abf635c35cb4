package import Peer

/// The ICE servers of `Link` fields (RFC 8288, RFC 9725 section 4.6).
package enum LinkField {
  /// The most servers in a response.
  private static let countMaximum = 32

  /// Parses the ICE servers among the links of a field: `<uri>; rel="ice-server"; ...`.
  package static func iceServers(_ field: String) -> [ICEServerConfiguration] {
    var reader = FieldReader(field)
    var servers: [ICEServerConfiguration] = []
    while servers.count < countMaximum, let link = reader.nextLink() {
      let relations = link.parameters["rel"]?.lowercased().split(separator: " ") ?? []
      guard relations.contains("ice-server"), !link.target.isEmpty else { continue }
      servers.append(
        ICEServerConfiguration(
          urls: [link.target], username: link.parameters["username"],
          credential: link.parameters["credential"]))
    }
    return servers
  }
}

/// Parses `Link` fields.
private struct FieldReader {
  private let bytes: [UInt8]
  private var index = 0

  init(_ field: String) { bytes = Array(field.utf8) }

  /// The next link; nil at the end of the field or at a syntax error.
  mutating func nextLink() -> (target: String, parameters: [String: String])? {
    skip { $0 == UInt8(ascii: ",") || FieldReader.isBlank($0) }
    guard consume(UInt8(ascii: "<")) else { return nil }
    let target = text { $0 != UInt8(ascii: ">") }
    guard consume(UInt8(ascii: ">")) else { return nil }
    var parameters: [String: String] = [:]
    while true {
      skip(FieldReader.isBlank)
      guard consume(UInt8(ascii: ";")) else { break }
      skip(FieldReader.isBlank)
      let name = text(FieldReader.isName).lowercased()
      skip(FieldReader.isBlank)
      var value = ""
      if consume(UInt8(ascii: "=")) {
        skip(FieldReader.isBlank)
        value = consume(UInt8(ascii: "\"")) ? quoted() : text(FieldReader.isName)
      }
      // The first of several parameters with the same name counts (RFC 8288 section 3.3).
      if !name.isEmpty, parameters[name] == nil { parameters[name] = value }
    }
    return (target, parameters)
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  private static func isName(_ byte: UInt8) -> Bool {
    byte > 0x20 && byte < 0x7f && !"=;,\"<>".utf8.contains(byte)
  }

  private mutating func consume(_ byte: UInt8) -> Bool {
    guard index < bytes.count, bytes[index] == byte else { return false }
    index += 1
    return true
  }

  private mutating func skip(_ belongs: (UInt8) -> Bool) {
    while index < bytes.count, belongs(bytes[index]) { index += 1 }
  }

  private mutating func text(_ belongs: (UInt8) -> Bool) -> String {
    let start = index
    skip(belongs)
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }

  /// Parses the rest of a quoted string, removing backslashes.
  private mutating func quoted() -> String {
    var value: [UInt8] = []
    while index < bytes.count, !consume(UInt8(ascii: "\"")) {
      if bytes[index] == UInt8(ascii: "\\"), index + 1 < bytes.count { index += 1 }
      value.append(bytes[index])
      index += 1
    }
    return String(decoding: value, as: UTF8.self)
  }
}
