import FoundationEssentials
import Glibc
import Tape
import Wire

/// A decompressed text file that can be read several times and at any offset.
///
/// Compressed text and text from a pipe are stored in an unnamed file, so that memory does not grow
/// with it.
package final class SpooledText {
  private let descriptor: FileDescriptor
  private let name: String
  package let size: Int

  /// The maximum decompressed size: four gigabytes.
  private static let sizeMaximum = 4 << 30
  /// The maximum size of a value in memory.
  static let valueMaximum = 128 << 20

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
        descriptor = file
        size = FileBytes.size(of: path)
        return
      }
    }
    let (file, size) = try Self.spool(path, name, notice)
    (descriptor, self.size) = (file, size)
  }

  /// Reads bytes at an offset; fewer at the end.
  package func bytes(at offset: Int, count: Int) throws -> [UInt8] {
    try Self.read(descriptor, at: offset, count, name)
  }

  /// Reads the entire text.
  package func all() throws -> [UInt8] {
    guard size <= Self.valueMaximum else {
      throw TapeError(
        path: name, place: "",
        reason:
          "\(size >> 20) MB of JSON in one value are more than the "
          + "\(Self.valueMaximum >> 20) MB that are read; an rtcstats dump of the same call "
          + "has no such limit"
      )
    }
    return try bytes(at: 0, count: size)
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
    let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(folder)/retake-XXXXXX".utf8CString)
    // Its name is removed at once, so nothing is left behind in any case.
    let number = mkstemp(&template)
    if number >= 0 {
      unlink(template)
      _ = fcntl(number, F_SETFD, FD_CLOEXEC)
    }
    guard number >= 0 else {
      throw TapeError(
        path: folder, place: "",
        reason: "no temporary file can be made there: \(String(cString: strerror(errno)))",
        kind: .failed)
    }
    let file = FileDescriptor(number)
    var written = 0
    func add(_ bytes: [UInt8]) throws {
      written += bytes.count
      guard written <= sizeMaximum else {
        throw TapeError(
          path: name, place: "",
          reason: "it holds more than \(sizeMaximum >> 30) GB when it is decompressed")
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
      notice("\(name): the compressed data end early; the part before the end is used")
    }
    return (file, written)
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
