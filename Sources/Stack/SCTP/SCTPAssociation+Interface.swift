import Wire

extension SCTPAssociation {
  package enum Input {
    /// Begins the association; packets received before, up to a small limit, are handled now.
    case start(SCTPParameters)
    /// A packet from the DTLS association.
    case packet([UInt8])
    /// Creates a channel, which gets the number `nextChannel`; ask `refusal(ofOpening:)` before.
    case open(DataChannelInit)
    /// Sends a text (UTF-8) or a binary message; ask `refusal(ofSending:on:)` before.
    case send(DataChannelNumber, binary: Bool, [UInt8])
    /// Closes a channel after what was sent on it; the peer closes its side then.
    case close(DataChannelNumber)
    case setBufferedAmountLowThreshold(DataChannelNumber, UInt64)
    /// The peer's `a=max-message-size` of a later exchange; what is queued is still sent.
    case remoteMaximumMessageSize(UInt64)
    case deadline
    /// Ends the association when everything that was sent is acknowledged.
    case shutdown
    /// Ends the association now.
    case abort
  }

  package enum Output {
    /// A packet for the DTLS association.
    case packet([UInt8])
    case state(SCTPState)
    /// Why the association failed, in words; comes before the state.
    case failure(String)
    /// The peer made this channel; `channelOpened` follows in the same step.
    case channelAnnounced(DataChannelNumber)
    case channelOpened(DataChannelNumber)
    /// The peer or this side began to close the channel.
    case channelClosing(DataChannelNumber)
    /// The channel is gone; this is what it carried.
    case channelClosed(DataChannelNumber, DataChannelCounters)
    /// A channel could not be used, in words; `channelClosed` follows.
    case channelFailure(DataChannelNumber, String)
    case message(DataChannelNumber, binary: Bool, [UInt8])
    /// The buffered amount fell to the threshold or below.
    case bufferedAmountLow(DataChannelNumber)
  }
}

// MARK: - Reading

extension SCTPAssociation {
  var parameters: SCTPParameters { transfer.parameters }
  var packets: PacketWriter { transfer.packets }
  var sender: Sender { transfer.sender }
  var receiver: Receiver { transfer.receiver }
  var channels: DataChannels { transfer.channels }

  /// The state of the transport.
  package var state: SCTPState { handshake.phase.state }

  /// What the association did so far, and the state of its path.
  package var statistics: SCTPStatistics {
    var result = SCTPStatistics()
    result.packetsSent = packets.sent
    result.packetsReceived = reader.received
    result.dropped = reader.dropped + transfer.dropped
    result.chunksSent = sender.counters.chunksSent
    result.chunksRetransmitted = sender.counters.chunksRetransmitted
    result.chunksReceived = receiver.counters.chunks
    result.duplicates = receiver.counters.duplicates
    result.timeouts = sender.counters.timeouts
    result.fastRecoveries = sender.counters.fastRecoveries
    result.smoothedRoundTripTime = sender.roundTrip.smoothed
    result.retransmissionTimeout = sender.roundTrip.timeout
    result.congestionWindow = sender.window.bytes
    result.receiverWindow = sender.peerWindow
    result.maximumPacketSize = parameters.maximumPacketSize
    result.unacknowledgedChunks = sender.sent.count
    result.bytesInFlight = sender.sent.flight
    return result
  }

  /// The number that the next channel gets.
  package var nextChannel: DataChannelNumber { channels.table.next }

  /// All channels that are not closed, oldest first.
  package var channelNumbers: [DataChannelNumber] {
    channels.table.places.map { channels.table[$0].number }
  }

  /// The state of a channel; a channel that is unknown is closed.
  package func state(of channel: DataChannelNumber) -> DataChannelState {
    channels.table.place(of: channel).map { channels.table[$0].state } ?? .closed
  }

  /// What a channel is made with, its stream included once it has one; nil when it is closed.
  package func options(of channel: DataChannelNumber) -> DataChannelInit? {
    channels.table.place(of: channel).map { channels.table[$0].options }
  }

  /// The bytes that were passed to `send` and are not sent yet; 0 when the channel is closed.
  package func bufferedAmount(of channel: DataChannelNumber) -> UInt64 {
    channels.table.place(of: channel).map { sender.queues.bufferedAmount(of: $0) } ?? 0
  }

  /// The threshold of a channel's buffered amount; 0 when it is closed.
  package func bufferedAmountLowThreshold(of channel: DataChannelNumber) -> UInt64 {
    channels.table.place(of: channel).map { sender.queues.lowThreshold(of: $0) } ?? 0
  }

  /// What a channel carried so far; nil when it is closed.
  package func counters(of channel: DataChannelNumber) -> DataChannelCounters? {
    channels.table.place(of: channel).map { counters(at: $0) }
  }

  /// What the channel at a place carried so far.
  func counters(at place: Int) -> DataChannelCounters {
    var counters = channels.table[place].counters
    counters.messagesAbandoned = sender.queues.abandoned(of: place)
    return counters
  }

  /// Why a channel cannot be made; nil when it can.
  package func refusal(ofOpening options: DataChannelInit) -> DataChannelRefusal? {
    if handshake.phase == .ended { return .closed }
    if options.label.utf8.count > 65535 || options.protocol.utf8.count > 65535
      || options.maxPacketLifeTime != nil && options.maxRetransmits != nil
      || options.negotiated && options.id == nil || options.id == 65535
    {
      return .malformed
    }
    if let id = options.id {
      let isTaken = channels.table.places.contains { channels.table[$0].options.id == id }
      let isMissing = handshake.phase.isEstablished && Int(id) >= handshake.streamCount
      if isTaken || isMissing { return .noStream }
    } else if handshake.phase != .idle,
      channels.table.freeStream(isEven: parameters.isClient, below: handshake.streamCount) == nil
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
    guard let place = channels.table.place(of: channel), channels.table[place].state == .open,
      handshake.phase == .established
    else { return .notOpen }
    let maximum = parameters.remoteMaximumMessageSize
    if maximum > 0, UInt64(count) > maximum { return .tooLarge(maximum: maximum) }
    let buffered = sender.queues.bufferedAmount(of: place)
    let (sum, overflow) = buffered.addingReportingOverflow(UInt64(count))
    if overflow || sum > SCTPLimits.channelBuffer, buffered > 0 { return .bufferFull }
    return nil
  }
}
