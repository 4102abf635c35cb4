/// A datagram that goes through a TURN server.
enum RelayedBytes {
  private static let sendIndication = 0x0016
  private static let dataAttribute = 0x0013

  /// What is inside of a channel message or a Send indication (RFC 8656 sections 12.4 and 11.1);
  /// other bytes as they are.
  static func inside(_ bytes: [UInt8]) -> [UInt8] {
    func number(_ offset: Int) -> Int? {
      guard offset >= 0, offset + 1 < bytes.count else { return nil }
      return Int(bytes[offset]) << 8 | Int(bytes[offset + 1])
    }
    if let first = bytes.first, (0x40..<0x50).contains(first), let length = number(2) {
      return Array(bytes.dropFirst(4).prefix(length))
    }
    guard number(0) == sendIndication else { return bytes }
    var offset = 20
    while let type = number(offset), let length = number(offset + 2) {
      if type == dataAttribute { return Array(bytes.dropFirst(offset + 4).prefix(length)) }
      offset += 4 + (length + 3) / 4 * 4
    }
    return bytes
  }
}
