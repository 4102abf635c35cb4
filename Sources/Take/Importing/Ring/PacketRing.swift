import DequeModule
import FoundationEssentials
package import Observer
import Synchronization
package import Wire

/// A datagram, or the next bytes of one direction of a TCP connection, in a ring.
package struct RingPacket: Sendable {
  /// Unix time in nanoseconds.
  package var at: Int64
  package var tuple: FiveTuple
  package var bytes: [UInt8]
  /// Whether the capture has only the beginning of the packet.
  package var isTruncated = false
  /// The ECN field of the packet's IP header; nil if unknown.
  package var ecn: ECNMark?
  /// For a TCP connection: the number of bytes missing before this packet's bytes, and whether this
  /// direction of the connection ends after them.
  package var lost = 0
  package var isEnd = false

  package init(at: Int64, tuple: FiveTuple, bytes: [UInt8]) {
    (self.at, self.tuple, self.bytes) = (at, tuple, bytes)
  }
}

/// The memory budget that all rings of a process share.
package final class RingBudget: Sendable {
  package let maximum: Int
  private let used = Atomic<Int>(0)

  package init(maximum: Int) { self.maximum = maximum }

  /// The number of bytes that all rings together use.
  package var usedBytes: Int { used.load(ordering: .relaxed) }

  /// Acquires bytes; returns false if too few are left.
  func acquire(_ bytes: Int) -> Bool {
    if used.add(bytes, ordering: .relaxed).newValue <= maximum { return true }
    release(bytes)
    return false
  }

  /// Acquires bytes even if that exceeds the maximum.
  func exceed(by bytes: Int) { used.add(bytes, ordering: .relaxed) }

  func release(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }
}

/// Retains the packets of the last seconds in bounded memory, and the older packets that are needed
/// to decrypt and read them.
///
/// Packets are stored in segments of equal size. When a packet leaves the ring, `RingHead` retains
/// it if it belongs to a DTLS handshake, or if it is the latest STUN message of its kind on its
/// path: without these packets, an observer could not decrypt the others.
package struct PacketRing: ~Copyable {
  /// The size of a segment in bytes: two of the largest datagrams.
  static let segmentLength = 1 << 17
  /// The maximum number of paths; packets on further paths are not retained.
  private static let pathsMaximum = 1 << 14
  /// The minimum time for which the head of a path without packets is retained, in nanoseconds:
  /// consent checks are more frequent (RFC 7675 section 5.1).
  private static let silenceMinimum: Int64 = 30_000_000_000
  private static let sweepInterval: Int64 = 1_000_000_000

  /// One direction of a path as seen by one owner.
  struct Path: Sendable {
    var tuple: FiveTuple
    /// The number of the peer that sent or received the packets; 0 for observed packets.
    var owner: UInt32
    var isOutbound: Bool
    /// The number of packets on the path that are in the ring.
    var count = 0
    var lastAt: Int64
    var head = RingHead()
  }

  private struct PathKey: Hashable {
    var tuple: FiveTuple
    var owner: UInt32
  }

  private let length: Int64
  private let budget: RingBudget
  private var segments = Deque<[UInt8]>()
  /// The offset of the oldest packet in the first segment.
  private var start = 0
  private var paths: [UInt32: Path] = [:]
  private var numbers: [PathKey: UInt32] = [:]
  private var nextPath: UInt32 = 0
  private var sweptAt = Int64.min
  /// Secrets and descriptions by owner.
  private var facts: [UInt32: RingFacts] = [:]
  /// The latest time that the ring has reached.
  private(set) package var latest = Int64.min
  /// The number of packets that have left the ring.
  private(set) package var passed: UInt64 = 0
  /// The numbers of frames that the capturing system lost, and when it reported them.
  private var drops: [(at: Int64, count: UInt64)] = []
  /// The number of packets evicted early for lack of memory.
  private(set) package var crowdedOut: UInt64 = 0
  /// The key frames of endpoints' streams; packets from a key frame on may be retained longer.
  private var pictures = RingPictures()

  /// - Parameter length: the duration for which packets are retained.
  package init(length: Interval, budget: RingBudget) {
    self.length = length.nanoseconds
    self.budget = budget
  }

  deinit {
    budget.release(segments.count * PacketRing.segmentLength)
    for path in paths.values { budget.release(path.head.byteCount) }
  }

  // MARK: Contents

  /// Appends a packet, and drops packets that are too old at the new packet's time.
  package mutating func append(_ packet: RingPacket, of owner: UInt32 = 0, isOutbound: Bool = false)
  {
    trim(to: packet.at)
    guard packet.bytes.count <= RingRecord.bytesMaximum,
      let path = number(packet, owner, isOutbound)
    else {
      passed += 1
      return
    }
    let needed = RingRecord.headLength + packet.bytes.count
    if segments.last.map({ $0.count + needed > PacketRing.segmentLength }) ?? true {
      addSegment()
    }
    RingRecord(packet, path: path).write(packet.bytes, to: &segments[segments.count - 1])
    paths[path]?.count += 1
    paths[path]?.lastAt = packet.at
  }

  /// Drops packets that are too old at a time.
  package mutating func trim(to now: Int64) {
    latest = max(latest, now)
    let limit = retainedFrom
    var dropped: Int64?
    while let record = first, record.at < limit {
      dropped = record.at
      dropFirst(record)
    }
    if let dropped { pictures.lose(upTo: dropped) }
    guard latest -| sweptAt >= PacketRing.sweepInterval else { return }
    sweptAt = latest
    sweep(latest)
  }

  /// Records a frame of video that an owner sent or received.
  package mutating func recordFrame(of stream: RingStream, isKey: Bool, at: Int64) {
    pictures.record(stream, isKey: isKey, at: at, ringBegins: latest -| length)
  }

  /// The time before which no packets are retained.
  ///
  /// This is the start of the ring's period or, while at least half of the memory is free for other
  /// calls, the time of the last key frames before that.
  private var retainedFrom: Int64 {
    let limit = latest -| length
    guard budget.usedBytes <= budget.maximum / 2 else { return limit }
    return min(limit, pictures.begin(ringBegins: limit))
  }

  private mutating func number(_ packet: RingPacket, _ owner: UInt32, _ isOutbound: Bool)
    -> UInt32?
  {
    let key = PathKey(tuple: packet.tuple, owner: owner)
    if let known = numbers[key] { return known }
    guard paths.count < PacketRing.pathsMaximum else { return nil }
    nextPath &+= 1
    while paths[nextPath] != nil { nextPath &+= 1 }
    numbers[key] = nextPath
    paths[nextPath] = Path(
      tuple: packet.tuple, owner: owner, isOutbound: isOutbound, lastAt: packet.at)
    return nextPath
  }

  /// Forgets paths without recent packets, and owners that ended long ago.
  private mutating func sweep(_ now: Int64) {
    drops.removeAll { $0.at < now -| length }
    let limit = now -| max(length, PacketRing.silenceMinimum)
    for (number, path) in paths where path.count == 0 && path.lastAt < limit {
      budget.release(path.head.byteCount)
      paths[number] = nil
      numbers[PathKey(tuple: path.tuple, owner: path.owner)] = nil
    }
    pictures.sweep(ringBegins: now -| length)
    for (owner, known) in facts where known.endedAt.map({ $0 < limit }) ?? false {
      facts[owner] = nil
    }
  }

  // MARK: Segments

  /// Adds a segment, and removes the oldest packets if there is no memory for it.
  ///
  /// A ring always has one segment, even beyond the limit, so that it works even if other rings use
  /// up the budget.
  private mutating func addSegment() {
    while !budget.acquire(PacketRing.segmentLength) {
      guard first != nil else {
        budget.exceed(by: PacketRing.segmentLength)
        break
      }
      let before = segments.count
      while segments.count == before, let record = first {
        if record.at >= latest -| length { crowdedOut += 1 }
        pictures.lose(upTo: record.at)
        dropFirst(record)
      }
    }
    var segment: [UInt8] = []
    segment.reserveCapacity(PacketRing.segmentLength)
    segments.append(segment)
  }

  private var first: RingRecord? {
    guard let segment = segments.first, start < segment.count else { return nil }
    return RingRecord(segment, at: start)
  }

  private mutating func dropFirst(_ record: RingRecord) {
    passed += 1
    let content = start + RingRecord.headLength
    if let path = paths[record.path], path.tuple.transport == .udp,
      RingHead.isWanted(segments[0], at: content)
    {
      let bytes = segments[0][content..<content + record.length]
      retain(record.packet(path.tuple, bytes), of: record.path)
    }
    paths[record.path]?.count -= 1
    start = content + record.length
    guard start >= segments[0].count else { return }
    segments.removeFirst()
    start = 0
    budget.release(PacketRing.segmentLength)
  }

  /// Retains a packet that leaves the ring if it may be needed and the budget permits.
  private mutating func retain(_ packet: RingPacket, of path: UInt32) {
    guard budget.acquire(packet.bytes.count) else { return }
    let surplus = paths[path]?.head.retain(packet) ?? packet.bytes.count
    budget.release(surplus)
  }

  // MARK: Facts

  /// Sets an owner's name, which becomes a peer label in the take.
  package mutating func name(_ label: String, owner: UInt32, remote: String = "") {
    facts[owner, default: RingFacts()].label = label
    facts[owner]?.remoteLabel = remote
  }

  /// Adds lines of an owner's NSS key log.
  package mutating func add(keyLog lines: String, of owner: UInt32 = 0) {
    facts[owner, default: RingFacts()].keyLogs.append(lines)
  }

  /// Adds a session description from either end.
  package mutating func add(description text: String, of owner: UInt32 = 0) {
    facts[owner, default: RingFacts()].descriptions.append(text)
  }

  package mutating func recordDropped(_ count: UInt64) {
    if let last = drops.last, latest -| last.at < PacketRing.sweepInterval {
      drops[drops.count - 1].count +|= count
    } else {
      drops.append((latest, count))
    }
  }

  /// Records that an owner has left; its keys and descriptions are dropped when its packets are too
  /// old for the ring.
  package mutating func end(owner: UInt32) { facts[owner]?.endedAt = latest }

  /// Copies the ring without parsing it.
  func snapshot() -> RingSnapshot {
    var segments = Array(segments)
    // Appending to a shared segment would copy it, so the snapshot gets its own copy of the last
    // segment.
    if let last = segments.last { segments[segments.count - 1] = Array(last[...]) }
    return RingSnapshot(
      segments: segments, start: start, paths: paths, facts: facts, passed: passed,
      crowdedOut: crowdedOut, dropped: drops.reduce(0) { $0 +| $1.count },
      earliest: latest -| length, retainedFrom: retainedFrom, pictures: pictures, end: latest)
  }

  /// A parsed copy of the ring's current content.
  package var content: RingContent { RingContent(snapshot()) }
}

/// A copy of a ring, which is read while the ring receives further packets.
struct RingSnapshot: Sendable {
  var segments: [[UInt8]]
  var start: Int
  var paths: [UInt32: PacketRing.Path]
  var facts: [UInt32: RingFacts]
  var passed: UInt64
  var crowdedOut: UInt64
  var dropped: UInt64
  /// The start of the ring's period; older packets are needed only to decode pictures.
  var earliest: Int64
  /// The time from which packets are retained: `earliest`, or earlier if pictures in the ring need
  /// older packets.
  var retainedFrom: Int64
  var pictures: RingPictures
  var end: Int64
}

/// An owner's video stream.
package struct RingStream: Sendable, Hashable {
  package var owner: UInt32
  package var ssrc: UInt32

  package init(owner: UInt32, ssrc: UInt32) { (self.owner, self.ssrc) = (owner, ssrc) }
}

/// The key frames of the streams in a ring: all within the ring's period, and each stream's last
/// key frame before it.
struct RingPictures: Sendable {
  private struct Frames: Sendable {
    /// The times of key frames, in ascending order; at most one time is before the ring's period.
    var keys: [Int64] = []
    var lastAt: Int64
  }

  private var streams: [RingStream: Frames] = [:]
  private static let streamsMaximum = 4096
  private static let keysMaximum = 4096

  mutating func record(_ stream: RingStream, isKey: Bool, at: Int64, ringBegins: Int64) {
    guard streams[stream] != nil || streams.count < Self.streamsMaximum else { return }
    var frames = streams[stream] ?? Frames(lastAt: at)
    frames.lastAt = max(frames.lastAt, at)
    if isKey, frames.keys.count < Self.keysMaximum { frames.keys.append(at) }
    while frames.keys.count > 1, frames.keys[1] <= ringBegins { frames.keys.removeFirst() }
    streams[stream] = frames
  }

  /// Returns the time from which packets are needed to decode all pictures since the ring's
  /// beginning.
  func begin(ringBegins: Int64) -> Int64 {
    var begin = ringBegins
    for frames in streams.values where frames.lastAt >= ringBegins {
      if let key = frames.keys.last(where: { $0 <= ringBegins }) { begin = min(begin, key) }
    }
    return begin
  }

  /// Forgets key frames whose packets have left the ring.
  mutating func lose(upTo time: Int64) {
    for (stream, frames) in streams where frames.keys.first.map({ $0 <= time }) ?? false {
      streams[stream]?.keys.removeAll { $0 <= time }
    }
  }

  /// Forgets streams without a frame in the ring.
  mutating func sweep(ringBegins: Int64) {
    for (stream, frames) in streams where frames.lastAt < ringBegins { streams[stream] = nil }
  }

  /// Returns how many streams have frames but no key frame between two times.
  func withoutKeyFrame(from begin: Int64, to end: Int64) -> Int {
    streams.values.count { frames in
      frames.lastAt >= begin && !frames.keys.contains { $0 >= begin && $0 <= end }
    }
  }
}

/// An owner's label, secrets and descriptions.
///
/// The size limits are generous: only an owner that restarts ICE or DTLS over and over would reach
/// them.
struct RingFacts: Sendable {
  var label = ""
  /// The name of the remote ends that the owner sends to; empty if they have none.
  var remoteLabel = ""
  var keyLogs = RingTexts(bytesMaximum: 16 << 20, isOfLines: true)
  var descriptions = RingTexts(bytesMaximum: 1 << 20)
  /// The time at which the owner left; nil while it is running.
  var endedAt: Int64?
}

/// Strings in order of arrival.
///
/// Repeated strings are dropped unless they consist of lines. Beyond the limits on size and number,
/// the oldest strings are dropped.
struct RingTexts: Sendable {
  private(set) var all: [String] = []
  private var byteCount = 0
  private let bytesMaximum: Int
  /// Whether each string consists of complete lines, in which case strings can be joined.
  private let isOfLines: Bool
  private static let countMaximum = 256
  private static let joinedMaximum = 1 << 16

  init(bytesMaximum: Int, isOfLines: Bool = false) {
    (self.bytesMaximum, self.isOfLines) = (bytesMaximum, isOfLines)
  }

  mutating func append(_ text: String) {
    guard text.utf8.count <= bytesMaximum, all.last != text else { return }
    let length = (all.last?.utf8.count ?? 0) + text.utf8.count
    if isOfLines, !all.isEmpty, length <= RingTexts.joinedMaximum {
      all[all.count - 1] += text
    } else {
      guard isOfLines || !all.contains(text) else { return }
      all.append(text)
    }
    byteCount += text.utf8.count
    while byteCount > bytesMaximum || all.count > RingTexts.countMaximum {
      byteCount -= all.removeFirst().utf8.count
    }
  }
}

/// A packet's header in a segment.
struct RingRecord {
  var at: Int64
  var path: UInt32
  var length: Int
  private var lost: UInt32
  /// Bit 0: truncated; bit 1: end of a direction; bit 2: bits 3 and 4 are the ECN field.
  private var flags: UInt8

  /// The maximum length of a packet in bytes, which any datagram fits; longer pieces of TCP streams
  /// are split.
  static let bytesMaximum = 65_535
  static let headLength = 21

  init(_ packet: RingPacket, path: UInt32) {
    (at, self.path, length) = (packet.at, path, packet.bytes.count)
    lost = UInt32(clamping: packet.lost)
    flags = (packet.isTruncated ? 1 : 0) | (packet.isEnd ? 2 : 0)
    if let ecn = packet.ecn { flags |= 4 | (ecn.rawValue & 3) << 3 }
  }

  init?(_ segment: [UInt8], at offset: Int) {
    guard offset + RingRecord.headLength <= segment.count else { return nil }
    let bytes = segment.span.bytes
    at = Int64(bitPattern: bytes.uint64(at: offset))
    path = bytes.uint32(at: offset + 8)
    length = Int(bytes.uint32(at: offset + 12))
    lost = bytes.uint32(at: offset + 16)
    flags = bytes.byte(at: offset + 20)
    guard offset + RingRecord.headLength + length <= segment.count else { return nil }
  }

  func write(_ bytes: [UInt8], to segment: inout [UInt8]) {
    withUnsafeBytes(of: at.bigEndian) { segment.append(contentsOf: $0) }
    for word in [path, UInt32(clamping: length), lost] {
      withUnsafeBytes(of: word.bigEndian) { segment.append(contentsOf: $0) }
    }
    segment.append(flags)
    segment.append(contentsOf: bytes)
  }

  func packet(_ tuple: FiveTuple, _ bytes: ArraySlice<UInt8>) -> RingPacket {
    var packet = RingPacket(at: at, tuple: tuple, bytes: Array(bytes))
    packet.isTruncated = flags & 1 != 0
    packet.isEnd = flags & 2 != 0
    if flags & 4 != 0 { packet.ecn = ECNMark(rawValue: flags >> 3 & 3) }
    packet.lost = Int(lost)
    return packet
  }
}

extension RingPacket {
  /// Copies a datagram from a capture.
  package init(_ datagram: CapturedDatagram, _ reader: borrowing CaptureReader) {
    self.init(
      at: datagram.unixNanoseconds, tuple: datagram.tuple,
      bytes: [UInt8](reader.bytes(datagram.payload)))
    (isTruncated, ecn) = (datagram.isTruncated, datagram.ecn)
  }

  /// Copies the next bytes of a TCP connection from a capture.
  package init(_ piece: CapturedStreamPiece, _ reader: borrowing CaptureReader) {
    self.init(
      at: piece.unixNanoseconds, tuple: piece.tuple, bytes: [UInt8](reader.bytes(piece.payload)))
    (lost, isEnd) = (piece.lost, piece.isEnd)
  }
}
