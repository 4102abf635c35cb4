package import Live
import SCTP

/// The messages that a recorded peer says over its data channel: `--say 0,1200,65536`.
package struct MessageSizes: Hashable, Sendable, CustomStringConvertible {
  /// The sizes in bytes, in the order in which they are said.
  package var bytes: [Int]

  /// What is wanted, for who gave something else.
  package static let wanted =
    "sizes are whole numbers from 0 to 1048576 with commas between, at most 1000"

  /// Reads sizes with commas between them.
  package init?(argument: String) {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
    bytes = parts.compactMap { $0 }
    guard bytes.count == parts.count, bytes.count <= 1000,
      bytes.allSatisfy({ (0...1 << 20).contains($0) })
    else {
      return nil
    }
  }

  package var description: String { bytes.map(String.init).joined(separator: ",") }
}

/// What a recorded peer says over data channels of its own.
package struct Conversation: Sendable {
  package var sizes: MessageSizes
  /// How many more channels are opened for a message, and closed when an answer came.
  package var channels = 0

  package init(sizes: MessageSizes, channels: Int = 0) {
    self.sizes = sizes
    self.channels = channels
  }

  /// Says a text and a block of each size once the channel is open, then talks over the others.
  ///
  /// What comes back over the first channel is left alone.
  package func hold(over connection: PeerConnection, on channel: DataChannel) async throws {
    try await channel.waitUntilOpen()
    for size in sizes.bytes {
      try await channel.send(String(repeating: "x", count: size))
      try await channel.send((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) })
    }
    for number in 0..<channels {
      let other = try await connection.createDataChannel(
        "retake \(number + 1)", DataChannelInit(ordered: number.isMultiple(of: 2)))
      try await other.waitUntilOpen()
      try await other.send("message \(number + 1)")
      for await _ in other.messages { break }
      await other.close()
      try await other.waitUntilClosed()
    }
  }
}
