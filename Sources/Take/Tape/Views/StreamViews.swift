/// Views of streams that come from one pass over the packets.
enum StreamViews {
  static let all = [stream, bitrate, loss, jitter, retransmission, lossBurst, gap]

  private static let stream: ComputedView = ComputedView(
    name: "stream",
    columns: ComputedView.columns(
      "peer direction:t ssrc payload_type packets bytes first_ns last_ns bits_per_second:r")
  ) { (facts, _) throws(SQLiteError) in
    var rows = stream.empty()
    let found = try facts.streams()
    for one in found.streams {
      let end = found.ends[one.end]
      for share in one.shares {
        rows.add(end.peer)
        rows.add(text: end.direction)
        for number in [one.ssrc, share.payloadType, share.packets, share.bytes] {
          rows.add(number)
        }
        rows.add(share.first)
        rows.add(share.last)
        rows.add(
          real: share.last > share.first
            ? (Double(share.bytes) * 8e9 / Double(share.last - share.first))
              .rounded(.toNearestOrAwayFromZero) : nil)
      }
    }
    return rows.sorted(by: [0, 1, 2, 3])
  }

  private static let bitrate: ComputedView = ComputedView(
    name: "bitrate",
    columns: ComputedView.columns(
      "peer direction:t second protocol:t ssrc packets bits_per_second")
  ) { (facts, _) throws(SQLiteError) in
    var rows = bitrate.empty()
    let found = try facts.streams()
    var sums: [StreamFacts.Moment: StreamFacts.Weight] = [:]
    for (moment, weight) in found.weights {
      var key = moment
      key.share = 0
      sums[key, default: StreamFacts.Weight()].packets += weight.packets
      sums[key, default: StreamFacts.Weight()].bytes &+= weight.bytes
    }
    func add(
      _ end: ViewFacts.End, _ second: Int64, _ name: String, _ ssrc: Int64?,
      _ weight: StreamFacts.Weight
    ) {
      rows.add(end.peer)
      rows.add(text: end.direction)
      rows.add(second)
      rows.add(text: name)
      rows.add(ssrc)
      rows.add(weight.packets)
      rows.add(weight.bytes &* 8)
    }
    for (moment, weight) in sums {
      let one = found.streams[moment.stream]
      add(found.ends[one.end], moment.second, "rtp", one.ssrc, weight)
    }
    for (key, weight) in try others(found.packets, facts) {
      add(found.ends[key.end], key.second, key.kind.rawValue, key.ssrc, weight)
    }
    return rows.sorted(by: [0, 1, 2, 3, 4])
  }

  /// Protocols by the first byte of a datagram (RFC 7983).
  private enum Kind: String {
    case stun
    case dtls
    case turn
    case rtcp
    case other

    init(firstByte: UInt8?) {
      switch firstByte ?? 255 {
      case ..<0x04: self = .stun
      case 0x14..<0x40: self = .dtls
      case 0x40..<0x50: self = .turn
      default: self = .other
      }
    }
  }

  /// Packets outside of streams: by end, protocol, sender and second.
  private struct Other: Hashable {
    var end: Int
    var kind: Kind
    var ssrc: Int64?
    var second: Int64
  }

  private static func others(
    _ packets: PacketFacts, _ facts: ViewFacts
  ) throws(SQLiteError) -> [Other: StreamFacts.Weight] {
    var weights: [Other: StreamFacts.Weight] = [:]
    let wire = try WireReader(facts)
    for packet in packets.others {
      let kind: Kind
      if packet.ssrc != nil {
        kind = .rtcp
      } else {
        kind = packet.size == 0 ? .other : Kind(firstByte: try wire.byte(at: packet.position))
      }
      for end in packets.paths[packet.path] {
        let key = Other(
          end: end, kind: kind, ssrc: packet.ssrc.map { Int64($0) },
          second: packet.at / 1_000_000_000)
        weights[key, default: StreamFacts.Weight()].packets += 1
        weights[key, default: StreamFacts.Weight()].bytes &+= packet.size
      }
    }
    return weights
  }

  private static func before(_ left: StreamFacts.Moment, _ right: StreamFacts.Moment) -> Bool {
    (left.stream, left.share, left.second) < (right.stream, right.share, right.second)
  }

  private static let loss: ComputedView = ComputedView(
    name: "loss", columns: ComputedView.columns("peer direction:t ssrc expected received lost")
  ) { (facts, _) throws(SQLiteError) in
    var rows = loss.empty()
    let found = try facts.streams()
    for one in found.streams {
      var expected: Int64 = 0
      var received: Int64 = 0
      var last: Distinct?
      forEachDistinct(of: one, found.packets) { next in
        let step = last.flatMap { $0.part == next.part ? next.place - $0.place : nil }
        expected &+= step ?? 1
        received += 1
        last = next
      }
      rows.add(found.ends[one.end].peer)
      rows.add(text: found.ends[one.end].direction)
      rows.add(one.ssrc)
      rows.add(expected)
      rows.add(received)
      rows.add(expected &- received)
    }
    return rows.sorted(by: [0, 1, 2])
  }

  /// A packet at its position in its stream.
  private struct Distinct {
    var part: Int32
    var place: Int64
    var row: Int64
    var at: Int64
    var sequence: Int64
  }

  /// Calls a closure with a stream's packets by position, without duplicates: the first occurrence
  /// stays.
  private static func forEachDistinct(
    of stream: StreamFacts.Stream, _ packets: PacketFacts, _ body: (Distinct) -> Void
  ) {
    func before(_ left: StreamFacts.Place, _ right: StreamFacts.Place) -> Bool {
      (left.part, left.place, left.packet) < (right.part, right.place, right.packet)
    }
    let isSorted = zip(stream.places, stream.places.dropFirst()).allSatisfy { before($0, $1) }
    var open: Distinct?
    for place in isSorted ? stream.places : stream.places.sorted(by: before) {
      let packet = packets.packets[Int(place.packet)]
      if let one = open, one.part == place.part, one.place == place.place {
        open?.at = min(one.at, packet.at)
        continue
      }
      if let open { body(open) }
      open = Distinct(
        part: place.part, place: place.place, row: packet.row, at: packet.at,
        sequence: Int64(packet.sequence))
    }
    if let open { body(open) }
  }

  private static let jitter: ComputedView = ComputedView(
    name: "jitter", columns: ComputedView.columns("peer ssrc second jitter_ms:r")
  ) { (facts, _) throws(SQLiteError) in
    var rows = jitter.empty()
    let found = try facts.streams()
    var sums: [StreamFacts.Moment: (milliseconds: Double, packets: Int64)] = [:]
    for (moment, weight) in found.weights.sorted(by: { before($0.key, $1.key) })
    where weight.jitterPackets > 0 {
      var key = moment
      key.share = 0
      sums[key, default: (0, 0)].milliseconds += weight.jitterMilliseconds
      sums[key, default: (0, 0)].packets += weight.jitterPackets
    }
    for (moment, sum) in sums.sorted(by: { before($0.key, $1.key) }) {
      let one = found.streams[moment.stream]
      rows.add(found.ends[one.end].peer)
      rows.add(one.ssrc)
      rows.add(moment.second)
      rows.add(real: sum.milliseconds / Double(sum.packets))
    }
    return rows.sorted(by: [0, 1, 2])
  }

  private static let retransmission: ComputedView = ComputedView(
    name: "retransmission",
    columns: ComputedView.columns("peer direction:t ssrc payload_type second packets bytes")
  ) { (facts, _) throws(SQLiteError) in
    var rows = retransmission.empty()
    let found = try facts.streams()
    for (moment, weight) in found.weights.sorted(by: { before($0.key, $1.key) }) {
      let one = found.streams[moment.stream]
      let share = one.shares[moment.share]
      guard share.isRetransmission else { continue }
      rows.add(found.ends[one.end].peer)
      rows.add(text: found.ends[one.end].direction)
      for number in [one.ssrc, share.payloadType, moment.second, weight.packets, weight.bytes] {
        rows.add(number)
      }
    }
    return rows.sorted(by: [0, 1, 2, 3, 4])
  }

  private static let lossBurst: ComputedView = ComputedView(
    name: "loss_burst",
    columns: ComputedView.columns(
      "row step peer direction:t ssrc from_ns to_ns first_sequence packets")
  ) { (facts, _) throws(SQLiteError) in
    var rows = lossBurst.empty()
    let found = try facts.streams()
    for one in found.streams {
      var before: Distinct?
      forEachDistinct(of: one, found.packets) { next in
        defer { before = next }
        guard let last = before, last.part == next.part else { return }
        let missing = next.place - last.place - 1
        guard missing > 0 else { return }
        rows.add(next.row)
        rows.add(next.row >> 16)
        rows.add(found.ends[one.end].peer)
        rows.add(text: found.ends[one.end].direction)
        for number in [
          one.ssrc, last.at, next.at, (next.sequence - missing) & 0xffff, missing,
        ] {
          rows.add(number)
        }
      }
    }
    return rows
  }

  private static let gap: ComputedView = ComputedView(
    name: "gap",
    columns: ComputedView.columns(
      "row step peer direction:t ssrc from_ns to_ns gap_ms:r missing")
  ) { (facts, _) throws(SQLiteError) in
    var rows = gap.empty()
    let found = try facts.streams()
    for one in found.streams {
      let usual = Double(one.last - one.first) / Double(one.frames)
      for pause in one.pauses where Double(pause.to - pause.from) >= 3 * usual {
        rows.add(pause.row)
        rows.add(pause.row >> 16)
        rows.add(found.ends[one.end].peer)
        rows.add(text: found.ends[one.end].direction)
        for number in [one.ssrc, pause.from, pause.to] { rows.add(number) }
        rows.add(real: Double(pause.to - pause.from) / 1e6)
        rows.add(max(0, pause.stepSize - 1))
      }
    }
    return rows
  }
}
