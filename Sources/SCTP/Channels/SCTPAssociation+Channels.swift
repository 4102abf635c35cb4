import DequeModule
import Wire

/// Data channels: made, announced, used and closed (RFC 8831, RFC 8832).
extension SCTPAssociation {
  /// The number that the next channel gets.
  package var nextChannel: DataChannelNumber { channels.next }

  /// All channels that are not closed, oldest first.
  package var channelNumbers: [DataChannelNumber] { channels.places.map { channels[$0].number } }

  /// The state of a channel; a channel that is unknown is closed.
  package func state(of channel: DataChannelNumber) -> DataChannelState {
    channels.place(of: channel).map { channels[$0].state } ?? .closed
  }

  /// What a channel is made with, its stream included once it has one; nil when it is closed.
  package func options(of channel: DataChannelNumber) -> DataChannelInit? {
    channels.place(of: channel).map { channels[$0].options }
  }

  /// The bytes that were given to `send` and are not sent yet; 0 when the channel is closed.
  package func bufferedAmount(of channel: DataChannelNumber) -> UInt64 {
    channels.place(of: channel).map { channels[$0].bufferedAmount } ?? 0
  }

  /// The threshold of a channel's buffered amount; 0 when it is closed.
  package func bufferedAmountLowThreshold(of channel: DataChannelNumber) -> UInt64 {
    channels.place(of: channel).map { channels[$0].lowThreshold } ?? 0
  }

  /// What a channel carried so far; nil when it is closed.
  package func counters(of channel: DataChannelNumber) -> DataChannelCounters? {
    channels.place(of: channel).map { channels[$0].counters }
  }

  /// Why a channel cannot be made; nil when it can.
  package func refusal(ofOpening options: DataChannelInit) -> DataChannelRefusal? {
    if phase == .ended { return .closed }
    if options.label.utf8.count > 65535 || options.protocol.utf8.count > 65535
      || options.maxPacketLifeTime != nil && options.maxRetransmits != nil
      || options.negotiated && options.id == nil || options.id == 65535
    {
      return .malformed
    }
    if let id = options.id {
      let isTaken = channels.places.contains { channels[$0].options.id == id }
      if isTaken || isEstablished && Int(id) >= streamCount { return .noStream }
    } else if phase != .idle,
      channels.freeStream(isEven: parameters.isClient, below: streamCount) == nil
    {
      return .noStream
    }
    return nil
  }

  /// Why a message of so many bytes cannot be sent; nil when it can.
  package func refusal(
    ofSending count: Int, on channel: DataChannelNumber
  ) -> DataChannelRefusal? {
    // An association that shuts down takes no more data (RFC 9260 section 9.2).
    guard let place = channels.place(of: channel), channels[place].state == .open,
      phase == .established
    else { return .notOpen }
    let maximum = parameters.remoteMaximumMessageSize
    if maximum > 0, UInt64(count) > maximum { return .tooLarge(maximum: maximum) }
    let (sum, overflow) = channels[place].bufferedAmount.addingReportingOverflow(UInt64(count))
    if overflow || sum > SCTPLimits.channelBuffer, channels[place].bufferedAmount > 0 {
      return .bufferFull
    }
    return nil
  }

  /// How many streams to the peer there are.
  private var streamCount: Int {
    isEstablished ? Int(min(SCTPLimits.streams, peer.incomingStreams)) : Int(SCTPLimits.streams)
  }

  // MARK: - Making

  mutating func open(
    _ options: DataChannelInit, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    let refusal = refusal(ofOpening: options)
    let place = channels.add(options, state: .connecting)
    if let refusal {
      channels[place].options.id = nil
      outbox.append(.channelFailure(channels[place].number, "the channel is refused: \(refusal)"))
      return finish(place, into: &outbox)
    }
    if let id = options.id { channels.assign(id, to: place) }
    guard phase != .idle else { return }
    assignStreams(into: &outbox)
    if isEstablished { openWaiting(at: now, into: &outbox) }
  }

  /// Gives channels their streams once the role is known (RFC 8832 section 6).
  mutating func assignStreams(into outbox: inout Outbox<Output>) {
    for place in channels.places where channels[place].options.id == nil {
      if let id = channels.freeStream(isEven: parameters.isClient, below: streamCount) {
        channels.assign(id, to: place)
      } else {
        outbox.append(.channelFailure(channels[place].number, "no stream is free"))
        finish(place, into: &outbox)
      }
    }
  }

  /// Opens the channels that waited for the association.
  ///
  /// They are open at once, as in browsers; until the peer knows them they send in order.
  mutating func openWaiting(at now: Instant, into outbox: inout Outbox<Output>) {
    for place in channels.places where channels[place].state == .connecting {
      guard let id = channels[place].options.id, Int(id) < streamCount else {
        outbox.append(.channelFailure(channels[place].number, "the peer has too few streams"))
        finish(place, into: &outbox)
        continue
      }
      channels[place].state = .open
      if channels[place].options.negotiated {
        channels[place].isConfirmed = true
      } else {
        sendControl(.open(channels[place].options), on: place)
      }
      outbox.append(.channelOpened(channels[place].number))
    }
  }

  private mutating func sendControl(_ message: ChannelMessage, on place: Int) {
    enqueue(
      OutgoingMessage(
        bytes: message.bytes, payloadProtocol: .control, ordered: true, limits: MessageLimits(),
        number: nextMessage, buffered: 0), on: place)
    nextMessage += 1
  }

  // MARK: - Using

  mutating func send(
    _ bytes: [UInt8], binary: Bool, on channel: DataChannelNumber, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    guard let place = channels.place(of: channel), isEstablished,
      refusal(ofSending: bytes.count, on: channel) == nil
    else { return drop() }
    let options = channels[place].options
    var limits = MessageLimits()
    if peer.features.contains(.forward) {
      limits.expiry = options.maxPacketLifeTime.map { now + .milliseconds(Int64($0)) }
      limits.retransmissions = options.maxRetransmits.map { Int($0) }
    }
    let kind: PayloadProtocol
    if bytes.isEmpty {
      kind = binary ? .emptyBinary : .emptyString
    } else {
      kind = binary ? .binary : .string
    }
    let message = OutgoingMessage(
      // SCTP has no empty messages: one byte stands for none (RFC 8831 section 6.6).
      bytes: bytes.isEmpty ? [0] : bytes, payloadProtocol: kind,
      ordered: options.ordered || !channels[place].isConfirmed, limits: limits,
      number: nextMessage, buffered: UInt64(bytes.count))
    nextMessage += 1
    channels[place].bufferedAmount += UInt64(bytes.count)
    channels[place].counters.messagesSent += 1
    channels[place].counters.bytesSent += UInt64(bytes.count)
    enqueue(message, on: place)
  }

  /// Takes a whole message from a stream.
  mutating func receiveMessage(
    _ message: ReceivedMessage, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    if message.payloadProtocol == .control {
      return receiveControl(message, into: &outbox)
    }
    guard let place = channels.place(ofStream: message.stream),
      channels[place].state == .open || channels[place].state == .closing
    else { return drop() }
    // Any message shows that the peer knows the channel (RFC 8832 section 6).
    channels[place].isConfirmed = true
    switch message.payloadProtocol {
    case .string: hand(message.bytes, binary: false, from: place, into: &outbox)
    case .binary: hand(message.bytes, binary: true, from: place, into: &outbox)
    case .emptyString: hand([], binary: false, from: place, into: &outbox)
    case .emptyBinary: hand([], binary: true, from: place, into: &outbox)
    case .stringPart, .binaryPart:
      let size = channels[place].parts.count + message.bytes.count
      guard size <= parameters.localMaximumMessageSize else {
        return fail(.protocolViolation, "the peer sent too large a message", into: &outbox)
      }
      channels[place].parts += message.bytes
    default: drop()
    }
  }

  private mutating func hand(
    _ bytes: [UInt8], binary: Bool, from place: Int, into outbox: inout Outbox<Output>
  ) {
    var whole = bytes
    if !channels[place].parts.isEmpty {
      whole = channels[place].parts + bytes
      channels[place].parts = []
    }
    channels[place].counters.messagesReceived += 1
    channels[place].counters.bytesReceived += UInt64(whole.count)
    outbox.append(.message(channels[place].number, binary: binary, whole))
  }

  private mutating func receiveControl(
    _ message: ReceivedMessage, into outbox: inout Outbox<Output>
  ) {
    guard let control = try? ChannelMessage(message.bytes.span.bytes) else {
      return refuseChannel(on: message.stream, into: &outbox)
    }
    switch control {
    case .acknowledgement:
      guard let place = channels.place(ofStream: message.stream) else { return drop() }
      channels[place].isConfirmed = true
    case .open(let options):
      // The DTLS client has the even streams.
      guard channels.place(ofStream: message.stream) == nil,
        message.stream % 2 == (parameters.isClient ? 1 : 0),
        channels.count < SCTPLimits.channels, Int(message.stream) < streamCount
      else { return refuseChannel(on: message.stream, into: &outbox) }
      let place = channels.add(options, state: .open)
      channels.assign(message.stream, to: place)
      channels[place].isConfirmed = true
      outbox.append(.channelAnnounced(channels[place].number))
      sendControl(.acknowledgement, on: place)
      outbox.append(.channelOpened(channels[place].number))
    }
  }

  /// Closes what a peer announced wrongly, and does not answer it (RFC 8832 section 6).
  private mutating func refuseChannel(on stream: UInt16, into outbox: inout Outbox<Output>) {
    drop()
    if let place = channels.place(ofStream: stream) {
      beginClosing(place, into: &outbox)
    } else if Int(stream) < streamCount, reset.refused.count < SCTPLimits.channels {
      reset.refused.append(stream)
    }
  }

  // MARK: - Closing

  mutating func close(_ channel: DataChannelNumber, into outbox: inout Outbox<Output>) {
    guard let place = channels.place(of: channel) else { return drop() }
    if channels[place].state == .connecting { return finish(place, into: &outbox) }
    beginClosing(place, into: &outbox)
  }

  mutating func beginClosing(_ place: Int, into outbox: inout Outbox<Output>) {
    guard channels[place].state == .open else { return }
    channels[place].state = .closing
    outbox.append(.channelClosing(channels[place].number))
    if channels[place].queue.isEmpty { wantReset(place) }
  }

  /// Removes a channel.
  mutating func finish(_ place: Int, into outbox: inout Outbox<Output>) {
    let number = channels[place].number
    let counters = channels[place].counters
    if unfinished == place { unfinished = nil }
    schedule.remove(place)
    reset.wanted.removeAll { $0 == place }
    channels.remove(place)
    outbox.append(.channelClosed(number, counters))
  }
}
