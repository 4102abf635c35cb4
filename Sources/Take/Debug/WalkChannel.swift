import CProcess
import FoundationEssentials
import Glibc
import Replay

/// One end of the connection between a debugger and a process that walks.
final class WalkChannel {
  /// The other side is gone.
  struct Gone: Error {}

  private let descriptor: Int32

  /// Messages longer than this are not from a walker.
  private static let longest: Int64 = 256 << 20

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// Sends a message, and a channel with it.
  func send(_ message: some Encodable, passing channel: WalkChannel? = nil) throws {
    let data = try JSONEncoder().encode(message)
    let status = data.withUnsafeBytes {
      cprocess_send(
        descriptor, $0.baseAddress, UInt32(clamping: data.count), channel?.descriptor ?? -1)
    }
    if status != 0 { throw Gone() }
  }

  /// Waits for a message and for the channel that comes with it.
  func receive<Message: Decodable>(_: Message.Type) throws -> (Message, WalkChannel?) {
    var passed: Int32 = -1
    let length = cprocess_receive_length(descriptor, &passed)
    let channel = passed >= 0 ? WalkChannel(passed) : nil
    guard (0...WalkChannel.longest).contains(length) else { throw Gone() }
    var data = Data(count: Int(length))
    let status = data.withUnsafeMutableBytes {
      cprocess_receive(descriptor, $0.baseAddress, UInt32(clamping: length))
    }
    if status != 0 { throw Gone() }
    return (try JSONDecoder().decode(Message.self, from: data), channel)
  }

  /// Forks: gives the channel to the copy, or in the copy nil and the channel to serve.
  static func fork() throws(WalkFailure) -> (toCopy: WalkChannel?, inCopy: WalkChannel?) {
    TapeWalk.prepareForCopy()
    var end: Int32 = -1
    let process = cprocess_fork(&end)
    guard process >= 0 else {
      throw WalkFailure("the process cannot be copied: \(String(cString: strerror(-process)))")
    }
    return process == 0 ? (nil, WalkChannel(end)) : (WalkChannel(end), nil)
  }
}

/// Why a walk cannot continue, in one sentence.
package struct WalkFailure: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  init(_ description: String) { self.description = description }
}
