import DequeModule
import RTP
import Wire

/// Assembles video packets into frames and returns them in decoding order.
///
/// A frame is complete when all packets from its first to the one with the marker are present. Two
/// frames are adjacent if no sequence number or picture ID lies between them. The range of sequence
/// numbers and the bytes held are bounded.
struct FrameAssembler {
  /// A packet with the properties that assembly needs.
  struct Packet {
    var sequence: Int64
    var timestamp: UInt32
    var marker: Bool
    var arrival: Instant
    /// The packet's bytes, with the range of the codec's data in them; both are empty if the packet
    /// only fills a gap in the sequence numbers.
    var bytes: [UInt8] = []
    var payload = 0..<0
    var beginning = VideoPacket.Beginning.no
    var isKey = false
    var pictureID: PictureID?
    var dependency: VideoPacket.Dependency?
    /// Whether the packet was lost and recovered by retransmission or FEC.
    var isRepaired = false
  }

  struct AssembledFrame {
    var first: Int64
    var last: Int64
    var timestamp: UInt32
    var firstArrival: Instant
    var lastArrival: Instant
    var isKey: Bool
    var pictureID: PictureID?
    var dependency: VideoPacket.Dependency?
    var isRepaired = false
    var length: Int
    /// When the frame became complete.
    var completed: Instant
  }

  /// A stored packet; always accessed in place, because a copy would retain the packet's bytes.
  private struct Slot {
    var packet = Packet(sequence: .min, timestamp: 0, marker: false, arrival: .zero)
    /// The frame's first packet; nil until all packets from the first to this slot's packet are
    /// present.
    var start: Int64?
  }

  /// The maximum number of sequence numbers held at once.
  static let capacity: Int64 = 2048
  /// The maximum number of bytes held at once.
  static let maximumBytes = 16 << 20
  /// The number of packets that may still arrive although they precede the first one received.
  private static let lead: Int64 = 64

  /// The sequence number up to which all packets have been delivered or given up; nil before the
  /// first packet.
  private(set) var floor: Int64?
  /// Whether the packet at the floor is known to end a frame.
  private var floorEndsFrame = false
  /// Whether the next delivered frame must be a key frame.
  private(set) var needsKey = true
  /// The number of complete frames that were not delivered.
  private(set) var droppedCount: UInt64 = 0
  private var slots: [Slot] = []
  private(set) var heldBytes = 0
  private var ready = Deque<AssembledFrame>()
  private var lastPictureID: PictureID?
  private var delivered = DeliveredFrames()
  private var newestKeyStart: Int64?
  private var newest: Int64?
  /// Whether packets were given up, or an undecodable frame arrived, since a key frame became
  /// necessary.
  private var missedSomething = false

  /// Whether to request a key frame, because frames could not be delivered without one and no key
  /// frame is arriving.
  var wantsKeyframe: Bool { needsKey && missedSomething && !awaitsKey }

  /// The number of complete frames waiting for earlier ones.
  var readyCount: Int { ready.count }

  /// The first sequence number in the oldest complete frame that waits for earlier frames; nil if
  /// none waits.
  var blocked: Int64? { ready.first?.first }

  func isLate(_ sequence: Int64) -> Bool {
    guard let floor else { return false }
    return sequence <= floor
  }

  /// Whether a frame is delivered despite missing earlier frames if its payload descriptors show
  /// that it does not depend on them.
  private let passesGaps: Bool
  /// Whether the first frames wait for a key frame that precedes them.
  private let awaitsBeginning: Bool
  /// Whether the wait for the first key frame is over.
  private var hasBegun = false
  /// The maximum number of frames that wait for the first key frame.
  ///
  /// Lost packets of that key frame may arrive only after later frames, in retransmissions that
  /// probe the path, because no NACK requests them before the first key frame.
  private static let beginningMaximum = 32

  init(passesGaps: Bool = false, awaitsBeginning: Bool = false) {
    self.passesGaps = passesGaps
    self.awaitsBeginning = awaitsBeginning
  }

  /// Whether the first frames still wait for a key frame, because none is complete yet and not too
  /// many frames are waiting.
  var isBeginning: Bool {
    awaitsBeginning && !hasBegun && ready.count <= FrameAssembler.beginningMaximum
      && !ready.contains { $0.isKey }
  }

  /// Adds a packet that is neither late nor a duplicate; returns the frames it completes.
  mutating func insert(_ packet: Packet, at now: Instant) -> [AssembledFrame] {
    let sequence = packet.sequence
    if slots.isEmpty {
      slots = [Slot](repeating: Slot(), count: Int(FrameAssembler.capacity))
      floor = sequence - FrameAssembler.lead
    }
    if let floor, sequence - floor > FrameAssembler.capacity { restart(before: sequence) }
    if heldBytes + packet.bytes.count > FrameAssembler.maximumBytes { restart(before: sequence) }
    heldBytes += packet.bytes.count
    newest = max(newest ?? sequence, sequence)
    let place = place(sequence)
    slots[place] = Slot(packet: packet)
    var videoFrames = completeFrames(from: sequence, at: now)
    // This packet may reveal that the next packet starts a frame.
    if slots[place].start == nil { videoFrames += completeFrames(from: sequence + 1, at: now) }
    return videoFrames
  }

  /// Abandons all packets up to one that can no longer be recovered.
  mutating func abandon(through sequence: Int64) {
    guard let floor, sequence > floor else { return }
    needsKey = true
    missedSomething = true
    release(through: sequence)
    floorEndsFrame = false
  }

  /// Continues after a gap as if no frame depended on the missing packets.
  mutating func pass(through sequence: Int64) {
    guard let floor, sequence > floor, !needsKey else { return }
    release(through: sequence)
    floorEndsFrame = true
  }

  /// Whether a key frame is arriving.
  var awaitsKey: Bool { awaitsKey(before: .max) }

  /// Returns the next frame in decoding order with its bytes; nil if none can be delivered yet.
  ///
  /// A complete key frame waits at most `patience` for earlier frames.
  mutating func next(
    at now: Instant, patience: Interval,
    joining join: @autoclosure () -> PayloadFormat.Join? = nil
  ) -> (AssembledFrame, [UInt8])? {
    skipFillers()
    if isBeginning { return nil }
    hasBegun = true
    if needsKey {
      // Frames after a key frame that is still arriving are kept, because they may become
      // decodable.
      while let head = ready.first, !head.isKey, !awaitsKey(before: head.first) {
        ready.removeFirst()
        droppedCount += 1
        missedSomething = true
        release(through: head.last)
        floorEndsFrame = true
      }
      guard ready.first?.isKey == true else { return nil }
    } else if let head = ready.first, !follows(head) {
      guard
        let next = ready.firstIndex(where: {
          $0.isKey && $0.completed + patience <= now || passesGaps && delivered.suffice(for: $0)
        })
      else { return nil }
      droppedCount += UInt64(next)
      ready.removeFirst(next)
    }
    guard let head = ready.popFirst() else { return nil }
    let bytes = payload(of: head, joining: join())
    release(through: head.last)
    floorEndsFrame = true
    needsKey = false
    missedSomething = false
    lastPictureID = head.pictureID
    if passesGaps { delivered.record(head) }
    return (head, bytes)
  }

  // MARK: - Assembly

  /// Links each packet from `first` on to the start of its frame; returns the frames that this
  /// completes.
  private mutating func completeFrames(from first: Int64, at now: Instant) -> [AssembledFrame] {
    var videoFrames: [AssembledFrame] = []
    var sequence = first
    while let place = held(sequence), slots[place].start == nil,
      !slots[place].packet.payload.isEmpty
    {
      guard let start = start(ofPacketAt: place) else { break }
      slots[place].start = start
      if slots[place].packet.isKey { newestKeyStart = max(newestKeyStart ?? start, start) }
      if slots[place].packet.marker,
        let videoFrame = videoFrame(from: start, through: sequence, at: now)
      {
        let index = ready.lastIndex { $0.first < videoFrame.first }.map { $0 + 1 } ?? 0
        ready.insert(videoFrame, at: index)
        videoFrames.append(videoFrame)
      }
      sequence += 1
    }
    return videoFrames
  }

  /// Returns the sequence number at which a packet's frame starts; nil if that is not known.
  private func start(ofPacketAt place: Int) -> Int64? {
    let sequence = slots[place].packet.sequence
    let beginning = slots[place].packet.beginning
    if let before = held(sequence - 1) {
      let goesOn =
        !slots[before].packet.marker
        && slots[before].packet.timestamp == slots[place].packet.timestamp
      if goesOn, let known = slots[before].start { return known }
      if beginning == .certain { return sequence }
      return goesOn || beginning == .no ? nil : sequence
    }
    switch beginning {
    case .certain: return sequence
    case .possible: return floorEndsFrame && sequence - 1 == floor ? sequence : nil
    case .no: return nil
    }
  }

  private func videoFrame(from first: Int64, through last: Int64, at now: Instant)
    -> AssembledFrame?
  {
    guard let head = held(first) else { return nil }
    let arrival = slots[head].packet.arrival
    var videoFrame = AssembledFrame(
      first: first, last: last, timestamp: slots[head].packet.timestamp, firstArrival: arrival,
      lastArrival: arrival, isKey: slots[head].packet.isKey,
      pictureID: slots[head].packet.pictureID, dependency: slots[head].packet.dependency,
      length: 0, completed: now)
    for sequence in first...last {
      guard let place = held(sequence) else { return nil }
      videoFrame.length += slots[place].packet.payload.count
      if slots[place].packet.isKey { videoFrame.isKey = true }
      if slots[place].packet.isRepaired { videoFrame.isRepaired = true }
      videoFrame.firstArrival = min(videoFrame.firstArrival, slots[place].packet.arrival)
      videoFrame.lastArrival = max(videoFrame.lastArrival, slots[place].packet.arrival)
    }
    return videoFrame
  }

  private func payload(of videoFrame: AssembledFrame, joining join: PayloadFormat.Join?) -> [UInt8]
  {
    if let join {
      return join(
        (videoFrame.first...videoFrame.last).compactMap { held($0) }
          .map { slots[$0].packet.bytes[slots[$0].packet.payload] })
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(videoFrame.length)
    for sequence in videoFrame.first...videoFrame.last {
      guard let place = held(sequence) else { continue }
      bytes.append(contentsOf: slots[place].packet.bytes[slots[place].packet.payload])
    }
    return bytes
  }

  private func follows(_ videoFrame: AssembledFrame) -> Bool {
    if let floor, videoFrame.first == floor + 1 { return true }
    guard let id = videoFrame.pictureID, let lastPictureID else { return false }
    return id.follows(lastPictureID)
  }

  /// Returns whether a key frame before this packet has started to arrive.
  private func awaitsKey(before sequence: Int64) -> Bool {
    guard let newestKeyStart, let floor else { return false }
    return newestKeyStart > floor && newestKeyStart < sequence
  }

  // MARK: - Storage

  /// Skips packets without payload before the next frame.
  private mutating func skipFillers() {
    while let floor, let place = held(floor + 1), slots[place].packet.payload.isEmpty {
      release(through: floor + 1)
    }
  }

  /// Releases all packets up to a number, and drops complete frames that start at or before it.
  private mutating func release(through sequence: Int64) {
    guard let old = floor, sequence > old else { return }
    var freed = old + 1
    let end = min(sequence, newest ?? sequence)
    while freed <= end {
      if let place = held(freed) {
        heldBytes -= slots[place].packet.bytes.count
        slots[place] = Slot()
      }
      freed += 1
    }
    floor = sequence
    while let head = ready.first, head.first <= sequence {
      ready.removeFirst()
      droppedCount += 1
    }
  }

  /// Drops everything because a packet is too far ahead, too many packets are missing, or too many
  /// bytes are held.
  mutating func restart(before sequence: Int64) {
    droppedCount += UInt64(ready.count)
    ready.removeAll()
    for index in slots.indices { slots[index] = Slot() }
    heldBytes = 0
    floor = sequence - 1
    floorEndsFrame = false
    newest = nil
    needsKey = true
    missedSomething = true
    newestKeyStart = nil
  }

  /// Returns the slot of a packet; nil if the packet is not held.
  private func held(_ sequence: Int64) -> Int? {
    guard !slots.isEmpty else { return nil }
    let place = place(sequence)
    return slots[place].packet.sequence == sequence ? place : nil
  }

  private func place(_ sequence: Int64) -> Int {
    Int(truncatingIfNeeded: sequence & (FrameAssembler.capacity - 1))
  }
}

/// Delivered frames, as far back as later frames may refer to them.
struct DeliveredFrames {
  /// The number of pictures kept: VP9 references reach back at most 127 (RFC 9628 section 4.2).
  private static let most = 128

  /// TL0PICIDX of the last base layer frame.
  private var base: UInt8?
  private var pictures: [PictureID] = []

  mutating func record(_ frame: FrameAssembler.AssembledFrame) {
    if frame.isKey {
      base = nil
      pictures.removeAll(keepingCapacity: true)
    }
    if case .layer(let temporal, let index, _)? = frame.dependency, temporal == 0 { base = index }
    guard let id = frame.pictureID else { return }
    if pictures.count == DeliveredFrames.most { pictures.removeFirst() }
    pictures.append(id)
  }

  /// Returns whether all frames on which a frame depends were delivered; false if the frame does
  /// not name its references.
  ///
  /// A frame in an upper temporal layer may depend on any earlier frame unless it is a sync frame.
  func suffice(for frame: FrameAssembler.AssembledFrame) -> Bool {
    switch frame.dependency {
    case nil: return false
    case .layer(let temporal, let index, let isSync):
      guard let base else { return false }
      return temporal == 0 ? index == base &+ 1 : isSync && index == base
    case .pictures(let distances):
      guard let id = frame.pictureID, !distances.isEmpty else { return false }
      let mask: UInt16 = id.isLong ? 0x7fff : 0x7f
      return distances.allSatisfy { distance in
        pictures.contains { $0.number & mask == (id.number &- UInt16(distance)) & mask }
      }
    }
  }
}
