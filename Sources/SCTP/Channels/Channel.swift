import DequeModule
import Wire

/// A data channel and the stream to the peer that carries it.
struct Channel {
  let number: DataChannelNumber
  var options: DataChannelInit
  var state: DataChannelState
  var counters = DataChannelCounters()

  /// Messages that are not sent completely, oldest first.
  var queue = Deque<OutgoingMessage>()
  /// How many bytes of the first message were sent, and its number in the stream if any were.
  var sentOfFirst = 0
  var partsOfFirst: UInt32 = 0
  /// The bytes of messages from `send` that were not sent.
  var bufferedAmount: UInt64 = 0
  var lowThreshold: UInt64 = 0
  /// The virtual time of the channel in the schedule.
  var turn: UInt64 = 0
  /// The numbers of the next ordered message, and of the next unordered interleaved one.
  var nextOrdered: UInt32 = 0
  var nextUnordered: UInt32 = 0

  /// Whether the peer knows of the channel, so that messages may overtake the announcement.
  var isConfirmed = false
  /// The last chunk on the stream, which must be acknowledged before the stream is reset.
  var lastNumber: UInt32?
  /// How far the reset of the stream to the peer is.
  var outgoingReset = OutgoingReset.none
  /// Whether the peer reset the stream to this side.
  var isIncomingReset = false
  /// What came of a message in deprecated parts.
  var parts: [UInt8] = []

  enum OutgoingReset {
    case none, wanted, asked, done
  }

  init(number: DataChannelNumber, options: DataChannelInit, state: DataChannelState) {
    self.number = number
    self.options = options
    self.state = state
  }

  /// How many bytes a chunk advances the channel's virtual time, by its weight.
  func cost(_ size: Int) -> UInt64 {
    UInt64(size) * UInt64(DataChannelPriority.high.rawValue / options.priority.rawValue)
  }
}

/// A message that waits to be sent.
struct OutgoingMessage {
  var bytes: [UInt8]
  var payloadProtocol: PayloadProtocol
  var ordered: Bool
  var limits: MessageLimits
  /// The message among all messages of the association.
  var number: UInt64
  /// How many of its bytes count as buffered: none of announcements and of the empty message.
  var buffered: UInt64
}
