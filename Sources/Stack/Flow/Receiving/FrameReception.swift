import RTP
import Wire

/// The packets of a stream of video frames as they come in: what is missing among them, what of
/// that is asked for again, and the frames that they make.
struct FrameReception {
  /// A key frame that is complete waits so long for the frames before it.
  private static let keyframePatience = Interval.milliseconds(200)

  /// So many complete frames wait for a gap before it is passed over.
  ///
  /// The receiver would have asked for a key frame, had it missed the packets: at usual rates this
  /// is longer than any receiver waits (libwebrtc: 3 s).
  static let waitingFramesMaximum = 200

  private(set) var missing = MissingPackets()
  private(set) var assembler: FrameAssembler
  /// Whether the receiver is somebody else's: what it gives up shows in what it asks for, and
  /// nothing is given up because of the time that passes.
  private let isWatched: Bool

  init(isWatched: Bool = false) {
    self.isWatched = isWatched
    assembler = FrameAssembler(passesGaps: isWatched)
  }

  /// Whether the peer agreed to retransmit.
  var canRequest: Bool {
    get { missing.canRequest }
    set { missing.canRequest = newValue }
  }

  /// Handles a packet; returns the frames that it completes, nil when it comes too late.
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

  /// The next frame in decoding order with its bytes; nil when it is not there yet.
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
      if isWatched, assembler.readyCount > FrameReception.waitingFramesMaximum, !assembler.needsKey,
        let blocked = assembler.blocked
      {
        assembler.pass(through: blocked - 1)
        continue
      }
      // With no packet missing before it, what a frame waits for will never be complete.
      guard let blocked = assembler.blocked, blocked <= missing.oldest ?? .max else { return nil }
      assembler.abandon(through: blocked - 1)
    }
  }

  /// What has to be asked for again now, nil when that is not due; frames that wait for what is
  /// given up are given up too.
  mutating func demand(at now: Instant, spacing: Interval) -> [UInt16]? {
    guard let due = missing.due, due <= now else { return nil }
    let demand = missing.demand(at: now, spacing: spacing)
    if let abandoned = demand.abandoned { assembler.abandon(through: abandoned) }
    return demand.requested
  }

  /// Abandons the missing packets, because the receiver asked for a key frame.
  ///
  /// One that has begun to come in is waited for, because with it the receiver has what it asked
  /// for, and so is the first one.
  mutating func abandonMissing() {
    guard !assembler.needsKey, !assembler.awaitsKey, let last = missing.sequences.last else {
      return
    }
    assembler.abandon(through: last)
    missing.settle(through: last)
  }

  /// Records that nothing more comes.
  mutating func end() { missing.removeAll() }
}

extension FrameAssembler.Packet {
  /// Reads the payload descriptor; a payload that is empty or broken only fills its number.
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
