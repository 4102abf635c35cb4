import Foundation
import Synchronization

/// The standard streams: all that a command says goes through here, so that nothing gets lost
/// without a word.
enum Output {
  /// Writes text to standard output at once, all of it.
  ///
  /// - Throws: a failure with status 74 where it cannot be written. It has no words when the reader
  ///   of a pipe went away, as `head` does when it has enough: whoever closed the pipe knows.
  static func write(_ text: String) throws(CommandFailure) {
    guard let code = put(text, into: STDOUT_FILENO) else { return }
    guard code != EPIPE else { throw CommandFailure(.inputOutput, "") }
    throw CommandFailure(
      .inputOutput, "standard output cannot be written: \(String(cString: strerror(code)))")
  }

  /// Writes a line to standard output.
  static func line(_ text: String) throws(CommandFailure) { try write(text + "\n") }

  /// Writes text to standard error; where that fails, there is nobody left to tell.
  static func note(_ text: String) { _ = put(text, into: STDERR_FILENO) }

  /// Lets a pipe that nobody reads, and a limit on the size of files, be errors like others; keeps
  /// files that are opened later from taking the place of a standard stream that was closed.
  static func prepare() {
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      // The lowest free number is this one; writing to what is open for reading fails.
      _ = open("/dev/null", O_RDONLY)
    }
  }

  /// Writes all of a text; gives the system's error number when it cannot.
  private static func put(_ text: String, into descriptor: Int32) -> Int32? {
    var text = text
    return text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while let base = rest.baseAddress, !rest.isEmpty {
        let count = Glibc.write(descriptor, base, rest.count)
        if count > 0 {
          rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        } else if count < 0, errno == EAGAIN {
          // Somebody else made the terminal or pipe answer at once.
          var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          poll(&ready, 1, -1)
        } else if count == 0 || errno != EINTR {
          return count == 0 ? EIO : errno
        }
      }
      return nil
    }
  }
}

/// Text for standard output that comes from somewhere that cannot fail with it.
final class OutputPieces: Sendable {
  private let failure = Mutex<CommandFailure?>(nil)

  /// Whether more can be written.
  var areWanted: Bool { failure.withLock { $0 == nil } }

  /// Writes a piece, unless an earlier one could not be written.
  func take(_ text: String) { try? write(text) }

  /// Writes a piece, unless an earlier one could not be written.
  func write(_ text: String) throws(CommandFailure) {
    try failure.withLock { (failure: inout CommandFailure?) throws(CommandFailure) in
      if let failure { throw failure }
      do throws(CommandFailure) {
        try Output.write(text)
      } catch {
        failure = error
        throw error
      }
    }
  }

  /// Fails when a piece could not be written.
  func check() throws(CommandFailure) {
    if let failure = failure.withLock({ $0 }) { throw failure }
  }
}

/// Prints a line to standard error.
func printError(_ line: String) { Output.note(line + "\n") }
