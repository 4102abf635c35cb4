import DequeModule
import RTP
package import Wire

/// An RTP stream of a call: what one end sends under one SSRC.
package struct ObservedStream: Hashable, Sendable {
  /// From 1, over all calls.
  package var number: Int
  package var transport: Int
  /// Which end sends it.
  package var from: Int
  package var ssrc: UInt32
  /// What its payload types stand for, in the order in which they appeared.
  package var payloads: [PayloadMeaning] = []
  /// The media section it belongs to, where something tells.
  package var mid: String?
  /// The encoding of a simulcast.
  package var streamID: String?
  /// The name that both streams of an end have (CNAME).
  package var canonicalName: String?
  /// The stream whose packets this one sends again (RFC 4588).
  package var repairs: UInt32?
  package var repairsHow: Knowledge?
  /// The stream of which this one recovers lost packets: it is one of FlexFEC (RFC 8627).
  package var protects: UInt32?
  /// The source that does so for this one, where a description names it.
  package var protectedBy: UInt32?
  /// Whether both descriptions, or the one that is known, list a format that corrects errors.
  package var agreesOnCorrection = false

  /// Audio or video frames; nil where nothing tells.
  package var kind: MediaKind? { payloads.lazy.compactMap(\.kind).first }
  /// The clock of the first payload type with one, in Hz; 0 where nothing tells.
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

  /// A stream with what is counted of it.
  struct Entry {
    var stream: ObservedStream {
      didSet {
        redundantType = stream.payloads.first { $0.codec == "red" }?.payloadType
        seeksProtected =
          stream.protects == nil && stream.payloads.first?.codec.hasPrefix("flexfec") == true
      }
    }
    /// Whether it is one of FlexFEC, and it is not known yet what it protects.
    private(set) var seeksProtected = false
    /// The payload type whose packets have others inside (RFC 2198).
    private(set) var redundantType: UInt8?
    var statistics = SourceReception()
    var deduction: StreamDeduction
    /// The payload type of the last packet, whose meaning was looked up already.
    var lastPayloadType: UInt8?
    var clockRate: UInt32 = 0
    var highest: UInt16 = 0
    var lastTime: UInt32 = 0
    /// Whether a packet had header extensions, which may name its section.
    var hasExtensions = false
    /// How many names RTCP gave it.
    var names = 0
    /// Packets that no key opened.
    var sealedPackets: UInt64 = 0

    init(_ stream: ObservedStream, judgesClosely: Bool) {
      self.stream = stream
      deduction = StreamDeduction(isClose: judgesClosely)
    }
  }

  /// How many streams are told apart; a call has some dozens.
  private static let streamsMaximum = 1 << 17

  private(set) var entries: [Entry] = []
  private var places: [Key: Int] = [:]
  /// The streams of each source, the newest last.
  private var bySource: [UInt32: [Int]] = [:]
  /// How many streams of one source are looked at for the one that goes on elsewhere.
  private static let candidatesMaximum = 64
  /// The stream of the last packet of all: most follow one of the same.
  private var last: (key: Key, index: Int)?

  /// The index of the stream of a packet; nil for one that was not seen yet.
  mutating func find(transport: Int, from: Int, ssrc: UInt32) -> Int? {
    let key = Key(transport: transport, from: from, ssrc: ssrc)
    if let last, last.key == key { return last.index }
    guard let index = places[key] else { return nil }
    last = (key, index)
    return index
  }

  /// Begins a stream; nil when there are too many.
  mutating func begin(_ stream: ObservedStream, judgesClosely: Bool) -> Int? {
    guard entries.count < Self.streamsMaximum else { return nil }
    var stream = stream
    stream.number = entries.count + 1
    places[Key(transport: stream.transport, from: stream.from, ssrc: stream.ssrc)] = entries.count
    bySource[stream.ssrc, default: []].append(entries.count)
    entries.append(Entry(stream, judgesClosely: judgesClosely))
    return entries.count - 1
  }

  /// The latest streams of a source, the newest first.
  func latest(of ssrc: UInt32) -> [Int] {
    bySource[ssrc, default: []].suffix(Self.candidatesMaximum).reversed()
  }

  /// Lets a stream go on in another transport.
  mutating func move(_ index: Int, to transport: Int, from: Int) {
    let old = entries[index].stream
    places[Key(transport: old.transport, from: old.from, ssrc: old.ssrc)] = nil
    places[Key(transport: transport, from: from, ssrc: old.ssrc)] = index
    entries[index].stream.transport = transport
    entries[index].stream.from = from
    last = nil
  }

  /// Changes what is known of a stream.
  @inline(__always)
  mutating func update<Result>(_ index: Int, _ change: (inout Entry) -> Result) -> Result {
    change(&entries[index])
  }
}

// MARK: - UnprovenStreams

/// The first packets of sources that nothing announced: a second one shows that they are RTP
/// (RFC 3550 appendix A.1).
///
/// Applications send messages of their own over the path of a call, and a part of them looks like
/// RTP: each would be a stream of one packet.
struct UnprovenStreams {
  /// A packet that waits for a second one of its source.
  struct Packet {
    var packet: WaitingPacket
    var transport: Int
    var header: RTPHeader
    var isClear: Bool
    var size: Int
  }

  /// How many sources wait, of one transport and of all, and how many bytes.
  private static let transportMaximum = 64
  private static let countMaximum = 4096
  private static let bytesMaximum = 16 << 20
  /// How far from its first packet the second one of a source may be.
  private static let stepMaximum = 100

  /// What waits in one transport, the oldest first, each with its number.
  private var byTransport: [Int: [(number: UInt64, packet: Packet)]] = [:]
  /// In the order in which they came; those that wait no longer may still stand here.
  private var order = Deque<(transport: Int, number: UInt64)>()
  private var begun: UInt64 = 0
  private var count = 0
  private var bytes = 0

  /// Lets a packet wait; returns the one before it of the same source when the two belong together,
  /// in which case neither waits.
  ///
  /// - Parameter dropped: how many packets were given up for it.
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

  /// Returns all that waits, in the order in which it came.
  mutating func removeAll() -> [Packet] {
    let packets = order.compactMap { entry in
      place(entry).flatMap { byTransport[entry.transport]?[$0].packet }
    }
    (byTransport, order, count, bytes) = ([:], [], 0, 0)
    return packets
  }
}

// MARK: - SourceReception

/// What RFC 3550 counts of a stream where it was captured: losses, and the jitter of arrivals.
///
/// A sender that begins its sequence numbers anew (appendix A.1) begins a part of its own; what the
/// numbers of two parts are apart is no loss. A silence after which as many packets are missing as
/// it would have had is one. A beginning by fewer numbers than reordering could explain shows by
/// numbers that come again for other packets.
package struct SourceReception: Sendable {
  /// From how many numbers on a step may be a new beginning, and how many backwards when time goes
  /// forwards: what comes late has the time at which it was sent.
  private static let jump = 3000
  private static let backwards = -100

  package private(set) var packets: UInt64 = 0
  package private(set) var bytes: UInt64 = 0
  /// Packets that came again.
  package private(set) var duplicates: UInt64 = 0
  /// How often the sequence numbers began anew.
  package private(set) var restarts: UInt64 = 0
  package private(set) var first: Instant?
  package private(set) var last: Instant?
  /// In units of the RTP clock (RFC 3550 appendix A.8).
  package private(set) var jitter: Double = 0
  package private(set) var maximumJitter: Double = 0
  private var jitterSum: Double = 0
  private var jitterCount: UInt64 = 0

  /// The packets that earlier parts should have had.
  private var expectedBefore: UInt64 = 0
  private var base: Int64 = 0
  private var highest: Int64 = 0
  /// How many packets the present part has, and the highest number of the part before: a single
  /// packet from elsewhere begins no part.
  private var partPackets: UInt64 = 0
  private var before: (base: Int64, highest: Int64)?
  private var nearRestarts = NearRestarts()
  /// The packet before, where numbers may begin anew with it: its number, and its step to that.
  private var doubtful: (number: Int64, step: Int)?
  /// The packet before: its number, without the wrap of its 16 bits, its time and its arrival.
  private var lastNumber: Int64 = 0
  private var times = TimestampUnwrapper()
  private var lastRTPTime: Int64 = 0
  private var lastArrival = Instant.zero

  package init() {}

  /// How many packets the sequence numbers say there were.
  package var expected: UInt64 {
    packets == 0 ? 0 : expectedBefore &+ UInt64(highest - base + 1)
  }

  /// How many of them are missing; late and repeated packets make it smaller (appendix A.3).
  package var lost: Int64 { Int64(expected) - Int64(packets) }

  /// The mean of the jitter after each packet.
  package var meanJitter: Double { jitterCount == 0 ? 0 : jitterSum / Double(jitterCount) }

  /// Counts a packet.
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
      // The packet from elsewhere was alone.
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
    // A new beginning has times of its own, too.
    if partPackets > 1, !mayBegin { addJitter(rtpTime, arrival, clockRate) }
  }

  /// Decides whether numbers began anew with the packet before, by the step from it to the next.
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

  /// Whether a packet begins the numbers anew, as the view `loss` has it.
  private func beginsAnew(
    _ step: Int, _ rtpTime: Int64, _ first: Instant, _ arrival: Instant
  ) -> Bool {
    guard abs(step) >= Self.jump || step <= Self.backwards && rtpTime > lastRTPTime else {
      return false
    }
    guard step > 0, let last else { return true }
    // As many as the stream has had in such a time, within a factor of two, are missing packets.
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

  /// Counts a packet that came before.
  mutating func addDuplicate() { duplicates += 1 }
}
