/// A data channel: what it was made with, its state and what it carried.
struct Channel {
  /// How far the reset of the stream to the peer is (RFC 8831 section 6.7).
  enum OutgoingReset {
    case none, wanted, asked, done
  }

  /// The outcome of a message.
  enum Arrival {
    /// A part of a message, or of no use.
    case nothing
    case useless
    case tooLarge
    case message(binary: Bool, [UInt8])
  }

  let number: DataChannelNumber
  private(set) var options: DataChannelInit
  private(set) var state: DataChannelState
  private(set) var counters = DataChannelCounters()
  /// Whether the peer knows of the channel, so that messages may overtake the announcement.
  private(set) var isConfirmed = false
  private(set) var outgoingReset = OutgoingReset.none
  /// Whether the peer reset the stream to this side.
  private(set) var isIncomingReset = false
  /// The outcome of a message in deprecated parts.
  private var parts: [UInt8] = []

  init(number: DataChannelNumber, options: DataChannelInit, state: DataChannelState) {
    self.number = number
    self.options = options
    self.state = state
  }

  mutating func assign(_ stream: UInt16?) { options.id = stream }

  /// Records that the peer knows of the channel (RFC 8832 section 6).
  mutating func confirm() { isConfirmed = true }

  mutating func open() { state = .open }

  /// Starts to close the channel; false when it is not open.
  mutating func beginClosing() -> Bool {
    guard state == .open else { return false }
    state = .closing
    return true
  }

  /// Requests a reset of the outgoing stream once the channel closes; false when that was done
  /// before.
  mutating func wantReset() -> Bool {
    guard state == .closing, outgoingReset == .none else { return false }
    outgoingReset = .wanted
    return true
  }

  mutating func recordResetRequest() { outgoingReset = .asked }

  /// Records the response to the reset request; returns whether the channel is closed on both
  /// sides.
  mutating func recordResetResponse() -> Bool {
    guard outgoingReset == .asked else { return false }
    outgoingReset = .done
    return isIncomingReset
  }

  /// Records that the peer reset its stream; returns whether the channel is closed on both sides.
  mutating func recordIncomingReset() -> Bool {
    isIncomingReset = true
    return outgoingReset == .done
  }

  /// Counts a message passed to `send`.
  mutating func countSent(_ bytes: Int) {
    counters.messagesSent += 1
    counters.bytesSent += UInt64(bytes)
  }

  /// Handles a message from the peer, which shows that it knows the channel (RFC 8832 section 6).
  mutating func receive(
    _ kind: PayloadProtocol, _ bytes: [UInt8], most: Int
  ) -> Arrival {
    isConfirmed = true
    switch kind {
    case .string: return hand(bytes, binary: false)
    case .binary: return hand(bytes, binary: true)
    case .emptyString: return hand([], binary: false)
    case .emptyBinary: return hand([], binary: true)
    case .stringPart, .binaryPart:
      guard parts.count + bytes.count <= most else { return .tooLarge }
      parts += bytes
      return .nothing
    default: return .useless
    }
  }

  private mutating func hand(_ bytes: [UInt8], binary: Bool) -> Arrival {
    var whole = bytes
    if !parts.isEmpty {
      whole = parts + bytes
      parts = []
    }
    counters.messagesReceived += 1
    counters.bytesReceived += UInt64(whole.count)
    return .message(binary: binary, whole)
  }
}
