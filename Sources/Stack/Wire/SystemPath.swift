/// File names as bytes, which need not be UTF-8.
///
/// A string cannot hold invalid UTF-8. Each such byte becomes one character of a private-use plane
/// and is converted back for system calls. Names that contain these characters themselves are
/// encoded byte by byte, so that the conversion is always reversible.
package enum SystemPath {
  /// The character for the byte 0x80 is this one plus 0x80.
  private static let base: UInt32 = 0x10fe00

  /// The byte that a character stands for, if any.
  package static func byte(of scalar: Unicode.Scalar) -> UInt8? {
    guard scalar.value >= base + 0x80, scalar.value <= base + 0xff else { return nil }
    return UInt8(truncatingIfNeeded: scalar.value)
  }

  /// Creates a name from bytes, without the NUL at the end.
  package static func name(_ bytes: some Sequence<UInt8>) -> String {
    let all = Array(bytes)
    var name = ""
    var parser = Unicode.UTF8.ForwardParser()
    var rest = all.makeIterator()
    var offset = 0
    while true {
      switch parser.parseScalar(from: &rest) {
      case .valid(let encoded):
        let scalar = Unicode.UTF8.decode(encoded)
        if byte(of: scalar) == nil {
          name.unicodeScalars.append(scalar)
        } else {
          for byte in all[offset..<offset + encoded.count] { append(byte, to: &name) }
        }
        offset += encoded.count
      case .error(let length):
        for byte in all[offset..<min(offset + length, all.count)] { append(byte, to: &name) }
        offset += length
      case .emptyInput: return name
      }
    }
  }

  private static func append(_ byte: UInt8, to name: inout String) {
    if let scalar = Unicode.Scalar(byte < 0x80 ? UInt32(byte) : base + UInt32(byte)) {
      name.unicodeScalars.append(scalar)
    }
  }

  /// The bytes of a name, without a NUL at the end.
  package static func bytes(of name: String) -> [UInt8] {
    if isText(name) { return Array(name.utf8) }
    var bytes: [UInt8] = []
    for scalar in name.unicodeScalars {
      if let byte = byte(of: scalar) {
        bytes.append(byte)
      } else {
        bytes += Array(String(scalar).utf8)
      }
    }
    return bytes
  }

  /// Whether a name is valid UTF-8.
  private static func isText(_ name: String) -> Bool {
    // The UTF-8 encoding of the stand-in characters begins with this byte.
    name.utf8.allSatisfy { $0 != 0xf4 }
  }
}

extension String {
  /// The name of a file for system calls: bytes with a NUL at the end.
  package var systemPath: [CChar] {
    (SystemPath.bytes(of: self) + [0]).map { CChar(bitPattern: $0) }
  }
}
