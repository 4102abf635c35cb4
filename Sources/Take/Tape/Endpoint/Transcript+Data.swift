import Crypto
import Peer
import SCTP

// The rows of data channels and their messages.
extension Transcript {
  mutating func append(_ record: DataChannelRecord) {
    let options = record.options
    let counters = record.counters
    add(
      ChannelRow(
        channel: record.channel, state: record.state.rawValue, isRemote: record.isRemote,
        label: options.label, protocol: options.protocol, id: options.id,
        ordered: options.ordered, maxPacketLifeTime: options.maxPacketLifeTime,
        maxRetransmits: options.maxRetransmits, negotiated: options.negotiated,
        priority: options.priority.rawValue, messagesSent: counters.messagesSent,
        bytesSent: counters.bytesSent, messagesReceived: counters.messagesReceived,
        bytesReceived: counters.bytesReceived))
  }

  /// Adds a message; one that was given to `send` has the number of the call.
  ///
  /// A replay needs what the application sent, so its bytes are always kept. What the peer sent
  /// comes again out of its packets; a take that keeps no media has only its digest.
  mutating func append(_ message: DataMessage, call: UInt32?) {
    append(message, call: call, isInbound: call == nil)
  }

  /// Adds a message that somebody else was seen to send.
  mutating func append(seen message: DataMessage) {
    append(message, call: nil, isInbound: false)
  }

  private mutating func append(_ message: DataMessage, call: UInt32?, isInbound: Bool) {
    let keepsBytes = keepsMedia || call != nil
    add(
      MessageRow(
        direction: Direction(isInbound: isInbound), channel: message.channel, call: call,
        isBinary: message.isBinary, size: message.bytes.count,
        digest: keepsBytes ? nil : SHA256.hash(message.bytes),
        bytes: keepsBytes ? message.bytes : nil))
  }
}
