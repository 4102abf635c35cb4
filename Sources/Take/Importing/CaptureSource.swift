import FoundationEssentials
import Glibc
package import Tape
import Wire

/// Where the bytes of a capture come from.
package protocol CaptureSource: AnyObject {
  /// Waits a while for bytes, and adds those that are there.
  ///
  /// - Returns: whether more may come.
  func read(into bytes: inout [UInt8], waiting milliseconds: Int32) throws(TapeError)
    -> Bool

  /// How many frames the system lost since the last time; 0 where it does not tell.
  func removeDropped() -> UInt64
}

/// A file, or a pipe that somebody writes to.
package final class DescriptorSource: CaptureSource {
  private let handle: FileDescriptor
  private let name: String

  static let pieceLength = 1 << 20

  /// Opens a file; `-` is standard input.
  package init(_ path: String) throws(TapeError) {
    name = PrintableText.line(path)
    if path == "-" {
      handle = FileDescriptor(STDIN_FILENO, isOwned: false)
      return
    }
    switch FileBytes.open(path) {
    case .success(let descriptor):
      handle = FileDescriptor(descriptor)
    case .failure(let code):
      throw TapeError(
        path: name, place: "",
        reason: code.number == ENOENT ? "there is no such file" : "it cannot be read: \(code)",
        kind: .missing)
    }
  }

  package func read(into bytes: inout [UInt8], waiting milliseconds: Int32)
    throws(TapeError) -> Bool
  {
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
      throw TapeError(
        path: name, place: "", reason: "it cannot be read: \(SystemCode(code))", kind: .failed)
    }
    bytes = piece
    return !piece.isEmpty
  }

  package func removeDropped() -> UInt64 { 0 }
}
