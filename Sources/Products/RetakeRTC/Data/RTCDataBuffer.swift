public import Foundation
import Live

/// A message of a data channel.
public final class RTCDataBuffer: Sendable {
  /// The bytes, or text in UTF-8.
  public let data: Data
  /// Whether the message is binary; otherwise it is text.
  public let isBinary: Bool

  /// Creates a message.
  public init(data: Data, isBinary: Bool) {
    self.data = data
    self.isBinary = isBinary
  }

  convenience init(_ message: DataChannelMessage) {
    switch message {
    case .text(let text): self.init(data: Data(text.utf8), isBinary: false)
    case .binary(let bytes): self.init(data: Data(bytes), isBinary: true)
    }
  }
}

/// The configuration of a data channel, read when the channel is created.
public final class RTCDataChannelConfiguration {
  /// Whether messages arrive in the order in which they were sent.
  public var isOrdered = true
  /// How many milliseconds a message is retransmitted; -1 for no limit.
  public var maxPacketLifeTime: Int32 = -1
  /// How often a message is retransmitted; -1 for no limit.
  public var maxRetransmits: Int32 = -1
  /// Whether the application creates the channel on both sides.
  public var isNegotiated = false
  /// The stream identifier; -1 leaves it to the association.
  public var channelId: Int32 = -1
  /// The subprotocol.
  public var `protocol` = ""

  /// Creates the configuration of a reliable, ordered channel.
  public init() {}
}
