/// Views of streams, computed in one pass over the packets.
enum StreamViews {
  static let all = [stream, bitrate, loss, jitter, retransmission, lossBurst, gap]

  private static let stream: ComputedView = ComputedView(
    name: "stream",
    columns: ComputedView.columns(
      "peer direction:t ssrc payload_type packets bytes first_ns last_ns bits_per_second:r "
        + "packets_lost loss_share:r packets_refused")
  ) { (facts, _) throws(SQLiteError) in
    var rows = stream.empty()
    let found = try facts.streams()
    let losses = try facts.losses()
    for (one, loss) in zip(found.streams, losses) {
      let end = found.ends[one.end]
      let (lost, expected) =
        end.direction == "in"
        ? (loss.lost, loss.expected) : (loss.reportedLost, loss.reportedExpected)
      for share in one.shares {
        rows.add(end.peer)
        rows.add(text: end.direction)
        for number in [one.ssrc, share.payloadType, share.packets, share.bytes] {
          rows.add(number)
        }
        rows.add(share.first)
        rows.add(share.last)
        rows.add(
          real: share.last - share.first > 100_000_000
            ? (Double(share.bytes) * 8e9 / Double(share.last - share.first))
              .rounded(.toNearestOrAwayFromZero) : nil)
        rows.add(lost)
        rows.add(
          real: lost.flatMap { lost in
            expected.flatMap { $0 == 0 ? nil : Double(lost) / Double($0) }
          })
        rows.add(loss.refused)
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

  /// A protocol, by the first byte of a datagram (RFC 7983).
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

  /// The key by which packets other than RTP are added up.
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
    name: "loss",
    columns: ComputedView.columns(
      "peer direction:t ssrc expected received lost refused reported_expected reported_lost")
  ) { (facts, _) throws(SQLiteError) in
    var rows = loss.empty()
    let found = try facts.streams()
    for (one, loss) in zip(found.streams, try facts.losses()) {
      rows.add(found.ends[one.end].peer)
      rows.add(text: found.ends[one.end].direction)
      for number in [one.ssrc, loss.expected, loss.received, loss.lost] { rows.add(number) }
      rows.add(loss.refused)
      rows.add(loss.reportedExpected)
      rows.add(loss.reportedLost)
    }
    return rows.sorted(by: [0, 1, 2])
  }

  /// A packet at its position in a stream; later copies of the packet are left out.
  fileprivate struct Distinct {
    var part: Int32
    var place: Int64
    var row: Int64
    var at: Int64
    var sequence: Int64
  }

  /// Calls a closure for each packet of a stream, ordered by position and without later copies.
  fileprivate static func forEachDistinct(
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

// MARK: - StreamLoss

/// The loss of a stream: missing packets, packets that SRTP refused, and loss that the receiver
/// reported.
struct StreamLoss {
  private(set) var expected: Int64 = 0
  private(set) var received: Int64 = 0
  var lost: Int64 { expected &- received }
  /// The number of received packets that SRTP refused; nil for a sent stream.
  private(set) var refused: Int64?
  /// The number of packets sent before the receiver's last report, and how many of them the reports
  /// count as lost; nil without a report.
  private(set) var reportedExpected: Int64?
  private(set) var reportedLost: Int64?

  private struct Source: Hashable {
    var peer: Int64
    var ssrc: Int64
  }

  /// Returns the loss of each stream, in order, by the rules of the view `loss`.
  static func all(_ facts: ViewFacts) throws(SQLiteError) -> [StreamLoss] {
    let found = try facts.streams()
    let (samples, reports) = (try samples(facts), try reports(facts))
    return found.streams.map { stream in
      let end = found.ends[stream.end]
      let source = Source(peer: end.peer, ssrc: stream.ssrc)
      return end.direction == "in"
        ? StreamLoss(received: stream, found.packets, samples[source])
        : StreamLoss(sent: stream, found.packets, reports[source])
    }
  }

  private init(_ stream: StreamFacts.Stream, _ packets: PacketFacts) {
    var last: StreamViews.Distinct?
    StreamViews.forEachDistinct(of: stream, packets) { next in
      expected &+= last.flatMap { $0.part == next.part ? next.place &- $0.place : nil } ?? 1
      received += 1
      last = next
    }
  }

  private init(
    received stream: StreamFacts.Stream, _ packets: PacketFacts,
    _ sample: (row: Int64, lost: Int64)?
  ) {
    self.init(stream, packets)
    refused = 0
    guard let sample else { return }
    var early = stream
    early.places.removeAll { packets.packets[Int($0.packet)].row >= sample.row }
    refused = max(0, sample.lost &- StreamLoss(early, packets).lost)
  }

  private init(
    sent stream: StreamFacts.Stream, _ packets: PacketFacts, _ report: (at: Int64, lost: Int64)?
  ) {
    self.init(stream, packets)
    guard let report else { return }
    let sent = stream.places.count { packets.packets[Int($0.packet)].at <= report.at }
    reportedLost = max(0, report.lost)
    reportedExpected = max(Int64(sent), max(0, report.lost))
  }

  /// Returns the last stats sample of each received stream at peers where SRTP refused packets.
  private static func samples(
    _ facts: ViewFacts
  ) throws(SQLiteError) -> [Source: (row: Int64, lost: Int64)] {
    var samples: [Source: (row: Int64, lost: Int64)] = [:]
    let rows = try facts.prepare(
      """
      SELECT peer, CAST(members ->> '$.ssrc' AS BIGINT) & 4294967295, row,
        CAST(members ->> '$.packetsLost' AS BIGINT)
      FROM stat WHERE type = 'inbound-rtp' AND members ->> '$.packetsLost' IS NOT NULL
        AND peer IN (
          SELECT peer FROM event WHERE type = 'refused' AND detail ->> '$.layer' = 'srtp')
      ORDER BY row
      """)
    while try rows.step() {
      samples[Source(peer: rows.integer(0), ssrc: rows.integer(1))] = (
        rows.integer(2), rows.integer(3)
      )
    }
    return samples
  }

  /// Returns the time of the last report about each sent stream, and the total loss according to
  /// all reports about it.
  private static func reports(
    _ facts: ViewFacts
  ) throws(SQLiteError) -> [Source: (at: Int64, lost: Int64)] {
    var reports: [Source: (at: Int64, lost: Int64)] = [:]
    var former: [Source: Int64] = [:]
    let rows = try facts.prepare(
      "SELECT peer, ssrc, at_ns, lost FROM report_block WHERE direction = 'in' ORDER BY row")
    while try rows.step() {
      let source = Source(peer: rows.integer(0), ssrc: rows.integer(1))
      let (at, lost) = (rows.integer(2), rows.integer(3))
      let before = former[source] ?? 0
      // The count of lost packets restarts with the stream, and a late packet reduces it by one.
      let more = lost < 0 || before &- lost > 1000 ? 0 : lost &- before
      former[source] = max(0, lost)
      let sum = reports[source]
      reports[source] = (max(sum?.at ?? at, at), (sum?.lost ?? 0) &+ more)
    }
    return reports
  }
}
