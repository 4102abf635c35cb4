public import Foundation
import Live

/// A message of a data channel.
public final class RTCDataBuffer: Sendable {
  /// The bytes, or text in UTF-8.
  public let data: Data
  /// Whether the message is bytes; else it is text.
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

/// What a data channel is made with; it is read when the channel is made.
public final class RTCDataChannelConfiguration {
  /// Whether messages arrive in the order in which they were sent.
  public var isOrdered = true
  /// How many milliseconds a message is tried; -1 for no limit.
  public var maxPacketLifeTime: Int32 = -1
  /// How often a message is sent again; -1 for no limit.
  public var maxRetransmits: Int32 = -1
  /// Whether the application makes the channel on both sides.
  public var isNegotiated = false
  /// The stream; -1 leaves it to the association.
  public var channelId: Int32 = -1
  /// The subprotocol.
  public var `protocol` = ""

  /// Creates the configuration of a reliable and ordered channel.
  public init() {}
}
