import Glibc

/// Names in place of IP addresses and of mDNS names: the same one wherever an address stands.
struct AddressCover {
  private var names: [String: String] = [:]

  /// The text with every address covered.
  mutating func covered(_ text: some StringProtocol) -> String {
    let bytes = Array(text.utf8)
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      guard Self.isPart(bytes[index]), index == 0 || !Self.isWord(bytes[index - 1]) else {
        output.append(bytes[index])
        index += 1
        continue
      }
      var end = index
      while end < bytes.count, Self.isPart(bytes[end]) { end += 1 }
      if let length = addressLength(bytes[index..<end], followed: bytes[end...].first) {
        output += name(of: bytes[index..<(index + length)]).utf8
        index += length
      } else if let length = localNameLength(bytes[index...]) {
        output += name(of: bytes[index..<(index + length)]).utf8
        index += length
      } else {
        output += bytes[index..<end]
        index = end
      }
    }
    return String(decoding: output, as: UTF8.self)
  }

  private mutating func name(of address: ArraySlice<UInt8>) -> String {
    let text = String(decoding: address, as: UTF8.self).lowercased()
    if let name = names[text] { return name }
    let name = "address-\(names.count + 1)"
    names[text] = name
    return name
  }

  /// How much of a run of digits, dots and colons is an address; nil for none.
  private func addressLength(_ run: ArraySlice<UInt8>, followed next: UInt8?) -> Int? {
    if next.map({ !Self.isWord($0) }) ?? true, Self.isAddress(run, AF_INET6) { return run.count }
    let version4 = run.prefix { $0 == UInt8(ascii: ".") || Self.isDigit($0) }
    let end = version4.last == UInt8(ascii: ".") ? version4.dropLast() : version4
    return Self.isAddress(end, AF_INET) ? end.count : nil
  }

  /// The length of a name that stands for an address (RFC 8839 section 5.1: a UUID and `.local`).
  private func localNameLength(_ text: ArraySlice<UInt8>) -> Int? {
    let name = text.prefix(42)
    guard name.count == 42, name.suffix(6).elementsEqual(".local".utf8),
      name.prefix(36).allSatisfy({ Self.isHexadecimal($0) || $0 == UInt8(ascii: "-") })
    else { return nil }
    return name.count
  }

  private static func isAddress(_ text: ArraySlice<UInt8>, _ family: Int32) -> Bool {
    // Longer ones are none, and short ones like `::` tell nothing.
    guard (3...45).contains(text.count) else { return false }
    var address = in6_addr()
    return String(decoding: text, as: UTF8.self).withCString {
      inet_pton(family, $0, &address) == 1
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    isDigit(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
  }

  private static func isPart(_ byte: UInt8) -> Bool {
    isHexadecimal(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: ":")
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    isDigit(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
      || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
  }
}
