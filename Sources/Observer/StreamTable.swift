import DequeModule
import RTP
package import Wire

/// A call's RTP stream: the packets with one SSRC from one end.
package struct ObservedStream: Hashable, Sendable {
  /// The stream's number, counted from 1 over all calls.
  package var number: Int
  package var transport: Int
  /// The end that sends the stream.
  package var from: Int
  package var ssrc: UInt32
  /// The encodings of the stream's payload types, in order of first appearance.
  package var payloads: [PayloadMeaning] = []
  /// The MID of the stream's section, if known.
  package var mid: String?
  /// The RID of a simulcast encoding; nil for other streams.
  package var streamID: String?
  /// The CNAME, which all of an end's streams share; nil if it is unknown.
  package var canonicalName: String?
  /// The SSRC of the stream whose packets this stream retransmits (RFC 4588); nil for other
  /// streams.
  package var repairs: UInt32?
  package var repairsHow: Knowledge?
  /// The SSRC of the stream whose lost packets this FlexFEC stream recovers (RFC 8627); nil for
  /// other streams, and until it is known.
  package var protects: UInt32?
  /// The SSRC of the FlexFEC stream that protects this stream, if a description names it.
  package var protectedBy: UInt32?
  /// Whether all known descriptions of the transport list ULPFEC.
  package var agreesOnCorrection = false

  /// The kind of media; nil if unknown.
  package var kind: MediaKind? { payloads.lazy.compactMap(\.kind).first }
  /// The first known clock rate among the payload types, in Hz; 0 if none is known.
  package var clockRate: UInt32 { payloads.first { $0.clockRate > 0 }?.clockRate ?? 0 }
}

// MARK: - StreamTable

/// The RTP streams of all calls.
struct StreamTable {
  private struct Key: Hashable {
    var transport: Int
    var from: Int
    var ssrc: UInt32
  }

  struct Entry {
    var stream: ObservedStream {
      didSet {
        redundantType = stream.payloads.first { $0.codec == "red" }?.payloadType
        seeksProtected =
          stream.protects == nil && stream.payloads.first?.codec.hasPrefix("flexfec") == true
      }
    }
    /// Whether the stream is a FlexFEC stream whose protected stream is not known yet.
    private(set) var seeksProtected = false
    /// The payload type of redundant packets (RFC 2198).
    private(set) var redundantType: UInt8?
    var statistics = SourceReception()
    var deduction: StreamDeduction
    /// The last packet's payload type, whose encoding was looked up.
    var lastPayloadType: UInt8?
    var clockRate: UInt32 = 0
    var highest: UInt16 = 0
    var lastTime: UInt32 = 0
    /// Whether a packet had header extensions, which may include the mid.
    var hasExtensions = false
    /// The number of names that RTCP has assigned to the stream.
    var names = 0
    /// The number of packets that could not be decrypted.
    var sealedPackets: UInt64 = 0

    init(_ stream: ObservedStream, judgesClosely: Bool) {
      self.stream = stream
      deduction = StreamDeduction(isClose: judgesClosely)
    }
  }

  /// The maximum number of streams; a call has a few dozen.
  private static let streamsMaximum = 1 << 17

  private(set) var entries: [Entry] = []
  private var places: [Key: Int] = [:]
  /// The streams by SSRC, newest last.
  private var bySource: [UInt32: [Int]] = [:]
  /// How many of an SSRC's latest streams are checked for continuing on another transport.
  private static let candidatesMaximum = 64
  /// The last packet's stream, which is often the next packet's too.
  private var last: (key: Key, index: Int)?

  /// Returns the index of a packet's stream; nil if it is new.
  mutating func find(transport: Int, from: Int, ssrc: UInt32) -> Int? {
    let key = Key(transport: transport, from: from, ssrc: ssrc)
    if let last, last.key == key { return last.index }
    guard let index = places[key] else { return nil }
    last = (key, index)
    return index
  }

  /// Adds a stream; returns nil if there are too many.
  mutating func begin(_ stream: ObservedStream, judgesClosely: Bool) -> Int? {
    guard entries.count < Self.streamsMaximum else { return nil }
    var stream = stream
    stream.number = entries.count + 1
    places[Key(transport: stream.transport, from: stream.from, ssrc: stream.ssrc)] = entries.count
    bySource[stream.ssrc, default: []].append(entries.count)
    entries.append(Entry(stream, judgesClosely: judgesClosely))
    return entries.count - 1
  }

  /// Returns an SSRC's latest streams, newest first.
  func latest(of ssrc: UInt32) -> [Int] {
    bySource[ssrc, default: []].suffix(Self.candidatesMaximum).reversed()
  }

  /// Moves a stream to another transport and sending end, under which `find` then finds it.
  mutating func move(_ index: Int, to transport: Int, from: Int) {
    let old = entries[index].stream
    places[Key(transport: old.transport, from: old.from, ssrc: old.ssrc)] = nil
    places[Key(transport: transport, from: from, ssrc: old.ssrc)] = index
    entries[index].stream.transport = transport
    entries[index].stream.from = from
    last = nil
  }

  @inline(__always)
  mutating func update<Result>(_ index: Int, _ change: (inout Entry) -> Result) -> Result {
    change(&entries[index])
  }
}

// MARK: - UnprovenStreams

/// Holds an unannounced source's first packet until a second one proves that it is RTP (RFC 3550
/// appendix A.1).
///
/// Applications send their own messages on a call's path, and some look like RTP: each would become
/// a stream with a single packet.
struct UnprovenStreams {
  /// A packet waiting for a second packet from its source.
  struct Packet {
    var packet: WaitingPacket
    var transport: Int
    var header: RTPHeader
    var isClear: Bool
    var size: Int
  }

  /// Limits on waiting sources: per transport and in total, and their bytes.
  private static let transportMaximum = 64
  private static let countMaximum = 4096
  private static let bytesMaximum = 16 << 20
  /// The maximum sequence number difference between a source's first and second packet.
  private static let stepMaximum = 100

  /// Waiting packets by transport, oldest first, each with its number.
  private var byTransport: [Int: [(number: UInt64, packet: Packet)]] = [:]
  /// The packets in order of arrival; may include some that no longer wait.
  private var order = Deque<(transport: Int, number: UInt64)>()
  private var begun: UInt64 = 0
  private var count = 0
  private var bytes = 0

  /// Holds a packet; if its source's waiting packet has a sequence number close to its own, returns
  /// that packet and holds neither; returns nil otherwise.
  ///
  /// - Parameter dropped: incremented by the number of packets dropped for lack of room, or
  ///   replaced by a packet that does not follow them.
  mutating func add(_ packet: consuming Packet, dropped: inout UInt64) -> Packet? {
    let transport = packet.transport
    let (ssrc, from) = (packet.header.ssrc, packet.packet.from)
    let known = byTransport[transport]?.firstIndex {
      $0.packet.header.ssrc == ssrc && $0.packet.packet.from == from
    }
    if let known, let first = remove(known, of: transport) {
      let step = Int(Int16(bitPattern: packet.header.sequence &- first.header.sequence))
      if step != 0, abs(step) <= Self.stepMaximum { return first }
      dropped += 1
    }
    if byTransport[transport, default: []].count >= Self.transportMaximum {
      _ = remove(0, of: transport)
      dropped += 1
    }
    begun += 1
    count += 1
    bytes += packet.packet.bytes.count
    byTransport[transport, default: []].append((begun, packet))
    order.append((transport, begun))
    while count > Self.countMaximum || bytes > Self.bytesMaximum, let oldest = order.popFirst() {
      if let place = place(oldest) {
        _ = remove(place, of: oldest.transport)
        dropped += 1
      }
    }
    if order.count > 4 * Self.countMaximum {
      var present = order
      present.removeAll { place($0) == nil }
      order = present
    }
    return nil
  }

  private func place(_ entry: (transport: Int, number: UInt64)) -> Int? {
    byTransport[entry.transport]?.firstIndex { $0.number == entry.number }
  }

  private mutating func remove(_ place: Int, of transport: Int) -> Packet? {
    guard let packet = byTransport[transport]?.remove(at: place).packet else { return nil }
    if byTransport[transport]?.isEmpty == true { byTransport[transport] = nil }
    count -= 1
    bytes -= packet.packet.bytes.count
    return packet
  }

  /// Removes and returns all waiting packets in order of arrival.
  mutating func removeAll() -> [Packet] {
    let packets = order.compactMap { entry in
      place(entry).flatMap { byTransport[entry.transport]?[$0].packet }
    }
    (byTransport, order, count, bytes) = ([:], [], 0, 0)
    return packets
  }
}

// MARK: - SourceReception

/// A stream's RFC 3550 statistics where it was captured: losses and interarrival jitter.
///
/// A sender that restarts its sequence numbers (appendix A.1) starts a new part, and the gap
/// between two parts is not a loss. After a silence, if the sequence numbers jumped by about
/// as many packets as the stream usually sends in that time, the skipped packets count as lost.
package struct SourceReception: Sendable {
  /// Steps of at least this size in either direction may be restarts; so may backward steps of 100
  /// or more if the timestamp advances, since a late packet has an older timestamp.
  private static let jump = 3000
  private static let backwards = -100

  package private(set) var packets: UInt64 = 0
  package private(set) var bytes: UInt64 = 0
  package private(set) var duplicates: UInt64 = 0
  /// The number of restarts of the sequence numbers.
  package private(set) var restarts: UInt64 = 0
  package private(set) var first: Instant?
  package private(set) var last: Instant?
  /// The current jitter, in units of the RTP clock (RFC 3550 appendix A.8).
  package private(set) var jitter: Double = 0
  package private(set) var maximumJitter: Double = 0
  private var jitterSum: Double = 0
  private var jitterCount: UInt64 = 0

  /// The expected number of packets in earlier parts.
  private var expectedBefore: UInt64 = 0
  private var base: Int64 = 0
  private var highest: Int64 = 0
  /// The number of packets in the current part, and the previous part's numbers, to which counting
  /// returns if the current part turns out to be a single stray packet.
  private var partPackets: UInt64 = 0
  private var before: (base: Int64, highest: Int64)?
  private var nearRestarts = NearRestarts()
  /// The previous packet if numbers may restart with it: its number and the step that led to it.
  private var doubtful: (number: Int64, step: Int)?
  /// The previous packet: unwrapped sequence number, timestamp and arrival.
  private var lastNumber: Int64 = 0
  private var times = TimestampUnwrapper()
  private var lastRTPTime: Int64 = 0
  private var lastArrival = Instant.zero

  package init() {}

  /// The expected number of packets, by sequence numbers.
  package var expected: UInt64 {
    packets == 0 ? 0 : expectedBefore &+ UInt64(highest - base + 1)
  }

  /// The number of missing packets; late and duplicate packets count as received (RFC 3550 appendix
  /// A.3).
  package var lost: Int64 { Int64(expected) - Int64(packets) }

  /// The mean jitter over all packets.
  package var meanJitter: Double { jitterCount == 0 ? 0 : jitterSum / Double(jitterCount) }

  mutating func add(
    _ sequence: UInt16, _ timestamp: UInt32, size: Int, at arrival: Instant, clockRate: UInt32
  ) {
    let step = Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: lastNumber))
    let number = packets == 0 ? Int64(sequence) : lastNumber + Int64(step)
    let rtpTime = times.unwrap(timestamp)
    let mayBegin = nearRestarts.mayBegin(sequence, timestamp)
    defer { (lastNumber, lastRTPTime, lastArrival) = (number, rtpTime, arrival) }
    guard let first else {
      first = arrival
      (base, highest, partPackets) = (number, number, 1)
      return count(size, at: arrival)
    }
    settleDoubt(step: Int(step))
    if mayBegin { doubtful = (number, Int(step)) }
    if let before, partPackets == 1, (1..<Int64(Self.jump)).contains(number - before.highest) {
      // A single stray packet began the part, so counting returns to the previous part.
      expectedBefore -= UInt64(before.highest - before.base + 1)
      expectedBefore += 1
      (base, highest, partPackets) = (before.base, before.highest, 2)
      self.before = nil
      restarts -= 1
    } else if beginsAnew(Int(step), rtpTime, first, arrival) {
      expectedBefore += UInt64(highest - base + 1)
      before = partPackets > 1 ? (base, highest) : nil
      (base, highest, partPackets) = (number, number, 0)
      restarts += 1
    } else if partPackets > 1 {
      before = nil
    }
    partPackets += 1
    base = min(base, number)
    highest = max(highest, number)
    count(size, at: arrival)
    // After a restart, timestamps are unrelated as well.
    if partPackets > 1, !mayBegin { addJitter(rtpTime, arrival, clockRate) }
  }

  /// Decides, by the step to the next packet, whether numbers restarted with the previous packet.
  private mutating func settleDoubt(step: Int) {
    guard let former = doubtful else { return }
    doubtful = nil
    guard NearRestarts.isBorneOut(step: former.step, next: step) else { return }
    expectedBefore += UInt64(highest - base + 1)
    before = nil
    (base, highest, partPackets) = (former.number, former.number, 1)
    restarts += 1
  }

  private mutating func count(_ size: Int, at arrival: Instant) {
    bytes += UInt64(size)
    packets += 1
    last = arrival
  }

  /// Returns whether a packet restarts the sequence numbers, by the rule of the `loss` view.
  private func beginsAnew(
    _ step: Int, _ rtpTime: Int64, _ first: Instant, _ arrival: Instant
  ) -> Bool {
    guard abs(step) >= Self.jump || step <= Self.backwards && rtpTime > lastRTPTime else {
      return false
    }
    guard step > 0, let last else { return true }
    // If the step matches the number of packets usual for that time within a factor of two, those
    // packets are missing.
    let usual = Double(packets) * (arrival - last).seconds
    let missing = Double(step) * (last - first).seconds
    return !(missing >= usual / 2 && missing <= usual * 2)
  }

  private mutating func addJitter(_ rtpTime: Int64, _ arrival: Instant, _ clockRate: UInt32) {
    guard clockRate > 0 else { return }
    let elapsed = (arrival - lastArrival).seconds * Double(clockRate)
    let difference = abs(elapsed - Double(rtpTime - lastRTPTime))
    jitter += (difference - jitter) / 16
    maximumJitter = max(maximumJitter, jitter)
    jitterSum += jitter
    jitterCount += 1
  }

  mutating func addDuplicate() { duplicates += 1 }
}
