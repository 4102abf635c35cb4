import RTP
import Wire

/// Receives a stream's video packets: detects missing ones, requests them, and assembles frames.
struct FrameReception {
  /// The time that a complete key frame waits for earlier frames.
  private static let keyframePatience = Interval.milliseconds(200)

  /// The maximum number of complete frames that wait before a gap is skipped.
  ///
  /// A receiver that lacks packets would have requested a key frame by then: at usual frame rates,
  /// this many frames last longer than any receiver waits (3 s in libwebrtc).
  static let waitingFramesMaximum = 200

  private(set) var missing = MissingPackets()
  private(set) var assembler: FrameAssembler
  /// Whether a real receiver is being observed.
  ///
  /// Its requests show when it gives up on a packet, so no time limit is needed.
  private let isWatched: Bool

  /// Creates a reception that has no packets yet.
  ///
  /// - Parameter awaitsBeginning: whether the first frames wait for a key frame that precedes them.
  init(isWatched: Bool = false, awaitsBeginning: Bool = false) {
    self.isWatched = isWatched
    assembler = FrameAssembler(passesGaps: isWatched, awaitsBeginning: awaitsBeginning)
  }

  /// Whether NACK was negotiated and missing packets can therefore be requested.
  var canRequest: Bool {
    get { missing.canRequest }
    set { missing.canRequest = newValue }
  }

  /// Adds a packet; returns the frames it completes, or nil if the packet is too late.
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

  /// Returns the next frame in decoding order with its bytes; nil if none can be delivered yet.
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
      // No packet before the blocked frame is awaited any more, so the frame it depends on will
      // never be complete.
      guard let blocked = assembler.blocked, blocked <= missing.oldest ?? .max else { return nil }
      assembler.abandon(through: blocked - 1)
    }
  }

  /// Returns the packets to request now, or nil if none is due; gives up frames that depend on
  /// packets that can no longer be expected.
  mutating func demand(at now: Instant, spacing: Interval) -> [UInt16]? {
    guard let due = missing.due, due <= now else { return nil }
    let demand = missing.demand(at: now, spacing: spacing)
    if let abandoned = demand.abandoned { assembler.abandon(through: abandoned) }
    return demand.requested
  }

  /// Gives up the missing packets because the receiver requested a key frame.
  ///
  /// A key frame that is already arriving is still awaited, because it answers the request. While
  /// only a key frame can be delivered anyway, nothing is given up.
  mutating func abandonMissing() {
    guard !assembler.needsKey, !assembler.awaitsKey, let last = missing.sequences.last else {
      return
    }
    assembler.abandon(through: last)
    missing.settle(through: last)
  }

  /// Stops waiting for missing packets because the stream ended.
  mutating func end() { missing.removeAll() }
}

extension FrameAssembler.Packet {
  /// Parses the payload descriptor; a packet with an empty or malformed payload only fills a gap in
  /// the sequence numbers.
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

// MARK: - MissingPackets

/// A video stream's missing packets, and when to request them (RFC 4585 section 6.2.1).
struct MissingPackets {
  /// The missing packets to request and to give up.
  struct Demand {
    /// The sequence numbers to request, oldest first.
    var requested: [UInt16] = []
    /// The newest packet to give up; all earlier missing packets are given up too.
    var abandoned: Int64?
  }

  private struct Entry {
    var sequence: Int64
    var due: Instant
    let since: Instant
    var tries = 0
  }

  /// The maximum number of missing packets; beyond that, waiting is pointless.
  static let limit = 1000
  /// The number of requests for a packet before it is given up.
  static let maximumTries = 10
  /// The time after which a packet that was requested at least `fewestTries` times is given up.
  static let longestWait = Interval.seconds(2)
  static let fewestTries = 3
  /// A missing packet counts as lost rather than reordered after this many newer packets, or after
  /// this time.
  static let reorderedPackets: Int64 = 3
  static let reorderedTime = Interval.milliseconds(10)
  /// The time that a gap may stay open if packets cannot be requested.
  static let patience = Interval.milliseconds(100)
  /// Requests that are due within this time of each other are combined.
  static let coalescing = Interval.milliseconds(3)

  /// Whether NACK was negotiated and missing packets can therefore be requested.
  var canRequest = false
  /// When missing packets are next requested or given up; nil if there is nothing to do.
  private(set) var due: Instant?
  private var entries: [Entry] = []
  private var newest: Int64?

  /// The missing packets, oldest first.
  var sequences: [Int64] { entries.map(\.sequence) }

  var oldest: Int64? { entries.first?.sequence }

  /// Records a packet's arrival; returns false if too many are missing to continue.
  mutating func receive(_ sequence: Int64, at now: Instant) -> Bool {
    guard let newest else {
      self.newest = sequence
      return true
    }
    guard sequence > newest else {
      remove(sequence)
      return true
    }
    self.newest = sequence
    guard sequence - newest <= Int64(MissingPackets.limit - entries.count) else { return false }
    let patience = canRequest ? MissingPackets.reorderedTime : MissingPackets.patience
    var lost = newest + 1
    while lost < sequence {
      entries.append(Entry(sequence: lost, due: now + patience, since: now))
      lost += 1
    }
    if sequence > newest + 1 { due = earliest(due, now + patience) }
    if canRequest, !entries.isEmpty { hasten(at: now, newest: sequence) }
    return true
  }

  /// Stops waiting for missing packets up to this one.
  mutating func settle(through sequence: Int64) {
    guard let first = entries.first, first.sequence <= sequence else { return }
    let kept = entries.firstIndex { $0.sequence > sequence } ?? entries.count
    entries.removeFirst(kept)
    findDue()
  }

  mutating func removeAll() {
    entries.removeAll()
    due = nil
  }

  /// Returns the packets to request or give up now; requested ones are due again after `spacing`.
  mutating func demand(at now: Instant, spacing: Interval) -> Demand {
    var demand = Demand()
    guard let due, due <= now else { return demand }
    let horizon = now + MissingPackets.coalescing
    var requested: [Int64] = []
    for index in entries.indices where entries[index].due <= horizon {
      if !canRequest || isHopeless(entries[index], at: now) {
        demand.abandoned = entries[index].sequence
      } else {
        entries[index].tries += 1
        entries[index].due = now + spacing
        requested.append(entries[index].sequence)
      }
    }
    if let abandoned = demand.abandoned {
      requested.removeAll { $0 <= abandoned }
      settle(through: abandoned)
    }
    demand.requested = requested.map { UInt16(truncatingIfNeeded: $0) }
    findDue()
    return demand
  }

  private func isHopeless(_ entry: Entry, at now: Instant) -> Bool {
    entry.tries >= MissingPackets.maximumTries
      || entry.tries >= MissingPackets.fewestTries
        && now - entry.since >= MissingPackets.longestWait
  }

  /// Makes packets due immediately once enough newer ones have arrived.
  private mutating func hasten(at now: Instant, newest: Int64) {
    var index = entries.count - 1
    while index >= 0, entries[index].tries == 0, entries[index].due > now {
      if entries[index].sequence <= newest - MissingPackets.reorderedPackets {
        entries[index].due = now
        due = earliest(due, now)
      }
      index -= 1
    }
  }

  private mutating func remove(_ sequence: Int64) {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].sequence < sequence { low = middle + 1 } else { high = middle }
    }
    guard low < entries.count, entries[low].sequence == sequence else { return }
    let removed = entries.remove(at: low)
    if removed.due == due { findDue() }
  }

  private mutating func findDue() {
    due = nil
    for entry in entries { due = earliest(due, entry.due) }
  }
}

/// Tracks whether a received stream needs a key frame, and limits how often a key frame is
/// requested.
struct KeyframeRequests {
  private static let leastSpacing = Interval.milliseconds(300)

  /// Whether a decoder is waiting for a key frame.
  private(set) var isWanted = false
  private var lastAt: Instant?
  private var number: UInt8 = 0

  /// Records that a decoder needs a key frame.
  mutating func want() { isWanted = true }

  /// Records that a key frame arrived, or that none can arrive because the stream ended.
  mutating func settle() { isWanted = false }

  /// Returns the negotiated request, PLI (RFC 4585 section 6.3.1) or else FIR (RFC 5104
  /// section 4.3.1); nil if neither was negotiated or the last one is too recent.
  mutating func next(
    to ssrc: UInt32, _ codec: FlowSection.Codec, senderSSRC: UInt32, roundTrip: Interval?,
    at now: Instant
  ) -> RTCPPacket? {
    let spacing = max(KeyframeRequests.leastSpacing, (roundTrip ?? .zero) * 3 / 2)
    if let lastAt, now - lastAt < spacing { return nil }
    if codec.feedback.contains("nack pli") {
      lastAt = now
      return .pictureLoss(PictureLoss(senderSSRC: senderSSRC, mediaSSRC: ssrc))
    }
    guard codec.feedback.contains("ccm fir") else { return nil }
    lastAt = now
    number &+= 1
    return .fullIntraRequest(
      FullIntraRequest(senderSSRC: senderSSRC, entries: [.init(ssrc: ssrc, number: number)]))
  }
}
