import Wire

/// The outcome of a message from the peer.
enum ChannelOutcome {
  case nothing
  case useless
  case message(DataChannelNumber, binary: Bool, [UInt8])
  case failed(SCTPFailure)
  /// The peer announced a channel, which is now at this place in the table.
  case announced(Int)
  /// The announced channel cannot be opened, and is closed without an answer (RFC 8832 section 6).
  case refused(UInt16)
}

/// An association's data channels, found by place, number or stream; announces and closes them
/// (RFC 8832, RFC 8831 section 6).
struct ChannelTable {
  private var slots: [Channel] = []
  private var free: [Int] = []
  private var byNumber: [(number: DataChannelNumber, place: Int)] = []
  private var byStream: [Int32] = []
  private(set) var next: DataChannelNumber

  init(next: DataChannelNumber) { self.next = next }

  var count: Int { byNumber.count }

  /// The places of all channels, oldest channel first.
  var places: [Int] { byNumber.map(\.place) }

  /// The channel at a place; places are reused after a channel is removed.
  subscript(place: Int) -> Channel { slots[place] }

  mutating func add(_ options: DataChannelInit, state: DataChannelState) -> Int {
    let channel = Channel(number: next, options: options, state: state)
    let place = free.popLast() ?? slots.count
    if place == slots.count { slots.append(channel) } else { slots[place] = channel }
    byNumber.append((next, place))
    next = DataChannelNumber(next.rawValue &+ 1)
    return place
  }

  mutating func assign(_ stream: UInt16, to place: Int) {
    let index = Int(stream)
    if index >= byStream.count {
      byStream.append(contentsOf: repeatElement(-1, count: index + 1 - byStream.count))
    }
    byStream[index] = Int32(place)
    slots[place].assign(stream)
  }

  mutating func remove(_ place: Int) {
    guard let index = index(of: slots[place].number) else { return }
    if let stream = slots[place].options.id, self.place(ofStream: stream) == place {
      byStream[Int(stream)] = -1
    }
    slots[place] = Channel(number: slots[place].number, options: DataChannelInit(), state: .closed)
    free.append(place)
    byNumber.remove(at: index)
  }

  func place(ofStream stream: UInt16) -> Int? {
    guard Int(stream) < byStream.count, byStream[Int(stream)] >= 0 else { return nil }
    return Int(byStream[Int(stream)])
  }

  func place(of number: DataChannelNumber) -> Int? { index(of: number).map { byNumber[$0].place } }

  /// Returns the lowest free stream below a bound, even or odd as the role requires; nil if none is
  /// free.
  func freeStream(isEven: Bool, below bound: Int) -> UInt16? {
    for stream in stride(from: isEven ? 0 : 1, to: min(bound, 65535), by: 2)
    where place(ofStream: UInt16(stream)) == nil {
      return UInt16(stream)
    }
    return nil
  }

  private func index(of number: DataChannelNumber) -> Int? {
    var low = 0
    var high = byNumber.count
    while low < high {
      let middle = (low + high) / 2
      if byNumber[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low < byNumber.count && byNumber[low].number == number ? low : nil
  }

  // MARK: Opening

  /// Releases the stream of a refused channel.
  mutating func refuse(_ place: Int) { slots[place].assign(nil) }

  /// Assigns the lowest free stream to a channel that has none (RFC 8832 section 6); returns nil if
  /// none is free.
  mutating func assignFreeStream(to place: Int, isEven: Bool, below bound: Int) -> UInt16? {
    guard let stream = freeStream(isEven: isEven, below: bound) else { return nil }
    assign(stream, to: place)
    return stream
  }

  /// Opens a channel that was waiting for the association; returns its announcement, or nil for a
  /// negotiated channel.
  mutating func open(_ place: Int) -> OutgoingMessage? {
    slots[place].open()
    guard slots[place].options.negotiated else {
      return OutgoingMessage(.open(slots[place].options))
    }
    slots[place].confirm()
    return nil
  }

  // MARK: Messages

  /// Creates a message for a channel (RFC 8831 section 6.6).
  ///
  /// An empty message is sent as one byte. All messages are ordered until the peer knows the
  /// channel (RFC 8832 section 6).
  mutating func message(_ bytes: [UInt8], binary: Bool, on place: Int) -> OutgoingMessage {
    slots[place].countSent(bytes.count)
    let kind: PayloadProtocol
    if bytes.isEmpty {
      kind = binary ? .emptyBinary : .emptyString
    } else {
      kind = binary ? .binary : .string
    }
    return OutgoingMessage(
      bytes: bytes.isEmpty ? [0] : bytes, payloadProtocol: kind,
      ordered: slots[place].options.ordered || !slots[place].isConfirmed, limits: MessageLimits(),
      buffered: UInt64(bytes.count))
  }

  /// Handles a complete message from a stream.
  ///
  /// - Parameters:
  ///   - most: the maximum message size.
  ///   - isClient: whether the local peer is the DTLS client, in which case the remote peer uses
  ///     odd streams.
  ///   - bound: the number of streams.
  mutating func receive(
    _ message: ReceivedMessage, most: Int, isClient: Bool, below bound: Int
  ) -> ChannelOutcome {
    if message.payloadProtocol == .control {
      return receiveControl(message, isClient: isClient, below: bound)
    }
    guard let place = place(ofStream: message.stream),
      slots[place].state == .open || slots[place].state == .closing
    else { return .useless }
    switch slots[place].receive(message.payloadProtocol, message.bytes, most: most) {
    case .nothing: return .nothing
    case .useless: return .useless
    case .tooLarge: return .failed(Receiver.tooLarge)
    case .message(let binary, let bytes):
      return .message(slots[place].number, binary: binary, bytes)
    }
  }

  private mutating func receiveControl(
    _ message: ReceivedMessage, isClient: Bool, below bound: Int
  ) -> ChannelOutcome {
    guard let control = try? ChannelMessage(message.bytes.span.bytes) else {
      return .refused(message.stream)
    }
    switch control {
    case .acknowledgement:
      guard let place = place(ofStream: message.stream) else { return .useless }
      slots[place].confirm()
      return .nothing
    case .open(let options):
      guard place(ofStream: message.stream) == nil, message.stream % 2 == (isClient ? 1 : 0),
        count < SCTPLimits.channels, Int(message.stream) < bound
      else { return .refused(message.stream) }
      let place = add(options, state: .open)
      assign(message.stream, to: place)
      slots[place].confirm()
      return .announced(place)
    }
  }

  // MARK: Closing

  /// Starts closing a channel; returns false if it is not open.
  mutating func beginClosing(_ place: Int) -> Bool { slots[place].beginClosing() }

  /// Returns true once, when the stream of a closing channel should be reset.
  mutating func wantReset(_ place: Int) -> Bool { slots[place].wantReset() }

  mutating func recordResetRequest(_ place: Int) { slots[place].recordResetRequest() }

  /// Records the response to a stream's reset; returns the channel's place if the channel is now
  /// closed in both directions, and nil otherwise.
  mutating func recordResetResponse(stream: UInt16) -> Int? {
    guard let place = place(ofStream: stream), slots[place].recordResetResponse() else {
      return nil
    }
    return place
  }

  /// Returns whether a place holds a channel that has a stream.
  func isOnStream(_ place: Int) -> Bool {
    slots[place].state != .closed && slots[place].options.id != nil
  }

  /// Records that the peer reset a channel's stream; returns whether the channel is closed in both
  /// directions.
  mutating func recordIncomingReset(_ place: Int) -> Bool { slots[place].recordIncomingReset() }
}

// MARK: - Channel

/// A data channel's options, state and traffic.
struct Channel {
  /// The progress of resetting the outgoing stream (RFC 8831 section 6.7).
  enum OutgoingReset {
    case none, wanted, asked, done
  }

  /// The outcome of a message from the peer.
  enum Arrival {
    /// A part of a message arrived; there is nothing to deliver yet.
    case nothing
    case useless
    case tooLarge
    case message(binary: Bool, [UInt8])
  }

  let number: DataChannelNumber
  private(set) var options: DataChannelInit
  private(set) var state: DataChannelState
  private(set) var counters = DataChannelCounters()
  /// Whether the peer knows the channel; until then, messages must not overtake the announcement.
  private(set) var isConfirmed = false
  private(set) var outgoingReset = OutgoingReset.none
  /// Whether the peer has reset the incoming stream.
  private(set) var isIncomingReset = false
  /// The parts received so far of a message that the peer splits with the deprecated payload
  /// protocol identifiers.
  private var parts: [UInt8] = []

  init(number: DataChannelNumber, options: DataChannelInit, state: DataChannelState) {
    self.number = number
    self.options = options
    self.state = state
  }

  mutating func assign(_ stream: UInt16?) { options.id = stream }

  /// Records that the peer knows the channel (RFC 8832 section 6).
  mutating func confirm() { isConfirmed = true }

  mutating func open() { state = .open }

  /// Starts closing the channel; returns false if it is not open.
  mutating func beginClosing() -> Bool {
    guard state == .open else { return false }
    state = .closing
    return true
  }

  /// Requests a reset of the outgoing stream once the channel is closing; returns false if already
  /// requested.
  mutating func wantReset() -> Bool {
    guard state == .closing, outgoingReset == .none else { return false }
    outgoingReset = .wanted
    return true
  }

  mutating func recordResetRequest() { outgoingReset = .asked }

  /// Records the response to the reset request; returns whether the channel is closed in both
  /// directions.
  mutating func recordResetResponse() -> Bool {
    guard outgoingReset == .asked else { return false }
    outgoingReset = .done
    return isIncomingReset
  }

  /// Records that the peer reset its stream; returns whether the channel is closed in both
  /// directions.
  mutating func recordIncomingReset() -> Bool {
    isIncomingReset = true
    return outgoingReset == .done
  }

  /// Counts a message passed to `send`.
  mutating func countSent(_ bytes: Int) {
    counters.messagesSent += 1
    counters.bytesSent += UInt64(bytes)
  }

  /// Handles a message from the peer, which proves that the peer knows the channel (RFC 8832
  /// section 6).
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

// MARK: - ChannelMessage

/// A message of the Data Channel Establishment Protocol (RFC 8832 section 5).
enum ChannelMessage: Hashable {
  case open(DataChannelInit)
  case acknowledgement

  private static let openType: UInt8 = 3
  private static let acknowledgementType: UInt8 = 2
  /// The channel type bit for unordered delivery.
  private static let unordered: UInt8 = 0x80

  var bytes: [UInt8] {
    guard case .open(let channel) = self else { return [Self.acknowledgementType] }
    var type: UInt8 = 0
    var limit: UInt32 = 0
    if let count = channel.maxRetransmits {
      type = 1
      limit = UInt32(count)
    } else if let time = channel.maxPacketLifeTime {
      type = 2
      limit = UInt32(time)
    }
    let label = Array(channel.label.utf8.prefix(65535))
    let name = Array(channel.protocol.utf8.prefix(65535))
    var writer = ByteWriter(capacity: 12 + label.count + name.count)
    writer.uint8(Self.openType)
    writer.uint8(channel.ordered ? type : type | Self.unordered)
    writer.uint16(channel.priority.rawValue)
    writer.uint32(limit)
    writer.uint16(UInt16(truncatingIfNeeded: label.count))
    writer.uint16(UInt16(truncatingIfNeeded: name.count))
    writer.append(label)
    writer.append(name)
    return writer.bytes
  }

  /// Parses a message; a limit above 65,535 is clamped.
  init(_ bytes: RawSpan) throws(ReadError) {
    var reader = ByteReader(bytes)
    switch try reader.uint8() {
    case Self.acknowledgementType: self = .acknowledgement
    case Self.openType:
      var channel = DataChannelInit()
      let type = try reader.uint8()
      channel.ordered = type & Self.unordered == 0
      channel.priority = DataChannelPriority(weight: try reader.uint16())
      let limit = UInt16(clamping: try reader.uint32())
      switch type & ~Self.unordered {
      case 0: break
      case 1: channel.maxRetransmits = limit
      case 2: channel.maxPacketLifeTime = limit
      default: throw .malformed
      }
      let labelLength = Int(try reader.uint16())
      let protocolLength = Int(try reader.uint16())
      channel.label = String(decoding: try reader.array(labelLength), as: UTF8.self)
      channel.protocol = String(decoding: try reader.array(protocolLength), as: UTF8.self)
      self = .open(channel)
    default: throw .malformed
    }
  }
}
