import RTP
import Tape
import Wire

/// An RTP packet, as all collections of facts receive it in one pass over the take.
package struct PacketSight {
  /// The packet's row, which orders it among the take's events.
  package var row: Int64
  package var at: Int64
  package var peer: Int64
  package var direction: WireDirection
  package var ssrc: Int64
  package var payloadType: Int64
  package var isMarked: Bool
  package var sequence: Int64
  package var rtpTime: Int64
  package var size: Int64
  /// The transport-wide sequence number, if the packet has one.
  package var transportSequence: Int64?
}

extension CallFacts {
  private struct End {
    var peer: Int64
    var direction: WireDirection
    /// The index in `ways`.
    var way: Int
  }

  /// Reads all RTP packets once, in order.
  mutating func readPackets(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    var ends: [Int64: [End]] = [:]
    let paths = try connection.prepare(
      "SELECT path, peer, direction, local, remote FROM path_end ORDER BY path, peer, direction")
    while try paths.step() {
      let (path, peer, direction, local, remote) = paths.values(
        Int64.self, Int64.self, String.self, String.self, String.self)
      seeAddresses(peer, local, remote)
      guard let direction = WireDirection(rawValue: direction) else { continue }
      let way = ways.firstIndex { $0.peer == peer && $0.direction == direction } ?? ways.count
      if way == ways.count { ways.append(Way(peer: peer, direction: direction)) }
      ends[path, default: []].append(End(peer: peer, direction: direction, way: way))
    }
    let rates = try clockRates(connection)
    var places: [StreamName: Int] = [:]
    let rows = try connection.prepare(
      """
      SELECT path, at_ns, ssrc & 0xffffffff, sequence & 0xffff, rtp_time & 0xffffffff, row,
        marker_type & 255, size, transport_sequence & 0xffff
      FROM packet_store WHERE \(part) ORDER BY row
      """)
    while try rows.step() {
      let found = ends[rows.integer(0)] ?? []
      guard !rows.isNull(6) else {
        for end in found { ways[end.way].addOther(rows.integer(1), isMedia: !rows.isNull(2)) }
        continue
      }
      let head = rows.integer(6)
      var sight = PacketSight(
        row: rows.integer(5), at: rows.integer(1), peer: 0, direction: .inbound,
        ssrc: rows.integer(2), payloadType: head & 127, isMarked: head & 128 != 0,
        sequence: rows.integer(3), rtpTime: rows.integer(4), size: rows.integer(7),
        transportSequence: rows.isNull(8) ? nil : rows.integer(8))
      for end in found {
        ways[end.way].add(sight.at, intervalNanoseconds)
        (sight.peer, sight.direction) = (end.peer, end.direction)
        let name = StreamName(peer: end.peer, direction: end.direction, ssrc: sight.ssrc)
        let place = places[name] ?? streams.count
        if place == streams.count {
          guard place < Self.mostStreams else { continue }
          var stream = Stream(
            peer: end.peer, direction: end.direction, ssrc: sight.ssrc, first: sight.at,
            last: sight.at)
          let clock =
            rates[
              RateName(peer: end.peer, direction: end.direction, payloadType: sight.payloadType)]
          stream.clockRate = clock?.rate ?? 0
          stream.tail.judgesSteps = clock?.isEven ?? false
          streams.append(stream)
          places[name] = place
        }
        streams[place].add(sight, interval: intervalNanoseconds)
        if sight.direction == .inbound { voices.add(sight, place) }
        network.add(sight, place)
        perception.add(sight, place)
      }
    }
    for place in streams.indices { streams[place].finish(end, interval: intervalNanoseconds) }
  }

  /// Records a peer's address pair, and matches the peer with another that has the same addresses
  /// reversed.
  private mutating func seeAddresses(_ peer: Int64, _ local: String, _ remote: String) {
    guard addresses.count < Self.most else { return }
    let name = "\(local) \(remote)"
    if addresses[name] == nil { addresses[name] = peer }
    guard let other = addresses["\(remote) \(local)"], other != peer,
      !mirrored.contains(where: { $0 == (other, peer) })
    else { return }
    mirrored.append((other, peer))
  }

  /// The maximum number of streams; a take with more contains a flood of random SSRCs.
  private static let mostStreams = 2000

  private struct StreamName: Hashable {
    var peer: Int64
    var direction: WireDirection
    var ssrc: Int64
  }

  private struct RateName: Hashable {
    var peer: Int64
    var direction: WireDirection
    var payloadType: Int64
  }

  private struct Clock {
    var rate: Int64
    /// Whether the duration of each packet is a multiple of 2.5 ms.
    var isEven: Bool
  }

  private func clockRates(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [RateName: Clock]
  {
    var clocks: [RateName: Clock] = [:]
    // If an inferred stream was revised, it has several rows, and the last one is valid.
    let rows = try connection.prepare(
      """
      SELECT peer, direction, payload_type, clock_rate,
        kind = 'audio' AND codec IN ('opus', 'red', 'pcmu', 'pcma', 'g722') AND clock_rate % 400 = 0
      FROM track WHERE clock_rate > 0 ORDER BY row LIMIT \(Self.most)
      """)
    while try rows.step() {
      let (peer, direction, type, rate, isEven) = rows.values(
        Int64.self, String.self, Int64.self, Int64.self, Int64.self)
      guard let direction = WireDirection(rawValue: direction) else { continue }
      clocks[RateName(peer: peer, direction: direction, payloadType: type)] = Clock(
        rate: rate, isEven: isEven != 0)
    }
    return clocks
  }
}

extension CallFacts.Way {
  /// Adds packets that passed at a time, which must not decrease.
  ///
  /// If the packets were only counted, the time is the beginning of the interval in which they
  /// passed.
  mutating func add(_ at: Int64, _ interval: Int64, packets count: Int32 = 1) {
    let place = Int(min(max(at / interval, 0), Int64(CallFacts.most) *| 10))
    while packets.count <= place { packets.append(0) }
    packets[place] &+= count
    if lastMedia == .min || at &- lastMedia >= CallFacts.leastQuiet {
      quiet.append(CallFacts.Quiet(from: lastMedia, to: at))
    }
    lastMedia = max(lastMedia, at)
    first = min(first ?? at, at)
    last = max(last, at)
  }

  mutating func addOther(_ at: Int64, isMedia: Bool) {
    if others.count < CallFacts.most *| 10 { others.append(at) }
    guard isMedia else { return }
    first = min(first ?? at, at)
    last = max(last, at)
  }

  mutating func finish() { quiet.append(CallFacts.Quiet(from: lastMedia, to: .max)) }

  /// Returns the number of RTP packets in the intervals that lie entirely within a period.
  package func count(from: Int64, to: Int64, interval: Int64) -> Int64 {
    let first = max(0, from / interval +| 1)
    let last = min(Int64(packets.count), to / interval)
    guard first < last else { return 0 }
    return packets[Int(first)..<Int(last)].reduce(0) { $0 +| Int64($1) }
  }

  /// Returns whether a packet other than RTP passed in a period.
  package func hasOther(from: Int64, to: Int64) -> Bool {
    var (low, high) = (0, others.count)
    while low < high {
      let middle = (low +| high) / 2
      if others[middle] <= from { low = middle +| 1 } else { high = middle }
    }
    return low < others.count && others[low] < to
  }
}

extension CallFacts.Stream {
  mutating func add(_ sight: PacketSight, interval: Int64) {
    count(sight)
    let mayBegin = tail.nearRestarts.mayBegin(
      UInt16(truncatingIfNeeded: sight.sequence), UInt32(truncatingIfNeeded: sight.rtpTime))
    if packets == 1 { return enter(sight, interval, begins: true) }
    guard let pending = tail.pending else { return consider(sight, mayBegin, interval) }
    tail.pending = nil
    if tail.pendingIsNear {
      settle(pending, next: sight, interval)
      return consider(sight, mayBegin, interval)
    }
    if !beginsAnew(sight, after: tail) {
      // This packet continues the numbers from before the held packet, which was therefore an
      // outlier and not a restart.
      return enter(sight, interval, begins: false)
    }
    let step = ((sight.sequence &- pending.sequence &+ 32_768) & 65_535) &- 32_768
    guard abs(step) < 3000 else {
      tail.pending = sight
      return
    }
    restart(with: pending, interval)
    enter(sight, interval, begins: false)
  }

  /// Adds a packet, or holds it until the next packet shows whether the sequence numbers restarted.
  private mutating func consider(_ sight: PacketSight, _ mayBegin: Bool, _ interval: Int64) {
    let isFar = beginsAnew(sight, after: tail)
    guard isFar || mayBegin else { return enter(sight, interval, begins: false) }
    tail.pending = sight
    tail.pendingIsNear = !isFar
  }

  /// Adds a held packet; the next packet decides whether the held one restarted the sequence
  /// numbers.
  private mutating func settle(_ pending: PacketSight, next: PacketSight?, _ interval: Int64) {
    func step(_ from: Int64, _ to: Int64) -> Int {
      Int(((to &- from &+ 32_768) & 65_535) &- 32_768)
    }
    if let next,
      NearRestarts.isBorneOut(
        step: step(tail.sequence, pending.sequence), next: step(pending.sequence, next.sequence))
    {
      restart(with: pending, interval)
    } else {
      enter(pending, interval, begins: false)
    }
  }

  private mutating func restart(with sight: PacketSight, _ interval: Int64) {
    if restarts.count < CallFacts.most {
      restarts.append((sight.at, tail.sequence, sight.sequence))
    }
    enter(sight, interval, begins: true)
  }

  private mutating func enter(_ sight: PacketSight, _ interval: Int64, begins: Bool) {
    let index = max(0, sight.at / interval -| first / interval)
    // The index is limited, because a clock jump would add every interval that it skips.
    let place = Int(min(index, Int64(CallFacts.most) *| 10))
    while buckets.count <= place { buckets.append(CallFacts.Bucket()) }
    var bucket = buckets[place]
    bucket.packets &+= 1
    bucket.bytes &+= Int32(truncatingIfNeeded: sight.size)
    if begins { begin(sight) } else { follow(sight, &bucket, place) }
    buckets[place] = bucket
    (tail.sequence, tail.rtpTime, tail.at) = (sight.sequence, sight.rtpTime, sight.at)
    tail.payloadType = sight.payloadType
    last = max(last, sight.at)
  }

  private mutating func count(_ sight: PacketSight) {
    packets +|= 1
    bytes &+= sight.size
    if let place = payloadTypes.firstIndex(where: { $0.type == sight.payloadType }) {
      payloadTypes[place].packets +|= 1
    } else {
      payloadTypes.append((sight.payloadType, 1, sight.at))
    }
  }

  private mutating func begin(_ sight: PacketSight) {
    tail.highest = sight.sequence
    tail.lowest = sight.sequence
    tail.highestRTPTime = sight.rtpTime
    tail.window = [UInt64](repeating: 0, count: 16)
    tail.holes = []
    tail.mark(tail.highest, true)
    (tail.partFirst, tail.partPackets) = (sight.at, 1)
    expected +|= 1
    (tail.leastDelay, tail.mediaTicks) = (Int64.max, 0)
  }

  /// Adds a packet to `bucket`, a copy of the interval with the index `place`.
  private mutating func follow(
    _ sight: PacketSight, _ bucket: inout CallFacts.Bucket, _ place: Int
  ) {
    let step = ((sight.sequence &- tail.sequence &+ 32_768) & 65_535) &- 32_768
    let ticks = ((sight.rtpTime &- tail.rtpTime &+ 0x8000_0000) & 0xffff_ffff) &- 0x8000_0000
    tail.partPackets +|= 1
    if tail.judgesSteps, step == 1 { tail.count(ticks, sight.at, sight.at &- tail.at, clockRate) }
    let pause = sight.at &- tail.at
    if pause >= CallFacts.leastGap, gaps.count < CallFacts.most {
      gaps.append(
        CallFacts.Gap(
          from: tail.at, to: sight.at, missing: max(0, step -| 1), ticks: ticks,
          payloadType: tail.payloadType))
    }
    space(sight, pause, ticks, &bucket)
    let position =
      tail.highest
      &+ (((sight.sequence &- tail.highest &+ 32_768) & 65_535) &- 32_768)
    if position > tail.highest {
      let missing = position &- tail.highest &- 1
      for number in (max(tail.highest, position &- 1024) &+ 1)..<position {
        tail.mark(number, false)
      }
      tail.mark(position, true)
      expected &+= missing &+ 1
      lost &+= missing
      bucket.lost &+= Int32(truncatingIfNeeded: missing)
      if missing > 0 {
        bucket.holes &+= 1
        tail.addHole(first: tail.highest &+ 1, missing, in: place)
      }
      if missing >= CallFacts.leastBurst, bursts.count < CallFacts.most {
        bursts.append(
          CallFacts.Burst(
            from: tail.at, to: sight.at, first: tail.highest &+ 1, missing: missing))
      }
      (tail.highest, tail.highestRTPTime) = (position, sight.rtpTime)
    } else if tail.highest &- position < 1024, !tail.has(position) {
      tail.mark(position, true)
      reordered +|= 1
      bucket.reordered &+= 1
      if position < tail.lowest {
        // The packet was sent before the first one that arrived.
        let missing = tail.lowest &- position &- 1
        expected &+= missing &+ 1
        lost &+= missing
        bucket.lost &+= Int32(truncatingIfNeeded: missing)
        if missing > 0 {
          bucket.holes &+= 1
          tail.addHole(first: position &+ 1, missing, in: place)
        }
        tail.lowest = position
      } else if lost > 0 {
        lost -= 1
        // The packet was counted as missing in an earlier interval, or in this one.
        let (hole, isFilled) = tail.fillHole(at: position) ?? (place, false)
        if hole == place {
          bucket.lost &-= 1
          if isFilled { bucket.holes &-= 1 }
        } else {
          buckets[hole].lost &-= 1
          if isFilled { buckets[hole].holes &-= 1 }
        }
      }
      divideBurst(at: position)
    } else {
      duplicates +|= 1
      bucket.duplicates &+= 1
    }
  }

  /// Removes a packet that arrived late from its burst, and keeps the parts before and after it if
  /// they are bursts themselves.
  private mutating func divideBurst(at position: Int64) {
    // The packet can only belong to a burst since the last restart of the sequence numbers.
    let place = bursts.lastIndex { $0.first <= position && $0.to >= tail.partFirst }
    guard let place, position &- bursts[place].first < bursts[place].missing else { return }
    let whole = bursts[place]
    var (before, after) = (whole, whole)
    before.missing = position &- whole.first
    after.first = position &+ 1
    after.missing = whole.missing &- before.missing &- 1
    bursts.replaceSubrange(
      place...place, with: [before, after].filter { $0.missing >= CallFacts.leastBurst })
  }

  /// Returns whether a packet's number alone shows that the sender restarted its sequence numbers,
  /// by the rule of the `loss` view.
  private func beginsAnew(_ sight: PacketSight, after tail: StreamTail) -> Bool {
    let step = ((sight.sequence &- tail.sequence &+ 32_768) & 65_535) &- 32_768
    let ticks = ((sight.rtpTime &- tail.rtpTime &+ 0x8000_0000) & 0xffff_ffff) &- 0x8000_0000
    guard abs(step) >= 3000 || step <= -100 && ticks > 0 else { return false }
    guard step > 0 else { return true }
    let missing = Double(step) * Double(tail.at &- tail.partFirst)
    let usual = Double(tail.partPackets) * Double(sight.at &- tail.at)
    return !(missing >= usual / 2 && missing <= usual * 2)
  }

  private mutating func space(
    _ sight: PacketSight, _ pause: Int64, _ ticks: Int64, _ bucket: inout CallFacts.Bucket
  ) {
    guard clockRate > 0 else { return }
    let nanoseconds = ticks &* 1_000_000_000 / clockRate
    tail.mediaTicks &+= ticks
    let difference = abs(pause &- nanoseconds) / 1000
    bucket.spaced &+= 1
    bucket.jitterMicroseconds &+= Int32(truncatingIfNeeded: min(difference, 10_000_000))
    let mediaTime = Double(tail.mediaTicks) * 1e9 / Double(clockRate)
    guard abs(mediaTime) < 1e18 else { return }
    let delay = sight.at &- Int64(mediaTime)
    tail.leastDelay = min(tail.leastDelay, delay)
    let lateness = (delay &- tail.leastDelay) / 1000
    bucket.latenessMicroseconds = max(
      bucket.latenessMicroseconds, Int32(truncatingIfNeeded: min(lateness, 1_000_000_000)))
  }

  /// Completes the stream at the end of the take.
  mutating func finish(_ end: Int64, interval: Int64) {
    if let pending = tail.pending, tail.pendingIsNear { settle(pending, next: nil, interval) }
    if end &- last >= CallFacts.leastGap, gaps.count < CallFacts.most {
      gaps.append(
        CallFacts.Gap(from: last, to: nil, missing: 0, ticks: 0, payloadType: tail.payloadType))
    }
    judgeSteps()
    tail = StreamTail()
  }

  /// Counts the timestamp steps that do not match a packet's duration, which is a multiple of 2.5
  /// ms.
  ///
  /// A step that is longer than usual is not counted if the next packet arrived later by as much,
  /// because it is a pause.
  private mutating func judgeSteps() {
    steps = tail.steps.reduce(0) { $0 +| $1.count }
    guard clockRate > 0,
      let usual = tail.steps.max(by: { ($0.count, $1.ticks) < ($1.count, $0.ticks) })?.ticks
    else { return }
    for length in tail.steps {
      let isUneven = length.ticks *| 400 % clockRate != 0
      let count = isUneven ? length.count : length.ticks > usual ? length.early : 0
      guard count > 0 else { continue }
      unevenSteps +|= count
      let time = unevenTime ?? length.first...length.first
      unevenTime =
        min(time.lowerBound, length.first)...max(time.upperBound, length.last, length.first)
    }
  }
}

extension CallFacts.Bucket {
  mutating func add(_ other: Self) {
    packets &+= other.packets
    bytes &+= other.bytes
    lost &+= other.lost
    holes &+= other.holes
    reordered &+= other.reordered
    duplicates &+= other.duplicates
    spaced &+= other.spaced
    jitterMicroseconds &+= other.jitterMicroseconds
    latenessMicroseconds = max(latenessMicroseconds, other.latenessMicroseconds)
  }
}
