import FoundationEssentials
import Tape

/// Follows a key log that another program writes to while its secrets are wanted already.
package struct KeyLogFollower {
  private let path: String
  private var offset: UInt64 = 0
  /// The beginning of a line whose end is not written yet.
  private var rest: [UInt8] = []

  /// Longer lines are of no key log.
  private static let lineMaximum = 1 << 16
  /// How much is read at once.
  private static let pieceMaximum = 4 << 20

  package init(_ path: String) { self.path = path }

  /// The lines that came since the last time; nil for none.
  ///
  /// A file that is not there yet has none, one that became shorter is another one.
  ///
  /// - Parameter isLast: whether a last line counts that has no end.
  package mutating func news(isLast: Bool = false) -> String? {
    var lines: [UInt8] = []
    while let bytes = read(), !bytes.isEmpty { lines += whole(bytes) }
    if isLast {
      lines += rest
      rest = []
    }
    return lines.isEmpty ? nil : String(decoding: lines, as: UTF8.self)
  }

  private mutating func read() -> [UInt8]? {
    guard case .success(let descriptor) = FileBytes.open(path) else { return nil }
    let file = FileDescriptor(descriptor)
    guard let size = file.size else { return nil }
    if size < offset { (offset, rest) = (0, []) }
    guard size > offset else { return nil }
    let bytes = file.read(atMost: Self.pieceMaximum, from: offset)
    offset += UInt64(bytes.count)
    return bytes
  }

  /// The whole lines of what waited and what came.
  private mutating func whole(_ bytes: [UInt8]) -> [UInt8] {
    let all = rest + bytes
    guard let end = all.lastIndex(of: UInt8(ascii: "\n")) else {
      rest = all.count > Self.lineMaximum ? [] : all
      return []
    }
    rest = Array(all[(end + 1)...])
    if rest.count > Self.lineMaximum { rest = [] }
    return Array(all[...end])
  }
}
