import RTP
import Wire

/// Receives a stream of video packets: finds missing ones, requests them, and assembles frames.
struct FrameReception {
  /// How long a complete key frame waits for earlier frames.
  private static let keyframePatience = Interval.milliseconds(200)

  /// The most complete frames that wait before a gap is skipped.
  ///
  /// A receiver that had missed the packets would have requested a key frame by then: at usual
  /// rates this is longer than any receiver waits (libwebrtc: 3 s).
  static let waitingFramesMaximum = 200

  private(set) var missing = MissingPackets()
  private(set) var assembler: FrameAssembler
  /// Whether the receiver is an observed one: it shows what it gives up by what it requests, so
  /// nothing is given up by time.
  private let isWatched: Bool

  /// - Parameter awaitsBeginning: whether the first frames wait for a key frame before them.
  init(isWatched: Bool = false, awaitsBeginning: Bool = false) {
    self.isWatched = isWatched
    assembler = FrameAssembler(passesGaps: isWatched, awaitsBeginning: awaitsBeginning)
  }

  /// Whether NACK was negotiated.
  var canRequest: Bool {
    get { missing.canRequest }
    set { missing.canRequest = newValue }
  }

  /// Adds a packet; returns the frames that it completes, or nil if it is too late.
  mutating func insert(_ packet: FrameAssembler.Packet, at now: Instant)
    -> [FrameAssembler.AssembledFrame]?
  {
    if !missing.receive(packet.sequence, at: now) {
      missing.removeAll()
      assembler.restart(before: packet.sequence)
    }
    guard !assembler.isLate(packet.sequence) else { return nil }
    return assembler.insert(packet, at: now)
  }

  /// Returns the next frame in decoding order with its bytes, or nil.
  mutating func next(at now: Instant, joining join: @autoclosure () -> PayloadFormat.Join? = nil)
    -> (FrameAssembler.AssembledFrame, [UInt8])?
  {
    while true {
      let next = assembler.next(
        at: now, patience: isWatched ? .zero : FrameReception.keyframePatience, joining: join())
      if let next {
        missing.settle(through: next.0.last)
        return next
      }
      if assembler.isBeginning { return nil }
      if isWatched, assembler.readyCount > FrameReception.waitingFramesMaximum, !assembler.needsKey,
        let blocked = assembler.blocked
      {
        assembler.pass(through: blocked - 1)
        continue
      }
      // No packet is missing before it, so the frame it waits for will never complete.
      guard let blocked = assembler.blocked, blocked <= missing.oldest ?? .max else { return nil }
      assembler.abandon(through: blocked - 1)
    }
  }

  /// Returns the packets to request now, or nil; gives up frames that wait for what is given up.
  mutating func demand(at now: Instant, spacing: Interval) -> [UInt16]? {
    guard let due = missing.due, due <= now else { return nil }
    let demand = missing.demand(at: now, spacing: spacing)
    if let abandoned = demand.abandoned { assembler.abandon(through: abandoned) }
    return demand.requested
  }

  /// Gives up the missing packets, because the receiver requested a key frame.
  ///
  /// A key frame that is already arriving is still waited for, since it is what the receiver
  /// requested; so is the first frame.
  mutating func abandonMissing() {
    guard !assembler.needsKey, !assembler.awaitsKey, let last = missing.sequences.last else {
      return
    }
    assembler.abandon(through: last)
    missing.settle(through: last)
  }

  /// Records the end of the stream.
  mutating func end() { missing.removeAll() }
}

extension FrameAssembler.Packet {
  /// Parses the payload descriptor; an empty or malformed payload only fills its sequence number.
  init(_ packet: ReceiveStream.Packet, _ sequence: Int64, payload: Range<Int>) {
    self.init(
      sequence: sequence, timestamp: packet.header.timestamp, marker: packet.header.marker,
      arrival: packet.arrival)
    guard !payload.isEmpty,
      let read = VideoPacket(
        packet.bytes.span.bytes.extracting(payload), codec: packet.codec.name)
    else { return }
    beginning = read.beginning
    isKey = read.isKey
    pictureID = read.pictureID
    dependency = read.dependency
    switch read.content {
    case .slice(let range):
      bytes = packet.bytes
      self.payload = payload.lowerBound + range.lowerBound..<payload.lowerBound + range.upperBound
    case .bytes(let bytes):
      self.bytes = bytes
      self.payload = 0..<bytes.count
    }
  }
}
