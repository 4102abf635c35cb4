/// Names of files as bytes, which need not be UTF-8.
///
/// A string cannot hold bytes that are no characters. Each such byte of a name is kept as one
/// character of a private-use plane and becomes the byte again when the system is asked for the
/// file. Names that hold these characters themselves are kept byte by byte, so that the way there
/// and back always gives the same name.
package enum SystemPath {
  /// The character that stands for the byte 0x80 is 0x80 above this one.
  private static let base: UInt32 = 0x10fe00

  /// The byte that a character stands for; nil for all others.
  package static func byte(of scalar: Unicode.Scalar) -> UInt8? {
    guard scalar.value >= base + 0x80, scalar.value <= base + 0xff else { return nil }
    return UInt8(truncatingIfNeeded: scalar.value)
  }

  /// The name with these bytes, the NUL at the end left out.
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

  /// Whether a name is nothing but characters.
  private static func isText(_ name: String) -> Bool {
    // The characters that stand for bytes begin with this byte.
    name.utf8.allSatisfy { $0 != 0xf4 }
  }
}

extension String {
  /// The name of a file as the system wants it: bytes, and a NUL at the end.
  package var systemPath: [CChar] {
    (SystemPath.bytes(of: self) + [0]).map { CChar(bitPattern: $0) }
  }
}
