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
    for (moment, weight) in sums.sorted(by: { before($0.key, $1.key) }) {
      let one = found.streams[moment.stream]
      add(found.ends[one.end], moment.second, "rtp", one.ssrc, weight)
    }
    let others = found.others.sorted { left, right in
      (left.key.end, left.key.second, left.key.protocolName, left.key.ssrc ?? -1)
        < (right.key.end, right.key.second, right.key.protocolName, right.key.ssrc ?? -1)
    }
    for (key, weight) in others {
      add(found.ends[key.end], key.second, key.protocolName, key.ssrc, weight)
    }
    return rows.sorted(by: [0, 1, 2, 3, 4])
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
      let places = distinct(one.places)
      var expected: Int64 = 0
      for index in places.indices {
        let isFirst = index == 0 || places[index].part != places[index - 1].part
        expected &+= isFirst ? 1 : places[index].place - places[index - 1].place
      }
      rows.add(found.ends[one.end].peer)
      rows.add(text: found.ends[one.end].direction)
      rows.add(one.ssrc)
      rows.add(expected)
      rows.add(Int64(places.count))
      rows.add(expected - Int64(places.count))
    }
    return rows.sorted(by: [0, 1, 2])
  }

  /// The packets sorted by position, without duplicates: the first occurrence stays.
  private static func distinct(_ places: [StreamFacts.Place]) -> [StreamFacts.Place] {
    func before(_ left: StreamFacts.Place, _ right: StreamFacts.Place) -> Bool {
      (left.part, left.place, left.row) < (right.part, right.place, right.row)
    }
    let isSorted = zip(places, places.dropFirst()).allSatisfy { before($0, $1) }
    var found: [StreamFacts.Place] = []
    found.reserveCapacity(places.count)
    for place in isSorted ? places : places.sorted(by: before) {
      if let last = found.last, last.part == place.part, last.place == place.place {
        found[found.count - 1].at = min(last.at, place.at)
      } else {
        found.append(place)
      }
    }
    return found
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
      let places = distinct(one.places)
      for (last, next) in zip(places, places.dropFirst()) where last.part == next.part {
        let missing = next.place - last.place - 1
        guard missing > 0 else { continue }
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
