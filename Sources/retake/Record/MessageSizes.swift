import ArgumentParser
import Live

/// The messages that a recorded peer says over its data channel: `--say 0,1200,65536`.
struct MessageSizes: ExpressibleByArgument, CustomStringConvertible {
  /// The sizes in bytes, in the order in which they are said.
  var bytes: [Int]

  init?(argument: String) {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
    bytes = parts.compactMap { $0 }
    guard bytes.count == parts.count, bytes.allSatisfy({ (0...1 << 20).contains($0) }) else {
      return nil
    }
  }

  var description: String { bytes.map(String.init).joined(separator: ",") }

  /// Says a text and a block of each size once the channel is open; answers are left alone.
  func say(on channel: DataChannel) async throws {
    try await channel.waitUntilOpen()
    for size in bytes {
      try await channel.send(String(repeating: "x", count: size))
      try await channel.send((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) })
    }
  }
}
