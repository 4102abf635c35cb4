import Digests
import Peer
import SCTP

// The rows of data channels and their messages.
extension Transcript {
  mutating func append(_ record: DataChannelRecord) {
    let options = record.options
    stampedRow(.channel)
    add(.number(record.channel))
    add(.text(record.state.rawValue))
    add(.flag(record.isRemote))
    add(.text(options.label))
    add(.text(options.protocol))
    add(.number(options.id))
    add(.flag(options.ordered))
    add(.number(options.maxPacketLifeTime))
    add(.number(options.maxRetransmits))
    add(.flag(options.negotiated))
    add(.number(options.priority.rawValue))
    add(.number(record.counters.messagesSent))
    add(.number(record.counters.bytesSent))
    add(.number(record.counters.messagesReceived))
    add(.number(record.counters.bytesReceived))
  }

  /// Adds a message; one that was given to `send` has the number of the call.
  ///
  /// A replay needs what the application sent, so its bytes are always kept. What the peer sent
  /// comes again out of its packets; a take that keeps no media has only its digest.
  mutating func append(_ message: DataMessage, call: UInt32?) {
    let keepsBytes = keepsMedia || call != nil
    stampedRow(.message)
    add(.text(directionName(call == nil)))
    add(.number(message.channel))
    add(.number(call))
    add(.flag(message.isBinary))
    add(.number(message.bytes.count))
    add(keepsBytes ? .null : .blob(SHA256.hash(message.bytes)))
    add(keepsBytes ? .blob(message.bytes) : .null)
  }
}
