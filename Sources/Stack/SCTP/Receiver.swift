import Wire

/// The outcome of a chunk that contains or skips data.
enum ReceiverOutcome {
  /// There is nothing to deliver.
  case nothing
  case useless
  /// The peer has no such stream; the data counts as received (RFC 9260 section 6.5).
  case unknownStream(ControlChunk)
  case failed(SCTPFailure)
  case messages([ReceivedMessage])
}

/// Receives data: the cumulative number and gaps, SACKs and their delay (RFC 9260 section 6.2), and
/// reassembled messages (section 6.9, RFC 8260 section 2).
struct Receiver {
  struct Counters: Hashable {
    var chunks: UInt64 = 0
    var duplicates: UInt64 = 0
  }

  /// Whether received data still has to be acknowledged.
  enum Acknowledgement {
    case none, delayed, due
  }

  private(set) var numbers = ReceivedNumbers(first: 0)
  private(set) var streams = IncomingStreams()
  private(set) var acknowledgement = Acknowledgement.none
  private(set) var counters = Counters()
  /// Whether the current packet contained data.
  private(set) var hasData = false
  /// The number of streams the peer may send on.
  private(set) var streamCount: UInt16 = 0
  private var limits = SCTPParameters(isClient: true)
  private var interleaves = false
  /// The receive window in the last SACK.
  private var advertisedWindow = Int.max
  private var duplicates: [UInt32] = []

  var freeWindow: Int { max(0, limits.receiveWindow - streams.heldBytes) }

  /// Applies the local limits and the peer's parameters.
  mutating func establish(
    _ limits: SCTPParameters, _ peer: Initiation, interleaves: Bool
  ) {
    self.limits = limits
    self.interleaves = interleaves
    streamCount = peer.outgoingStreams
    numbers = ReceivedNumbers(first: peer.firstNumber)
  }

  /// Drops pending data.
  mutating func end() {
    acknowledgement = .none
    streams.removeAll()
  }

  /// Adds streams on which the peer may send; returns false if there would be too many (RFC 6525
  /// section 5.2.5).
  mutating func addStreams(_ more: UInt16) -> Bool {
    guard Int(streamCount) + Int(more) <= Int(SCTPLimits.streams) else { return false }
    streamCount += more
    return true
  }

  /// Resets the streams that the peer reset; all streams if the list is empty (RFC 6525 section
  /// 5.2.2).
  mutating func reset(_ numbers: [UInt16]) {
    let all = numbers.isEmpty ? streams.streams.map(\.identifier) : numbers
    for stream in all {
      if let place = streams.knownPlace(of: stream) { streams.change(place) { $0.reset() } }
    }
  }

  // MARK: Data

  mutating func beginPacket() { hasData = false }

  /// Handles the body of a DATA or I-DATA chunk; the outcome has the messages to deliver, if any.
  mutating func receive(_ body: RawSpan, _ flags: DataFlags, interleaved: Bool) -> ReceiverOutcome {
    guard interleaved == interleaves else { return .failed(Self.otherKind) }
    do throws(ReadError) {
      var reader = ByteReader(body)
      let number = try reader.uint32()
      let stream = try reader.uint16()
      let sequence = try reader.uint16()
      let identifier = interleaved ? try reader.uint32() : 0
      let word = try reader.uint32()
      guard !reader.isAtEnd else { return .failed(Self.noUserData(number)) }
      // If messages interleave, this word is the payload protocol in a message's first fragment,
      // and the fragment's number in the others.
      let part = interleaved && !flags.contains(.beginning) ? word : 0
      guard part < 1 << 24, !interleaved || (part == 0) == flags.contains(.beginning) else {
        return .useless
      }
      hasData = true
      if flags.contains(.immediate) { acknowledgement = .due }
      let extended = numbers.extend(number)
      if let refusal = admit(extended, number, size: reader.remaining) { return refusal }
      guard stream < streamCount else { return .unknownStream(Self.invalid(stream)) }
      let place = streams.place(of: stream)
      var fragment = Fragment(
        key: extended, message: 0, flags: flags,
        payloadProtocol: PayloadProtocol(rawValue: word), bytes: [UInt8](reader.rest()))
      if interleaved {
        fragment.message = streams.streams[place].extend(
          identifier: identifier, unordered: flags.contains(.unordered))
        fragment.key = fragment.message &<< 24 | Int64(part)
      } else {
        fragment.message = streams.streams[place].extend(sequence: sequence)
      }
      let size = streams.change(place) { $0.insert(fragment) }
      guard size <= limits.localMaximumMessageSize else { return .failed(Self.tooLarge) }
      guard !streams.streams[place].messages.isEmpty else { return .nothing }
      return .messages(streams.change(place) { $0.removeComplete() })
    } catch {
      return .useless
    }
  }

  /// Records a transmission number; returns the outcome if the number is not new or there is no
  /// space for its data, otherwise nil.
  private mutating func admit(_ extended: Int64, _ number: UInt32, size: Int) -> ReceiverOutcome? {
    let isNext = extended == numbers.cumulative + 1
    let isFull =
      streams.heldBytes + size > limits.receiveWindow
      || streams.heldFragments >= SCTPLimits.fragmentsHeld
    if isFull, extended > numbers.cumulative {
      acknowledgement = .due
      // Twice the usual limits apply to the chunk that fills the first gap, because messages that
      // wait for it may then be delivered.
      guard isNext else { return .useless }
      guard streams.heldBytes + size <= 2 * limits.receiveWindow,
        streams.heldFragments < 2 * SCTPLimits.fragmentsHeld
      else { return .failed(Self.overfull) }
    }
    switch numbers.insert(extended) {
    case .new:
      counters.chunks += 1
      // The very first chunk, and chunks around a gap, are acknowledged immediately.
      if !isNext || !numbers.ranges.isEmpty || counters.chunks == 1 { acknowledgement = .due }
      return nil
    case .duplicate:
      counters.duplicates += 1
      acknowledgement = .due
      if duplicates.count < 16 { duplicates.append(number) }
      return .nothing
    case .refused:
      acknowledgement = .due
      return .useless
    }
  }

  /// Skips messages that the peer abandoned (RFC 3758 section 3.6, RFC 8260 section 2.3.1).
  mutating func receiveForward(_ body: RawSpan, interleaved: Bool) -> ReceiverOutcome {
    guard interleaved == interleaves else { return .failed(Self.otherKind) }
    var reader = ByteReader(body)
    guard let number = try? reader.uint32() else { return .useless }
    hasData = true
    acknowledgement = .due
    let cumulative = numbers.extend(number)
    guard cumulative > numbers.cumulative else { return .nothing }
    numbers.forward(to: cumulative)
    // Apart from the streams in the chunk, only streams with unordered fragments have anything to
    // drop.
    var changed = streams.unorderedPlaces
    while !reader.isAtEnd {
      guard let stream = try? reader.uint16(), let word = try? reader.uint16() else { break }
      var identifier: UInt32 = 0
      if interleaved {
        guard let value = try? reader.uint32() else { break }
        identifier = value
      }
      // The peer has no such stream, so it cannot skip anything on it (RFC 9260 section 6.5).
      guard stream < streamCount else { continue }
      // Create the stream even if it is unused, because it must now expect a later message.
      let place = streams.place(of: stream)
      changed.insert(place)
      let isUnordered = interleaved && word & 1 == 1
      streams.change(place) { stream in
        if isUnordered {
          let message = stream.extend(identifier: identifier, unordered: true)
          stream.unordered.forget(through: message &<< 24 | 0xff_ffff)
        } else {
          stream.forward(
            message: interleaved
              ? stream.extend(identifier: identifier, unordered: false)
              : stream.extend(sequence: word))
        }
      }
    }
    var messages: [ReceivedMessage] = []
    for place in changed.sorted() {
      // Complete unordered messages have been assembled, so other fragments up to the cumulative
      // number can be dropped.
      if !interleaved { streams.change(place) { $0.unordered.forget(through: cumulative) } }
      if !streams.streams[place].messages.isEmpty {
        messages += streams.change(place) { $0.removeComplete() }
      }
    }
    return messages.isEmpty ? .nothing : .messages(messages)
  }

  // MARK: Following captured packets

  /// Starts a stream in the middle; this message is the first expected one.
  mutating func join(_ stream: UInt16, at message: Int64) {
    let place = streams.place(of: stream)
    streams.change(place) { $0.join(at: message) }
  }

  /// Skips missing chunks up to a number, because the real receiver has them although they were not
  /// captured.
  ///
  /// - Returns: how many chunks were skipped, and the messages that were only waiting for them.
  mutating func pass(through number: UInt32) -> (missed: Int, messages: [ReceivedMessage]) {
    let through = numbers.extend(number)
    guard through > numbers.cumulative else { return (0, []) }
    let came = numbers.ranges.reduce(Int64(0)) { sum, range in
      sum + max(0, min(range.upperBound, through) - range.lowerBound + 1)
    }
    let missed = max(0, through - numbers.cumulative - came)
    numbers.forward(to: through)
    var messages: [ReceivedMessage] = []
    for place in streams.streams.indices {
      guard streams.streams[place].heldFragments > 0 else { continue }
      let key = interleaves ? nil : through
      streams.change(place) { $0.pass(through: key) }
      if !streams.streams[place].messages.isEmpty {
        messages += streams.change(place) { $0.removeComplete() }
      }
    }
    return (Int(clamping: missed), messages)
  }

  // MARK: Acknowledgements

  /// Decides, after a packet with data, whether to acknowledge it immediately or after a delay
  /// (RFC 9260 section 6.2).
  ///
  /// - Returns: whether the delay starts.
  mutating func settle() -> Bool {
    // If the last SACK left no room for two packets, send another as soon as there is room.
    let least = 2 * limits.maximumPacketSize
    if advertisedWindow < least, freeWindow >= least { acknowledgement = .due }
    switch acknowledgement {
    case .none:
      acknowledgement = .delayed
      return true
    case .delayed: acknowledgement = .due
    case .due: break
    }
    return false
  }

  /// Makes the acknowledgement due, because its delay has passed.
  mutating func endDelay() { acknowledgement = .due }

  /// Returns whether an acknowledgement is delayed and fits into a packet together with a chunk.
  func mayGoAlong(with size: Int, capacity: Int) -> Bool {
    acknowledgement == .delayed
      && 16 + 4 * (duplicates.count + numbers.ranges.count) + size <= capacity
  }

  /// Creates a SACK for all received chunks, with as many gaps as fit into a packet (RFC 9260
  /// section 3.3.4).
  mutating func makeAcknowledgement(capacity: Int) -> ControlChunk {
    let most = max(0, (capacity - 4 - 16) / 4)
    let repeated = duplicates.prefix(most)
    let gaps = numbers.ranges.prefix(most - repeated.count)
    var writer = ByteWriter(capacity: 12 + 4 * (repeated.count + gaps.count))
    writer.uint32(numbers.acknowledged)
    writer.uint32(UInt32(clamping: freeWindow))
    writer.uint16(UInt16(gaps.count))
    writer.uint16(UInt16(repeated.count))
    for gap in gaps {
      writer.uint16(UInt16(truncatingIfNeeded: gap.lowerBound - numbers.cumulative))
      writer.uint16(UInt16(truncatingIfNeeded: gap.upperBound - numbers.cumulative))
    }
    for number in repeated { writer.uint32(number) }
    acknowledgement = .none
    advertisedWindow = freeWindow
    duplicates.removeAll(keepingCapacity: true)
    return ControlChunk(type: .selectiveAcknowledgement, body: writer.bytes)
  }

  /// Whether the totals match the streams; checked after every step in debug builds.
  var isConsistent: Bool {
    guard streams.streams.count <= 64 else { return true }
    return streams.heldBytes == streams.streams.reduce(0) { $0 + $1.heldBytes }
      && streams.heldFragments == streams.streams.reduce(0) { $0 + $1.heldFragments }
      && streams.streams.allSatisfy(\.isConsistent)
  }
}

// MARK: - Errors for the peer

extension Receiver {
  /// The failure after a message larger than negotiated (RFC 8841 section 6).
  static let tooLarge = SCTPFailure(
    cause: .protocolViolation, reason: "the peer sent too large a message")

  /// The failure after a data chunk of a kind that was not negotiated (RFC 8260 section 2.2.1).
  private static let otherKind = SCTPFailure(
    cause: .protocolViolation, reason: "the peer sent data of another kind than agreed")

  private static let overfull = SCTPFailure(
    cause: .outOfResource, reason: "the peer sent more than the window")

  /// Creates an error for data on a stream that does not exist (RFC 9260 section 3.3.10.1).
  private static func invalid(_ stream: UInt16) -> ControlChunk {
    .error(.invalidStream, [UInt8(stream >> 8), UInt8(stream & 0xff), 0, 0])
  }

  /// Creates a failure for a data chunk without data (RFC 9260 section 6.2).
  private static func noUserData(_ number: UInt32) -> SCTPFailure {
    var details = ByteWriter()
    details.uint32(number)
    return SCTPFailure(
      cause: .noUserData, reason: "the peer sent data without data", details: details.bytes)
  }
}

// MARK: - ReceivedNumbers

/// The transmission sequence numbers received: everything up to one number, and ranges above it.
struct ReceivedNumbers {
  /// The result of recording a number.
  enum Arrival: Hashable {
    case new
    case duplicate
    /// The number is too far ahead, or would open one gap too many.
    case refused
  }

  /// The number up to which everything was received, extended to 64 bits.
  private(set) var cumulative: Int64
  /// Ranges received above `cumulative`, ascending, with gaps between them.
  private(set) var ranges: [ClosedRange<Int64>] = []

  /// The maximum distance of a number from `cumulative`: gap reports use 16 bits.
  private static let reach: Int64 = 65535

  /// Creates the record of a peer whose first number is `first`.
  init(first: UInt32) { cumulative = Int64(first) + (1 << 32) - 1 }

  /// The cumulative number as it is written on the wire.
  var acknowledged: UInt32 { UInt32(truncatingIfNeeded: cumulative) }

  /// Extends a number to the value nearest to the cumulative one.
  func extend(_ number: UInt32) -> Int64 {
    cumulative + Int64(Int32(bitPattern: number &- acknowledged))
  }

  mutating func insert(_ number: Int64) -> Arrival {
    guard number > cumulative else { return .duplicate }
    guard number - cumulative <= Self.reach else { return .refused }
    if number == cumulative + 1 {
      cumulative = number
      absorb()
      return .new
    }
    // Find the first range that ends at or after the preceding number.
    var low = 0
    var high = ranges.count
    if let last = ranges.last, last.upperBound < number - 1 { low = high }
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].upperBound < number - 1 { low = middle + 1 } else { high = middle }
    }
    guard low < ranges.count, ranges[low].lowerBound <= number + 1 else {
      guard ranges.count < SCTPLimits.gaps else { return .refused }
      ranges.insert(number...number, at: low)
      return .new
    }
    let range = ranges[low]
    if range.contains(number) { return .duplicate }
    if number < range.lowerBound {
      ranges[low] = number...range.upperBound
    } else if low + 1 < ranges.count, ranges[low + 1].lowerBound == number + 1 {
      ranges[low] = range.lowerBound...ranges[low + 1].upperBound
      ranges.remove(at: low + 1)
    } else {
      ranges[low] = range.lowerBound...number
    }
    return .new
  }

  /// Marks everything up to a number as received (RFC 3758 section 3.6).
  mutating func forward(to number: Int64) {
    guard number > cumulative else { return }
    cumulative = number
    absorb()
  }

  private mutating func absorb() {
    var passed = 0
    while passed < ranges.count, ranges[passed].lowerBound <= cumulative + 1 {
      cumulative = max(cumulative, ranges[passed].upperBound)
      passed += 1
    }
    if passed > 0 { ranges.removeFirst(passed) }
  }
}
