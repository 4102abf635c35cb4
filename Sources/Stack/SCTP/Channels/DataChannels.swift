import Wire

/// Identifies a data channel within its association.
///
/// Channels are numbered in order of creation, no matter which peer creates them; a number is never
/// reused.
package struct DataChannelNumber: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The number, from 0.
  package var rawValue: UInt32

  package init(_ rawValue: UInt32) { self.rawValue = rawValue }

  package static func < (left: DataChannelNumber, right: DataChannelNumber) -> Bool {
    left.rawValue < right.rawValue
  }

  package var description: String { "\(rawValue)" }
}

/// A channel's share of the bandwidth relative to the others (RFC 8831 section 6.4).
public enum DataChannelPriority: UInt16, Hashable, Sendable, Codable {
  /// Half of the usual share.
  case veryLow = 128
  /// The usual share.
  case low = 256
  /// Twice the usual share.
  case medium = 512
  /// Four times the usual share.
  case high = 1024

  /// Creates the lowest of the four priorities (RFC 8832 section 8.2.1) whose weight is at least
  /// the number on the wire; above 1024, the priority is `high`.
  package init(weight: UInt16) {
    switch weight {
    case ...128: self = .veryLow
    case ...256: self = .low
    case ...512: self = .medium
    default: self = .high
    }
  }
}

/// A data channel's options (W3C RTCDataChannelInit).
public struct DataChannelInit: Hashable, Sendable, Codable {
  /// The label: up to 65,535 bytes of UTF-8 text.
  public var label: String
  /// The subprotocol: up to 65,535 bytes of UTF-8 text.
  public var `protocol`: String
  /// Whether messages arrive in the order they were sent.
  public var ordered: Bool
  /// The number of milliseconds for which a message is retransmitted; nil for no limit.
  public var maxPacketLifeTime: UInt16?
  /// The maximum number of retransmissions of a message; nil for no limit.
  public var maxRetransmits: UInt16?
  /// Whether the applications create the channel on both sides, so that it is not announced.
  public var negotiated: Bool
  /// The stream identifier; required for a negotiated channel; otherwise nil lets the association
  /// choose it.
  public var id: UInt16?
  /// The channel's share of the bandwidth relative to the other channels.
  public var priority: DataChannelPriority

  /// Creates options; without arguments, for a reliable and ordered channel.
  public init(
    label: String = "", protocol: String = "", ordered: Bool = true,
    maxPacketLifeTime: UInt16? = nil, maxRetransmits: UInt16? = nil, negotiated: Bool = false,
    id: UInt16? = nil, priority: DataChannelPriority = .low
  ) {
    self.label = label
    self.protocol = `protocol`
    self.ordered = ordered
    self.maxPacketLifeTime = maxPacketLifeTime
    self.maxRetransmits = maxRetransmits
    self.negotiated = negotiated
    self.id = id
    self.priority = priority
  }
}

/// A data channel's state (W3C RTCDataChannelState).
public enum DataChannelState: String, Hashable, Sendable, Codable {
  /// The association is not established yet.
  case connecting
  /// Messages can be sent.
  case open
  /// Earlier messages are still being delivered.
  case closing
  /// The channel is closed and cannot be reopened.
  case closed
}

/// A channel's traffic (W3C RTCDataChannelStats).
package struct DataChannelCounters: Hashable, Sendable {
  /// Messages passed to `send`.
  package var messagesSent: UInt64 = 0
  /// Bytes in messages passed to `send`.
  package var bytesSent: UInt64 = 0
  /// Complete messages delivered to the application.
  package var messagesReceived: UInt64 = 0
  /// Bytes in messages delivered.
  package var bytesReceived: UInt64 = 0
  /// Messages abandoned, completely or in part, because of the channel's limits.
  package var messagesAbandoned: UInt64 = 0

  package init() {}
}

/// The reason that a channel cannot be created or a message cannot be sent.
package enum DataChannelRefusal: Hashable, Sendable {
  /// The association has ended (InvalidStateError).
  case closed
  /// There is no such channel, or it is not open (InvalidStateError).
  case notOpen
  /// The message is larger than the peer allows (TypeError).
  case tooLarge(maximum: UInt64)
  /// The message does not fit into the channel's buffer (OperationError).
  case bufferFull
  /// The label or the protocol is too long, both limits are set, or the stream is 65,535 or missing
  /// from a negotiated channel (TypeError).
  case malformed
  /// The stream is in use or does not exist, or none is free (OperationError).
  case noStream
}

// MARK: - DataChannels

/// The outcome of a message from the peer.
enum Delivery {
  /// The message was delivered, stored or acted on.
  case taken
  case useless
  case failed(SCTPFailure)
}

/// Opens and closes data channels; decides when they open (RFC 8832 section 6) and when their
/// streams are reset (RFC 8831 section 6.7).
struct DataChannels {
  typealias Output = SCTPAssociation.Output

  private(set) var table: ChannelTable
  var resets = StreamResets()

  init(next: DataChannelNumber) { table = ChannelTable(next: next) }

  /// Closes and removes all channels because the association ended.
  mutating func end(_ sender: inout Sender, into outbox: inout Outbox<Output>) {
    for place in table.places { finish(place, &sender, into: &outbox) }
  }

  // MARK: Opening

  /// Adds a channel; returns false if it is refused.
  mutating func open(
    _ options: DataChannelInit, _ refusal: DataChannelRefusal?, _ sender: inout Sender,
    into outbox: inout Outbox<Output>
  ) -> Bool {
    let place = table.add(options, state: .connecting)
    sender.queues.open(place, priority: options.priority)
    if let refusal {
      table.refuse(place)
      let reason = "the channel is refused: \(refusal)"
      outbox.append(.channelFailure(table[place].number, reason))
      finish(place, &sender, into: &outbox)
      return false
    }
    if let id = options.id {
      table.assign(id, to: place)
      sender.queues.assign(id, to: place)
    }
    return true
  }

  /// Assigns streams to channels once the role is known (RFC 8832 section 6).
  mutating func assignStreams(
    isEven: Bool, below bound: Int, _ sender: inout Sender, into outbox: inout Outbox<Output>
  ) {
    for place in table.places where table[place].options.id == nil {
      if let stream = table.assignFreeStream(to: place, isEven: isEven, below: bound) {
        sender.queues.assign(stream, to: place)
      } else {
        outbox.append(.channelFailure(table[place].number, "no stream is free"))
        finish(place, &sender, into: &outbox)
      }
    }
  }

  /// Opens the channels that waited for the association.
  ///
  /// They open immediately, as in browsers; until the peer knows them, all their messages are
  /// ordered.
  mutating func openWaiting(
    below bound: Int, _ sender: inout Sender, into outbox: inout Outbox<Output>
  ) {
    for place in table.places where table[place].state == .connecting {
      guard let id = table[place].options.id, Int(id) < bound else {
        outbox.append(.channelFailure(table[place].number, "the peer has too few streams"))
        finish(place, &sender, into: &outbox)
        continue
      }
      if let announcement = table.open(place) {
        sender.queues.enqueue(announcement, on: place)
      }
      outbox.append(.channelOpened(table[place].number))
    }
  }

  // MARK: Messages

  /// Passes a message for a channel to the sender.
  mutating func send(
    _ bytes: [UInt8], binary: Bool, on place: Int, _ sender: inout Sender, at now: Instant
  ) {
    let message = table.message(bytes, binary: binary, on: place)
    sender.enqueue(message, limitedBy: table[place].options, on: place, at: now)
  }

  /// Delivers a complete message from a stream, or acts on it.
  mutating func deliver(
    _ message: ReceivedMessage, _ parameters: SCTPParameters, below bound: Int,
    _ sender: inout Sender, into outbox: inout Outbox<Output>
  ) -> Delivery {
    let outcome = table.receive(
      message, most: parameters.localMaximumMessageSize, isClient: parameters.isClient,
      below: bound)
    switch outcome {
    case .nothing: return .taken
    case .useless: return .useless
    case .message(let number, let binary, let bytes):
      outbox.append(.message(number, binary: binary, bytes))
      return .taken
    case .failed(let failure): return .failed(failure)
    case .announced(let place):
      sender.queues.open(place, priority: table[place].options.priority)
      sender.queues.assign(message.stream, to: place)
      outbox.append(.channelAnnounced(table[place].number))
      sender.queues.enqueue(OutgoingMessage(.acknowledgement), on: place)
      outbox.append(.channelOpened(table[place].number))
      return .taken
    case .refused(let stream):
      // The announced channel is invalid and is closed without an answer (RFC 8832 section 6).
      if let place = table.place(ofStream: stream) {
        beginClosing(place, sender, into: &outbox)
      } else if Int(stream) < bound {
        resets.refuse(stream)
      }
      return .useless
    }
  }

  /// Handles a change of a send queue: requests a reset if the queue is drained, and reports a low
  /// buffered amount.
  mutating func apply(_ change: QueueChange, into outbox: inout Outbox<Output>) {
    if change.isDrained { wantReset(change.place) }
    if change.isLow { outbox.append(.bufferedAmountLow(table[change.place].number)) }
  }

  // MARK: Closing

  /// Closes a channel once everything sent on it has been acknowledged.
  mutating func close(
    _ place: Int, _ sender: inout Sender, into outbox: inout Outbox<Output>
  ) {
    if table[place].state == .connecting { return finish(place, &sender, into: &outbox) }
    beginClosing(place, sender, into: &outbox)
  }

  private mutating func beginClosing(
    _ place: Int, _ sender: borrowing Sender, into outbox: inout Outbox<Output>
  ) {
    guard table.beginClosing(place) else { return }
    outbox.append(.channelClosing(table[place].number))
    if sender.queues.isEmpty(place) { wantReset(place) }
  }

  private mutating func wantReset(_ place: Int) {
    if table.wantReset(place) { resets.want(place) }
  }

  private mutating func finish(
    _ place: Int, _ sender: inout Sender, into outbox: inout Outbox<Output>
  ) {
    let number = table[place].number
    var counters = table[place].counters
    counters.messagesAbandoned = sender.queues.abandoned(of: place)
    sender.queues.close(place)
    resets.forget(place)
    table.remove(place)
    outbox.append(.channelClosed(number, counters))
  }

  // MARK: Resets

  /// Prepares a request to reset the streams of closing channels whose data is acknowledged; if the
  /// peer does not support resets, closes these channels instead.
  ///
  /// - Parameter most: how many streams fit into a request; nil if the peer does not support
  ///   resets.
  /// - Returns: whether there is a request.
  mutating func ask(
    most: Int?, _ sender: inout Sender, into outbox: inout Outbox<Output>
  ) -> Bool {
    var ready: [Int] = []
    for place in resets.wanted where sender.isAcknowledged(place) { ready.append(place) }
    var streams: [UInt16] = []
    if let most {
      for place in ready.prefix(most) {
        table.recordResetRequest(place)
        resets.forget(place)
        if let stream = table[place].options.id { streams.append(stream) }
      }
    } else {
      for place in ready { finish(place, &sender, into: &outbox) }
    }
    return resets.ask(for: streams, most: most ?? 0, lastNumber: sender.sent.nextNumber &- 1)
  }

  /// Closes the channels whose streams the peer reset; an empty list means all.
  mutating func closeByPeer(
    _ streams: [UInt16], _ sender: inout Sender, into outbox: inout Outbox<Output>
  ) {
    let places =
      streams.isEmpty ? table.places : streams.compactMap { table.place(ofStream: $0) }
    for place in places where table.isOnStream(place) {
      if table.recordIncomingReset(place) {
        finish(place, &sender, into: &outbox)
      } else {
        beginClosing(place, sender, into: &outbox)
      }
    }
  }

  /// Removes channels whose streams are reset in both directions.
  mutating func finishReset(
    of streams: [UInt16], _ sender: inout Sender, into outbox: inout Outbox<Output>
  ) {
    for stream in streams {
      if let place = table.recordResetResponse(stream: stream) {
        finish(place, &sender, into: &outbox)
      }
    }
  }
}
