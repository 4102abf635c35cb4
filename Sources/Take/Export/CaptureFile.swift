import Glibc
import Tape
import Wire

/// A packet capture with nanosecond times that begins at the IP headers (pcap,
/// draft-ietf-opsawg-pcap sections 4 and 5).
///
/// Nothing is made before the first packet is there, so that an export without packets leaves
/// nothing behind and tells no reader that it was one.
final class CaptureFile {
  private let path: String
  /// What gets its name when it is complete; nil for standard output.
  private let whole: WholeFile?
  private var descriptor: Int32 = -1
  private var writer = ByteWriter()
  private var failure: ExportFailure?

  private static let nanosecondMagic: UInt32 = 0xa1b2_3c4d
  private static let longestPacket: UInt32 = 262_144
  private static let linkTypeRaw: UInt32 = 101
  private static let flushCount = 1 << 20

  /// Chooses the file, readable by its owner alone.
  ///
  /// - Parameter path: the file; `-` is standard output.
  init(_ path: String, _ present: WholeFile.Present) throws(ExportFailure) {
    self.path = path
    if path == "-" {
      whole = nil
    } else {
      whole = try ExportFailure.writing { () throws(WholeFile.Failure) in
        try WholeFile(path, present)
      }
    }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  private func begin() throws(ExportFailure) {
    if let whole {
      descriptor = try ExportFailure.writing { () throws(WholeFile.Failure) in try whole.open() }
    } else {
      descriptor = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
      guard descriptor >= 0 else {
        throw .file(WholeFile.Failure(path: path, code: errno))
      }
    }
    // Version 2.4, no offset to UTC, no word on how precise times are.
    word(Self.nanosecondMagic)
    word(4 << 16 | 2)
    writer.zeros(8)
    word(Self.longestPacket)
    word(Self.linkTypeRaw)
  }

  /// Lowest byte first; readers tell the order by the magic number.
  private func word(_ value: UInt32) { writer.uint32(value.byteSwapped) }

  /// Appends a packet with its Unix time; a time that the format cannot hold, before 1970 or after
  /// 2106, is written as the nearest that it can.
  func append(_ packet: [UInt8], unixNanoseconds: Int64) {
    guard failure == nil else { return }
    do throws(ExportFailure) {
      if descriptor < 0 { try begin() }
      let time = max(0, unixNanoseconds)
      word(UInt32(clamping: time / 1_000_000_000))
      word(UInt32(clamping: time % 1_000_000_000))
      word(UInt32(clamping: packet.count))
      word(UInt32(clamping: packet.count))
      writer.append(packet)
      if writer.count >= Self.flushCount { try flush() }
    } catch {
      failure = error
    }
  }

  /// Writes out what is buffered.
  func flush() throws(ExportFailure) {
    if let failure { throw failure }
    guard writer.count > 0 else { return }
    let bytes = writer.bytes
    writer = ByteWriter(capacity: Self.flushCount + Int(Self.longestPacket))
    let code = WholeFile.write(bytes, into: descriptor)
    guard code == 0 else { throw .file(WholeFile.Failure(path: path, code: code)) }
  }

  /// Writes out what is buffered and gives the file its name.
  func finish() throws(ExportFailure) {
    try flush()
    guard descriptor >= 0, let whole else { return }
    let code = close(descriptor) == 0 ? 0 : errno
    descriptor = -1
    guard code == 0 else { throw .file(WholeFile.Failure(path: path, code: code)) }
    try ExportFailure.writing { () throws(WholeFile.Failure) in try whole.finish() }
  }
}
