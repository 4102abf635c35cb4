import Crypto
import Wire

/// A zip archive without extensions, which every system opens (PKWARE's APPNOTE.TXT 6.3.10).
package struct ZipFile {
  private var bytes: [UInt8] = []
  private var directory: [UInt8] = []
  private var count: UInt16 = 0

  package init() {}

  /// Adds a file, compressed if that makes it smaller; returns false if the file or the archive is
  /// too large for the format.
  package mutating func add(_ name: String, _ content: [UInt8]) -> Bool {
    guard let size = UInt32(exactly: content.count), let offset = UInt32(exactly: bytes.count),
      count < .max
    else { return false }
    let compressed = Deflate.compressed(content)
    let isStored = compressed.map { $0.count >= content.count } ?? true
    let stored = isStored ? content : compressed ?? content
    var head: [UInt8] = []
    // Version 2.0, names in UTF-8, and 1 January 1980 for no date.
    Self.append(20, to: &head)
    Self.append(0x0800, to: &head)
    Self.append(isStored ? 0 : 8, to: &head)
    Self.append(0, to: &head)
    Self.append(0x21, to: &head)
    Self.append(long: crc32(content.span.bytes), to: &head)
    Self.append(long: UInt32(truncatingIfNeeded: stored.count), to: &head)
    Self.append(long: size, to: &head)
    Self.append(UInt16(truncatingIfNeeded: name.utf8.count), to: &head)
    Self.append(0, to: &head)
    bytes += [0x50, 0x4b, 3, 4] + head + Array(name.utf8) + stored
    directory += [0x50, 0x4b, 1, 2, 20, 0] + head
    // No comment, on the first disk, with no attributes.
    directory += [UInt8](repeating: 0, count: 10)
    Self.append(long: offset, to: &directory)
    directory += Array(name.utf8)
    count += 1
    return true
  }

  /// Returns the archive; nil if it is too large for the format.
  package consuming func finished() -> [UInt8]? {
    guard let offset = UInt32(exactly: bytes.count) else { return nil }
    var end: [UInt8] = [0x50, 0x4b, 5, 6, 0, 0, 0, 0]
    Self.append(count, to: &end)
    Self.append(count, to: &end)
    Self.append(long: UInt32(truncatingIfNeeded: directory.count), to: &end)
    Self.append(long: offset, to: &end)
    Self.append(0, to: &end)
    return bytes + directory + end
  }

  private static func append(_ value: UInt16, to bytes: inout [UInt8]) {
    bytes += [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
  }

  private static func append(long value: UInt32, to bytes: inout [UInt8]) {
    append(UInt16(truncatingIfNeeded: value), to: &bytes)
    append(UInt16(truncatingIfNeeded: value >> 16), to: &bytes)
  }
}
