/// Descriptions in signaling that comes in datagrams of its own: SIP over UDP (RFC 3261 section
/// 18).
package enum SignalingText {
  private static let lengthMaximum = 64 << 10
  private static let descriptionsMaximum = 8
  private static let methods = [
    "INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "REGISTER", "PRACK", "UPDATE", "INFO", "MESSAGE",
    "SUBSCRIBE", "NOTIFY", "REFER", "PUBLISH",
  ]
  private static let schemes = ["sip:", "sips:", "tel:"]

  /// Whether bytes begin a message of SIP.
  package static func isSIP(_ bytes: some Collection<UInt8>) -> Bool {
    if bytes.starts(with: "SIP/2.0 ".utf8) { return true }
    return methods.contains { method in
      guard bytes.starts(with: method.utf8) else { return false }
      let rest = bytes.dropFirst(method.utf8.count)
      return schemes.contains { rest.starts(with: " \($0)".utf8) }
    }
  }

  /// The descriptions in a datagram; none where it is no signaling.
  package static func descriptions(in datagram: [UInt8]) -> [String] {
    guard datagram.count <= lengthMaximum, isSIP(datagram) else { return [] }
    return descriptions(inMessage: datagram)
  }

  /// The descriptions in the body of a message with headers: the whole of it, or parts of several
  /// (RFC 2046 section 5.1).
  static func descriptions(inMessage message: [UInt8]) -> [String] {
    // A body follows an empty line, and so does each of its parts.
    let begin = Array("\r\n\r\nv=0".utf8)
    let boundary = Array("\r\n--".utf8)
    var found: [String] = []
    var index = 0
    while found.count < descriptionsMaximum, let place = message.place(of: begin, from: index) {
      let start = place + 4
      let end = message.place(of: boundary, from: start) ?? message.count
      // The boundary's own line break may be the last one of the description.
      var text = String(decoding: message[start..<end], as: UTF8.self)
      if text.utf8.last != 10 { text += "\r\n" }
      found.append(text)
      index = end
    }
    return found
  }
}

extension [UInt8] {
  /// Where other bytes stand at or after a place.
  fileprivate func place(of other: [UInt8], from start: Int) -> Int? {
    guard let first = other.first, count >= other.count, start <= count - other.count else {
      return nil
    }
    return (start...count - other.count).first { index in
      self[index] == first && self[index..<index + other.count].elementsEqual(other)
    }
  }
}
