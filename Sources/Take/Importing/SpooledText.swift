import FoundationEssentials
import Glibc
import Tape
import Wire

/// A decompressed text file that can be read several times and at any offset.
///
/// Compressed text, UTF-16 and text from a pipe are stored in an unnamed file, so that memory does
/// not grow with the text.
package final class SpooledText {
  private let descriptor: FileDescriptor
  private let name: String
  /// The text's offset in the file, which is after any byte order mark.
  private let base: Int
  package let size: Int

  /// The maximum decompressed size: four gigabytes.
  private static let sizeMaximum = 4 << 30
  /// The maximum size in bytes of a line, and of a text that is read as a whole.
  static let valueMaximum = 128 << 20
  /// The maximum size of a recording in bytes; recordings are read as a whole.
  static let recordingMaximum = 1 << 30

  /// - Parameters:
  ///   - path: the file; `-` is standard input.
  ///   - notice: receives a sentence if the file is damaged.
  package init(_ path: String, notice: (String) -> Void = { _ in }) throws {
    name = PrintableText.line(path)
    if path != "-", FileBytes.kind(of: path) == .file,
      case .success(let opened) = FileBytes.open(path)
    {
      let file = FileDescriptor(opened)
      if Decompression.Format(try Self.read(file, at: 0, Decompression.Format.headLength, name))
        == nil
      {
        (descriptor, base, size) = try Self.marked(file, FileBytes.size(of: path), name)
        return
      }
    }
    let (file, size) = try Self.spool(path, name, notice)
    (descriptor, base, self.size) = try Self.marked(file, size, name)
  }

  /// Skips a UTF-8 byte order mark, and converts UTF-16, which Windows programs write.
  private static func marked(
    _ file: FileDescriptor, _ size: Int, _ name: String
  ) throws -> (FileDescriptor, base: Int, size: Int) {
    switch ByteOrderMark(try read(file, at: 0, 4, name)) {
    case nil: return (file, 0, size)
    case .utf8: return (file, 3, max(0, size - 3))
    case .utf16(let isLittle):
      let (spooled, folder) = try unnamed()
      var (offset, written) = (2, 0)
      var rest: [UInt16] = []
      while true {
        let piece = try read(file, at: offset, 1 << 20, name)
        guard piece.count > 1 else { break }
        offset += piece.count & ~1
        rest += ByteOrderMark.units(piece, isLittle: isLittle)
        // A surrogate pair may be split between two pieces.
        let held = rest.last.map { $0 & 0xfc00 == 0xd800 ? [$0] : [] } ?? []
        let text = Array(String(decoding: rest.dropLast(held.count), as: UTF16.self).utf8)
        rest = held
        written += text.count
        try write(text, to: spooled, in: folder)
      }
      return (spooled, 0, written)
    }
  }

  /// Reads bytes at an offset; returns fewer at the end of the text.
  package func bytes(at offset: Int, count: Int) throws -> [UInt8] {
    try Self.read(descriptor, at: base + offset, count, name)
  }

  /// Reads the entire text; throws if it is larger than `valueMaximum`.
  package func all() throws -> [UInt8] {
    guard size <= Self.valueMaximum else {
      throw TapeError(
        path: name, place: "",
        reason:
          "a JSON value of \(size >> 20) MB exceeds the limit of \(Self.valueMaximum >> 20) MB; an "
          + "rtcstats dump of the same call has no such limit"
      )
    }
    return try bytes(at: 0, count: size)
  }

  /// Reads the entire text as a recording of packets; throws if it is larger than
  /// `recordingMaximum`.
  package func recording() throws -> [UInt8] {
    guard size <= Self.recordingMaximum else {
      throw TapeError(
        path: name, place: "",
        reason: "its \(size >> 20) MB exceed the limit of \(Self.recordingMaximum >> 20) MB for a "
          + "recording")
    }
    return try bytes(at: 0, count: size)
  }

  /// Returns text with each line replaced; lines for which `body` returns nil are left out.
  package func mapped(_ body: (_ line: [UInt8]) throws -> [UInt8]?) throws -> SpooledText {
    let (file, folder) = try Self.unnamed()
    var written = 0
    var piece: [UInt8] = []
    func flush() throws {
      try Self.write(piece, to: file, in: folder)
      written += piece.count
      piece.removeAll(keepingCapacity: true)
    }
    try eachLine { line, _ in
      guard let line = try body(line) else { return }
      piece += line
      piece.append(UInt8(ascii: "\n"))
      if piece.count > 1 << 20 { try flush() }
    }
    try flush()
    return SpooledText(file, name: name, size: written)
  }

  private init(_ descriptor: FileDescriptor, name: String, size: Int) {
    (self.descriptor, self.name, base, self.size) = (descriptor, name, 0, size)
  }

  /// Returns whether a word is anywhere in the text.
  package func contains(_ word: String) throws -> Bool {
    let wanted = Array(word.utf8)
    var offset = 0
    while offset < size {
      let piece = try bytes(at: offset, count: 1 << 20)
      guard piece.count >= wanted.count else { break }
      var place = 0
      while let found = piece[place...].firstIndex(of: wanted[0]) {
        if piece[found...].starts(with: wanted) { return true }
        place = found + 1
      }
      // The word may be split between two pieces.
      offset += piece.count - wanted.count + 1
    }
    return false
  }

  /// Calls a closure with each line, without its line break, and its offset.
  package func eachLine(_ body: (_ line: [UInt8], _ offset: Int) throws -> Void) throws {
    var rest: [UInt8] = []
    var start = 0
    var offset = 0
    while offset < size {
      let piece = try bytes(at: offset, count: 1 << 20)
      guard !piece.isEmpty else { break }
      offset += piece.count
      var from = piece.startIndex
      while let end = piece[from...].firstIndex(of: UInt8(ascii: "\n")) {
        rest += piece[from..<end]
        try body(rest, start)
        start += rest.count + 1
        rest.removeAll(keepingCapacity: true)
        from = end + 1
      }
      rest += piece[from...]
      guard rest.count <= Self.valueMaximum else {
        throw TapeError(
          path: name, place: "",
          reason: "the line at byte \(start) has more than \(Self.valueMaximum >> 20) MB")
      }
    }
    if !rest.isEmpty { try body(rest, start) }
  }

  private static func read(_ file: FileDescriptor, at offset: Int, _ count: Int, _ name: String)
    throws
    -> [UInt8]
  {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let number = file.number
      let (place, wanted) = (offset + bytes.count, count - bytes.count)
      var code: Int32 = 0
      let piece = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, got in
        let result = pread(number, buffer.baseAddress, buffer.count, place)
        code = result < 0 ? errno : 0
        got = max(result, 0)
      }
      if code == EINTR { continue }
      guard code == 0 else {
        throw TapeError(
          path: name, place: "", reason: "it cannot be read: \(String(cString: strerror(code)))",
          kind: .failed)
      }
      if piece.isEmpty { break }
      bytes = bytes.isEmpty ? piece : bytes + piece
    }
    return bytes
  }

  /// Writes a source's decompressed bytes into an unnamed file.
  private static func spool(
    _ path: String, _ name: String, _ notice: (String) -> Void
  ) throws -> (FileDescriptor, Int) {
    let source = try DescriptorSource(path)
    let (file, folder) = try unnamed()
    var written = 0
    func add(_ bytes: [UInt8]) throws {
      written += bytes.count
      guard written <= sizeMaximum else {
        throw TapeError(
          path: name, place: "",
          reason: "it has more than \(sizeMaximum >> 30) GB when decompressed")
      }
      try write(bytes, to: file, in: folder)
    }
    var decompression: Decompression?
    var isFirst = true
    var head: [UInt8] = []
    func consume(_ bytes: [UInt8]) throws {
      guard let decompression else { return try add(bytes) }
      do {
        try decompression.expand(bytes, add)
      } catch let damage as Decompression.Damage {
        throw TapeError(
          path: name, place: "", reason: damage.reason)
      }
    }
    while true {
      var bytes: [UInt8] = []
      guard try source.read(into: &bytes, waiting: -1) else { break }
      if isFirst {
        head += bytes
        guard head.count >= Decompression.Format.headLength else { continue }
        isFirst = false
        if let format = Decompression.Format(head) {
          do throws(Decompression.Damage) {
            decompression = try Decompression(format)
          } catch {
            throw TapeError(
              path: name, place: "", reason: error.reason, kind: .failed)
          }
        }
        try consume(head)
      } else {
        try consume(bytes)
      }
    }
    if isFirst { try add(head) }
    if let decompression, !decompression.isComplete {
      notice("\(name): the compressed data are cut off; the part before that is used")
    }
    return (file, written)
  }

  /// Creates an unnamed file, which disappears with the process.
  private static func unnamed() throws -> (FileDescriptor, folder: String) {
    let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(folder)/retake-XXXXXX".utf8CString)
    let number = mkstemp(&template)
    guard number >= 0 else {
      throw TapeError(
        path: folder, place: "",
        reason: "no temporary file can be created there: \(String(cString: strerror(errno)))",
        kind: .failed)
    }
    unlink(template)
    _ = fcntl(number, F_SETFD, FD_CLOEXEC)
    return (FileDescriptor(number), folder)
  }

  private static func write(_ bytes: [UInt8], to file: FileDescriptor, in folder: String) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(file.number, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else {
        throw TapeError(
          path: folder, place: "", reason: "a temporary file: \(String(cString: strerror(errno)))",
          kind: .failed)
      }
      rest = rest.dropFirst(count)
    }
  }
}

/// The bytes at the start of text that state its encoding.
enum ByteOrderMark: Hashable, Sendable {
  case utf8
  case utf16(isLittle: Bool)

  /// Recognizes the mark at the start of text; fails if there is none.
  init?(_ bytes: [UInt8]) {
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) {
      self = .utf8
    } else if bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) {
      self = .utf16(isLittle: bytes[0] == 0xff)
    } else {
      return nil
    }
  }

  static func units(_ bytes: [UInt8], isLittle: Bool) -> [UInt16] {
    stride(from: 0, to: bytes.count & ~1, by: 2).map { place in
      let (first, second) = (UInt16(bytes[place]), UInt16(bytes[place + 1]))
      return isLittle ? second << 8 | first : first << 8 | second
    }
  }

  /// Returns the first bytes of a text without the byte order mark, converted to UTF-8.
  static func unmarked(_ bytes: [UInt8]) -> [UInt8] {
    switch ByteOrderMark(bytes) {
    case nil: bytes
    case .utf8: Array(bytes.dropFirst(3))
    case .utf16(let isLittle):
      Array(
        String(decoding: units(Array(bytes.dropFirst(2)), isLittle: isLittle), as: UTF16.self).utf8)
    }
  }
}
