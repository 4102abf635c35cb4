import FoundationEssentials
import Glibc
import Tape

/// Where the bytes of a capture come from.
protocol CaptureSource: AnyObject {
  /// Waits a while for bytes, and adds those that are there.
  ///
  /// - Returns: whether more may come.
  func read(into bytes: inout [UInt8], waiting milliseconds: Int32) throws(CommandFailure)
    -> Bool

  /// How many frames the system lost since the last time; 0 if it does not tell.
  func takeDropped() -> UInt64
}

/// A file, or a pipe that somebody writes to.
final class DescriptorSource: CaptureSource {
  private let handle: FileDescriptor
  private let name: String

  static let pieceLength = 1 << 20

  /// Opens a file; `-` is standard input.
  init(_ path: String) throws(CommandFailure) {
    name = CommandReading.oneLine(path)
    if path == "-" {
      handle = FileDescriptor(STDIN_FILENO, isOwned: false)
      return
    }
    switch FileBytes.open(path) {
    case .success(let descriptor):
      handle = FileDescriptor(descriptor)
    case .failure(let code):
      throw CommandFailure(
        .noSuchFile,
        code.number == ENOENT
          ? "\(name): there is no such file" : "\(name): it cannot be read: \(code)")
    }
  }

  func read(into bytes: inout [UInt8], waiting milliseconds: Int32) throws(CommandFailure) -> Bool {
    var ready = pollfd(fd: handle.number, events: Int16(POLLIN), revents: 0)
    guard poll(&ready, 1, milliseconds) > 0 else { return true }
    let descriptor = handle.number
    var code: Int32 = 0
    let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceLength) { buffer, count in
      let got = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      code = got < 0 ? errno : 0
      count = max(got, 0)
    }
    if code == EINTR || code == EAGAIN { return true }
    guard code == 0 else {
      throw CommandFailure(
        .inputOutput, "\(name): it cannot be read: \(String(cString: strerror(code)))")
    }
    bytes = piece
    return !piece.isEmpty
  }

  func takeDropped() -> UInt64 { 0 }
}
