import Tape
import Wire

// Facts from RTCP, frames and levels.

extension CallFacts {
  mutating func readFeedback(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let asked = try connection.prepare(
      """
      SELECT peer, at_ns, direction, type, ssrc & 0xffffffff,
        iif(type = 'nack', json_array_length(fields, '$.sequences'), 1)
      FROM rtcp WHERE type IN ('nack', 'pli', 'fir') ORDER BY row LIMIT \(Self.most)
      """)
    while try asked.step() {
      guard let direction = WireDirection(rawValue: asked.text(2) ?? "") else { continue }
      let kind: Demand.Kind =
        switch asked.text(3) {
        case "nack": .nack
        case "pli": .pli
        default: .fir
        }
      demands.append(
        Demand(
          peer: asked.integer(0), at: asked.integer(1), direction: direction, kind: kind,
          ssrc: asked.integer(4), packets: asked.integer(5)))
    }
    try readReports(connection)
    try readSenderReports(connection)
  }

  private mutating func readReports(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT rtcp.peer, rtcp.at_ns, rtcp.direction, each.value ->> '$.ssrc',
        each.value ->> '$.fraction_lost', each.value ->> '$.lost', each.value ->> '$.highest',
        each.value ->> '$.jitter', each.value ->> '$.lsr', each.value ->> '$.dlsr'
      FROM rtcp, json_each(rtcp.fields, '$.blocks') AS each
      WHERE rtcp.type IN ('sr', 'rr') ORDER BY rtcp.row LIMIT \(Self.most)
      """)
    while try rows.step() {
      guard let direction = WireDirection(rawValue: rows.text(2) ?? "") else { continue }
      reports.append(
        Report(
          peer: rows.integer(0), at: rows.integer(1), direction: direction, ssrc: rows.integer(3),
          fractionLost: Double(rows.integer(4)) / 256, lost: rows.integer(5),
          highest: rows.integer(6), jitter: rows.integer(7),
          lastSent: rows.integer(8) & 0xffff_ffff, sinceLastSent: rows.integer(9) & 0xffff_ffff))
    }
    let times = try connection.prepare(
      """
      SELECT peer, at_ns FROM rtcp WHERE type IN ('sr', 'rr') AND direction = 'in'
      ORDER BY row LIMIT \(Self.most)
      """)
    while try times.step() { reportTimes[times.integer(0), default: []].append(times.integer(1)) }
  }

  private mutating func readSenderReports(_ connection: borrowing SQLiteConnection)
    throws(SQLiteError)
  {
    let rows = try connection.prepare(
      """
      SELECT peer, at_ns, direction, ssrc & 0xffffffff, fields ->> '$.packets',
        fields ->> '$.octets', fields ->> '$.rtp_time', fields ->> '$.unix_us'
      FROM rtcp WHERE type = 'sr' ORDER BY row LIMIT \(Self.most)
      """)
    while try rows.step() {
      guard let direction = WireDirection(rawValue: rows.text(2) ?? "") else { continue }
      senderReports.append(
        SenderReport(
          peer: rows.integer(0), at: rows.integer(1), direction: direction, ssrc: rows.integer(3),
          packets: rows.integer(4), octets: rows.integer(5), rtpTime: rows.integer(6),
          unixMicroseconds: rows.integer(7)))
    }
  }

  private struct TrackName: Hashable {
    var peer: Int64
    var track: Int64
    var isInbound: Bool
  }

  mutating func readMedia(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    var places: [TrackName: Int] = [:]
    try readFrames(connection, &places)
    try readLevels(connection, &places)
  }

  private mutating func place(
    _ name: TrackName, _ kind: String, _ codec: String, _ places: inout [TrackName: Int]
  ) -> Int {
    if let place = places[name] { return place }
    places[name] = tracks.count
    tracks.append(
      Track(
        peer: name.peer, track: name.track, direction: name.isInbound ? .inbound : .outbound,
        kind: kind, codec: codec))
    return tracks.count - 1
  }

  private struct FrameFormat {
    var place: Int
    var isVideo: Bool
    var isKey: Bool
    var isGood: Bool
    /// The block's outcome; for audio only.
    var block: VoiceFacts.Outcome
    var source: Int64
    var width: Int32
    var height: Int32
  }

  private mutating func readFrames(
    _ connection: borrowing SQLiteConnection, _ places: inout [TrackName: Int]
  ) throws(SQLiteError) {
    var formats: [Int64: FrameFormat] = [:]
    let kinds = try connection.prepare(
      """
      SELECT format, peer, track, direction, kind, codec, outcome, key, coalesce(width, 0),
        coalesce(height, 0), ssrc & 0xffffffff
      FROM format WHERE kind IN ('audio', 'video') ORDER BY format LIMIT \(Self.most)
      """)
    while try kinds.step() {
      let kind = kinds.text(4) ?? ""
      let name = TrackName(
        peer: kinds.integer(1), track: kinds.integer(2), isInbound: kinds.text(3) == "in")
      let place = place(name, kind, kinds.text(5) ?? "", &places)
      let source = kinds.integer(10)
      if source != 0, !tracks[place].sources.contains(source) {
        tracks[place].sources.append(source)
      }
      formats[kinds.integer(0)] = FrameFormat(
        place: place, isVideo: kind == "video", isKey: kinds.integer(7) != 0,
        isGood: ["decoded", "not decoded", "encoded", "passed on"].contains(kinds.text(6) ?? ""),
        block: VoiceFacts.Outcome(kinds.text(6) ?? ""), source: source,
        width: Int32(truncatingIfNeeded: kinds.integer(8)),
        height: Int32(truncatingIfNeeded: kinds.integer(9)))
    }
    let rows = try connection.prepare(
      """
      SELECT format, at_ns, rtp_time & 0xffffffff, size, quantiser, row, audio_level, energy
      FROM frame_store
      WHERE \(part) ORDER BY row
      """)
    while try rows.step() {
      guard let format = formats[rows.integer(0)] else { continue }
      let at = rows.integer(1)
      guard format.isVideo else {
        tracks[format.place].count(format.block, at)
        voices.add(
          VoiceFacts.Block(
            row: rows.integer(5), at: at, rtpTime: rows.integer(2), source: format.source,
            outcome: format.block, level: rows.isNull(6) ? nil : rows.integer(6),
            isQuiet: rows.integer(7) == 0), format.place, &tracks[format.place])
        continue
      }
      if format.isKey, format.isGood { tracks[format.place].keys.append(at) }
      tracks[format.place].pictures.append(
        Picture(
          row: rows.integer(5), at: at, rtpTime: rows.integer(2),
          size: Int32(truncatingIfNeeded: rows.integer(3)),
          width: format.width, height: format.height,
          quantiser: Int16(truncatingIfNeeded: rows.integer(4)), isKey: format.isKey,
          isGood: format.isGood))
    }
    for place in tracks.indices { voices.finish(place, &tracks[place]) }
  }

  private mutating func readLevels(
    _ connection: borrowing SQLiteConnection, _ places: inout [TrackName: Int]
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT peer, track, direction, at_ns, energy, samples, peak, sender_level, voice
      FROM level WHERE samples > 0 ORDER BY row LIMIT \(Self.most * 20)
      """)
    while try rows.step() {
      let name = TrackName(
        peer: rows.integer(0), track: rows.integer(1), isInbound: rows.text(2) == "in")
      let level = Level(
        at: rows.integer(3),
        rms: Float((Double(max(rows.integer(4), 0)) / Double(rows.integer(5))).squareRoot()),
        peak: Int32(truncatingIfNeeded: rows.integer(6)),
        senderDecibels: rows.isNull(7) ? nil : -Int32(truncatingIfNeeded: rows.integer(7) & 127),
        isVoice: rows.integer(8) != 0)
      tracks[place(name, "audio", "", &places)].levels.append(level)
    }
  }
}

extension CallFacts.Track {
  fileprivate mutating func count(_ outcome: VoiceFacts.Outcome, _ at: Int64) {
    let second = self.second(of: at)
    while voices.count <= second { voices.append(CallFacts.Voice()) }
    voices[second].blocks &+= 1
    switch outcome {
    case .concealed: voices[second].concealed &+= 1
    case .recovered: voices[second].recovered &+= 1
    case .decoded, .untouched: break
    }
  }

  /// Returns a time's index in `voices`.
  func second(of at: Int64) -> Int {
    Int(min(max(at / 1_000_000_000, 0), Int64(CallFacts.most)))
  }
}

// MARK: - Agreements

// Negotiated media, and periods in which it was missing.

extension CallFacts {
  /// A period of two seconds or more without media in a direction for which media was negotiated.
  struct SilentWay {
    var peer: Int64
    var direction: WireDirection
    var from: Int64
    var to: Int64
    /// Whether the silence covers the entire time for which media was negotiated and the peer was
    /// connected.
    var isWhole: Bool
    /// The number of RTP packets in the other direction during this period.
    var others: Int64
    var length: Int64 { to -| from }
  }

  mutating func readAgreements(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      WITH
      \(FindingRule.agreed)
      SELECT peer, direction, kind, from_ns, to_ns FROM agreed
      ORDER BY peer, from_ns, direction, kind
      LIMIT \(Self.most)
      """)
    while try rows.step() {
      guard let direction = WireDirection(rawValue: rows.text(1) ?? "") else { continue }
      agreements.append(
        Agreement(
          peer: rows.integer(0), direction: direction, kind: rows.text(2) ?? "",
          from: rows.integer(3), to: rows.integer(4)))
    }
  }

  /// Returns whether a kind of media was negotiated at a time and for the next two seconds.
  func isAgreed(_ peer: Int64, _ direction: WireDirection, _ kind: String, at: Int64) -> Bool {
    agreements.contains {
      $0.peer == peer && $0.direction == direction && $0.kind == kind && $0.from <= at
        && $0.to >= at &+ 2_000_000_000
    }
  }

  /// Returns the period in which a peer was connected, or nil if it never was; for an observed peer
  /// without states of its connection, returns the period of its RTP and RTCP packets.
  func live(_ peer: Peer) -> ClosedRange<Int64>? {
    if let live = peer.live,
      states.contains(where: {
        $0.peer == peer.number && $0.machine == "connection"
      })
    {
      return live
    }
    guard peer.isObserved else { return nil }
    let own = ways.filter { $0.peer == peer.number && $0.first != nil }
    guard let first = own.compactMap(\.first).min(), let last = own.map(\.last).max() else {
      return nil
    }
    return first...max(first, last)
  }

  /// Finds periods in which no media passed in a direction for which it was negotiated.
  func silentWays() -> [SilentWay] {
    var found: [SilentWay] = []
    for peer in peers {
      guard let live = live(peer) else { continue }
      let isSeen = !states.contains { $0.peer == peer.number && $0.machine == "connection" }
      for agreement in agreements where agreement.peer == peer.number && agreement.kind.isEmpty {
        // In an observed call both ends have the same packets, so each direction is judged at its
        // receiver alone.
        guard agreement.direction == .inbound || !isSeen else { continue }
        let (from, to) = (
          max(agreement.from, live.lowerBound), min(agreement.to, live.upperBound)
        )
        guard from < to else { continue }
        found += silentWays(peer.number, agreement.direction, from...to)
      }
    }
    return found
  }

  private func silentWays(
    _ peer: Int64, _ direction: WireDirection, _ span: ClosedRange<Int64>
  ) -> [SilentWay] {
    let opposite = way(peer, direction == .inbound ? .outbound : .inbound)
    // A direction without any packet is not in `ways`.
    let quiet = way(peer, direction)?.quiet ?? [Quiet(from: .min, to: .max)]
    return quiet.compactMap { quiet in
      let (from, to) = (max(quiet.from, span.lowerBound), min(quiet.to, span.upperBound))
      guard to > from, to -| from >= Self.leastQuiet else { return nil }
      return SilentWay(
        peer: peer, direction: direction, from: from, to: to,
        isWhole: quiet.from < span.lowerBound && quiet.to > span.upperBound,
        others: opposite?.count(from: from, to: to, interval: intervalNanoseconds) ?? 0)
    }
  }

  /// Returns the number of reports on sent streams that arrived in a period, and how many packets
  /// were lost since the reports before the period.
  func reports(to peer: Int64, from: Int64, to: Int64) -> (count: Int, lost: Int64) {
    var former: [Int64: Int64] = [:]
    var (count, lost): (Int, Int64) = (0, 0)
    for report in reports where report.peer == peer && report.direction == .inbound {
      guard report.at <= to else { break }
      if report.at > from {
        count +|= 1
        lost &+= report.lost &- (former[report.ssrc] ?? report.lost)
      }
      former[report.ssrc] = report.lost
    }
    return (count, lost)
  }
}

// MARK: - KnownLosses

/// The loss of each stream, as in the `stream` view.
///
/// Losses of received streams are counted from their packets, and losses of sent streams come from
/// the receiver's reports. If a connection has no packets, its losses come from its statistics.
struct KnownLosses {
  struct Loss {
    var lost: Int64?
    var share: Double?
    /// The number of packets that arrived but that SRTP refused; statistics count them as lost.
    var refused: Int64 = 0
  }

  private struct Source: Hashable {
    var peer: Int64
    var direction: WireDirection
    var ssrc: Int64
  }

  private var losses: [Source: Loss] = [:]

  init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      "SELECT peer, direction, ssrc, packets_lost, loss_share, packets_refused FROM stream")
    while try rows.step() {
      guard let direction = WireDirection(rawValue: rows.text(1) ?? "") else { continue }
      losses[Source(peer: rows.integer(0), direction: direction, ssrc: rows.integer(2))] = Loss(
        lost: rows.isNull(3) ? nil : rows.integer(3), share: rows.isNull(4) ? nil : rows.real(4),
        refused: rows.integer(5))
    }
    try readReported(connection)
  }

  /// Reads what another stack's statistics report about the streams that it sent.
  private mutating func readReported(
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT stat.peer, members ->> '$.ssrc', members ->> '$.packetsLost',
        members ->> '$.packetsReceived'
      FROM stat JOIN peer ON peer.peer = stat.peer AND peer.role = 'reported'
      WHERE type = 'remote-inbound-rtp' AND members ->> '$.packetsLost' IS NOT NULL
      ORDER BY stat.row LIMIT \(CallFacts.most)
      """)
    while try rows.step() {
      let source = Source(
        peer: rows.integer(0), direction: .outbound, ssrc: rows.integer(1) & 0xffff_ffff)
      let lost = max(0, rows.integer(2))
      losses[source] = Loss(
        lost: lost,
        share: rows.isNull(3) ? nil : Double(lost) / Double(max(1, rows.integer(3) +| lost)))
    }
  }

  /// Returns a stream's loss; without reports, the loss of a sent stream is unknown.
  func loss(of stream: CallFacts.Stream) -> Loss {
    let source = Source(peer: stream.peer, direction: stream.direction, ssrc: stream.ssrc)
    var loss = losses[source] ?? Loss()
    guard stream.counted != nil else { return loss }
    if stream.direction == .inbound {
      let share = Double(stream.lost) / Double(max(1, stream.expected))
      return Loss(lost: stream.lost, share: share)
    }
    // If the receiver's packet count is unknown, the share is relative to all sent packets.
    loss.share =
      loss.share ?? loss.lost.map { Double($0) / Double(max(1, stream.packets, $0)) }
    return loss
  }
}
