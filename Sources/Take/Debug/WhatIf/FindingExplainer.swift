package import Media
import Peer
package import Queries
import Replay
package import Tape
package import Wire

/// Reruns a session with changes to explain what would have avoided each finding's freezes and
/// concealment.
///
/// The loop is open: the remote side sends what it sent in the recording. Such a run shows how a
/// buffer or a packet affects the receiver, but not how the sender would have reacted.
package struct FindingExplainer {
  private let path: String
  private let codecs: () -> any CodecFactory
  private let findings: [Finding]

  /// The seconds of freezes and concealment in one run, at the places of findings; every run counts
  /// the same video frames and audio.
  private struct Harm {
    var frozenSeconds = 0.0
    var concealedSeconds = 0.0
    /// The number of times that the video stopped.
    var stops = 0

    var isNone: Bool { Self.isNone(frozenSeconds) && Self.isNone(concealedSeconds) }

    static func isNone(_ seconds: Double) -> Bool { seconds < 0.05 }

    /// Describes a change, as in `frozen 0.6 s -> none, concealed 0.5 s -> 0.2 s`.
    func change(to after: Harm) -> String {
      [
        ("frozen", frozenSeconds, after.frozenSeconds),
        ("concealed", concealedSeconds, after.concealedSeconds),
      ].filter { !Self.isNone($0.1) || !Self.isNone($0.2) }
        .map { "\($0.0) \(Self.words($0.1)) -> \(Self.words($0.2))" }.joined(separator: ", ")
    }

    private static func words(_ seconds: Double) -> String {
      isNone(seconds) ? "none" : "\(decimal(seconds, 1)) s"
    }
  }

  /// Packets lost in one direction.
  private struct Lost {
    var from: UInt32
    var to: UInt32
    /// The direction, as in `from caller to callee`.
    var way: String
    var packets: [FreeRun.LostPacket] = []
    /// The numbers of audio, video and retransmitted packets that a receiver counts as lost.
    var audio = 0
    var video = 0
    var others = 0

    /// A phrase such as `58 packets that were lost from caller to callee (32 of audio, 21 of video
    /// and 5 retransmissions)`.
    var words: String {
      var parts = [(audio, "of audio"), (video, "of video")].filter { $0.0 > 0 }
        .map { "\($0.0) \($0.1)" }
      if others > 0 { parts.append("\(counted(others, "retransmission"))") }
      let list =
        parts.count > 1
        ? parts.dropLast().joined(separator: ", ") + " and " + (parts.last ?? "") : parts.joined()
      let count = audio + video + others
      return "\(counted(count, "packet")) that \(count == 1 ? "was" : "were") lost \(way)"
        + (list.isEmpty ? "" : " (\(list))")
    }
  }

  /// A place with a freeze or concealment.
  private struct Place {
    var peer: UInt32
    var isVideo: Bool
    var track: UInt32
    var from: Int64
    var to: Int64
  }

  /// The buffer sizes to try, in milliseconds.
  private static let buffers: [UInt32] = [100, 200, 300, 500, 1000]
  private static let packetMaximum = 50_000

  package init(path: String, findings: [Finding], codecs: @escaping () -> any CodecFactory) {
    self.path = path
    self.findings = findings
    self.codecs = codecs
  }

  /// Returns explanations, or reasons why there are none, keyed by the index of their finding.
  ///
  /// - Parameter progress: called with a description of the current run and its time.
  package func explain(progress: (String, Instant) -> Void) throws(TapeError) -> [Int: String] {
    let wanted = findings.enumerated().map { (index: $0.offset, places: places(of: $0.element)) }
      .filter { !$0.places.isEmpty }
    let unseen = try findingsOfOthers()
    guard !wanted.isEmpty else { return unseen }
    let recorded = try run(FreeRun.Changes(), "as recorded", progress)
    guard !recorded.isEmpty else {
      return Dictionary(
        uniqueKeysWithValues: wanted.map {
          ($0.index, "not explained: this end was only observed, so its stack cannot be run again")
        }
      ).merging(unseen) { one, _ in one }
    }
    let lost = try lostPackets()
    let all = lost.flatMap(\.packets).sorted { $0.at < $1.at }
    let delivered =
      all.isEmpty
      ? nil
      : try run(FreeRun.Changes(delivering: all), "with the lost packets delivered", progress)
    var buffered: [(milliseconds: UInt32, outcomes: [PeerOutcome])] = []
    for length in Self.buffers {
      var changes = FreeRun.Changes()
      changes.configure = {
        $0.jitterBufferMinimum = max(length, $0.jitterBufferMinimum ?? 0)
      }
      buffered.append((length, try run(changes, "with \(length) ms of buffer", progress)))
      let isEnough = wanted.allSatisfy {
        harm($0.places, buffered[buffered.count - 1].outcomes, recorded).isNone
      }
      if isEnough { break }
    }
    return Dictionary(
      uniqueKeysWithValues: wanted.map { one in
        let receivers = Set(one.places.map(\.peer))
        return (
          one.index,
          words(
            findings[one.index], one.places, recorded, delivered,
            lost.filter { receivers.contains($0.to) }, buffered)
        )
      }
    ).merging(unseen) { one, _ in one }
  }

  /// Returns why findings without freezes and concealment are not explained, by the index of the
  /// finding.
  private func findingsOfOthers() throws(TapeError) -> [Int: String] {
    var texts: [Int: String] = [:]
    let seen = try sendersWithReceivers()
    for (index, finding) in findings.enumerated() where places(of: finding).isEmpty {
      let isOfOther =
        finding.detections.allSatisfy {
          $0.direction == .outbound && $0.kind != "data" && !seen.contains($0.peer)
        } && [.stream, .flow].contains(finding.scope)
      texts[index] =
        "not explained: "
        + (isOfOther
          ? "what the remote peer displayed and played is not in the take"
          : "it froze no picture and concealed no audio, and a replay with other packets and "
            + "buffers shows only those")
    }
    return texts
  }

  private typealias Run = (milliseconds: UInt32, outcomes: [PeerOutcome])

  private func words(
    _ finding: Finding, _ places: [Place], _ recorded: [PeerOutcome], _ delivered: [PeerOutcome]?,
    _ lost: [Lost],
    _ buffered: [Run]
  ) -> String {
    let before = harm(places, recorded, recorded)
    guard !before.isNone else {
      return "not explained: run again from its inputs, the session shows no freeze and no "
        + "concealment, because they depended on timing"
    }
    var parts: [String] = []
    let isRefused = finding.id == "srtp-refused"
    if isRefused {
      parts.append(
        "the packets arrived but SRTP rejected them, so their contents cannot be replayed")
    } else if let delivered, !lost.isEmpty {
      parts.append(
        "with the \(lost.map(\.words).joined(separator: " and the ")) delivered: "
          + before.change(to: harm(places, delivered, recorded)))
    } else if delivered == nil {
      parts.append(
        "which packets were lost is unknown, because the take does not have the remote end's "
          + "packets")
    }
    let runs = buffered.map { ($0.milliseconds, harm(places, $0.outcomes, recorded)) }
    if !Harm.isNone(before.frozenSeconds) {
      let gone =
        before.stops == 1
        ? "the freeze is gone"
        : "\(before.stops == 2 ? "both" : "all \(before.stops)") freezes are gone"
      parts.append(buffer(gone, before, runs, \.frozenSeconds, isRefused))
    }
    if !Harm.isNone(before.concealedSeconds) {
      parts.append(
        buffer("no audio is concealed", before, runs, \.concealedSeconds, isRefused))
    }
    return parts.joined(separator: "; ") + " (open loop: the remote peer's packets are as recorded)"
  }

  /// Describes how longer jitter buffers change one kind of harm: names the smallest buffer that
  /// avoids the harm, or else the buffer that reduces it most.
  private func buffer(
    _ gone: String, _ before: Harm, _ runs: [(milliseconds: UInt32, harm: Harm)],
    _ kind: KeyPath<Harm, Double>, _ isRefused: Bool
  ) -> String {
    func change(_ run: (milliseconds: UInt32, harm: Harm)) -> String {
      var (former, latter) = (Harm(), Harm())
      let isFrozen = kind == \.frozenSeconds
      (former.frozenSeconds, former.concealedSeconds) =
        isFrozen ? (before.frozenSeconds, 0) : (0, before.concealedSeconds)
      (latter.frozenSeconds, latter.concealedSeconds) =
        isFrozen ? (run.harm.frozenSeconds, 0) : (0, run.harm.concealedSeconds)
      return former.change(to: latter)
    }
    let tried = runs.map { "\($0.milliseconds)" }.joined(separator: ", ")
    if let enough = runs.first(where: { Harm.isNone($0.harm[keyPath: kind]) }) {
      return "\(gone) with a jitter buffer of \(enough.milliseconds) ms, the smallest sufficient "
        + "one of those tried (\(tried) ms): \(change(enough))"
    }
    let best = runs.min { $0.harm[keyPath: kind] < $1.harm[keyPath: kind] }
    guard let best, best.harm[keyPath: kind] < 0.8 * before[keyPath: kind] else {
      return "no jitter buffer of up to \(Self.buffers.last ?? 0) ms helps against "
        + "\(kind == \.frozenSeconds ? "the freeze" : "the concealment")"
        + (isRefused ? "" : ": the missing packets arrived too late or never")
    }
    return "no jitter buffer of up to \(Self.buffers.last ?? 0) ms is enough; with "
      + "\(best.milliseconds) ms: \(change(best))"
  }

  // MARK: Places

  private func places(of finding: Finding) -> [Place] {
    var places = finding.symptoms.flatMap { self.places(of: $0) }
    guard TakeFindings.explained.contains(finding.id) else { return places }
    for one in finding.detections {
      places.append(
        Place(
          peer: UInt32(truncatingIfNeeded: one.peer), isVideo: one.kind == "video",
          track: UInt32(truncatingIfNeeded: one.track ?? 0), from: one.fromNanoseconds,
          to: one.toNanoseconds))
    }
    return places
  }

  /// Returns the total freezes and concealment of a run at the given places of the recorded
  /// session.
  ///
  /// Pictures and audio are matched by RTP timestamp, because a longer buffer delays them.
  private func harm(_ places: [Place], _ outcomes: [PeerOutcome], _ recorded: [PeerOutcome])
    -> Harm
  {
    var harm = Harm()
    var counted: [UInt32: Set<Int>] = [:]
    for place in places {
      guard let outcome = outcomes.first(where: { $0.peer == place.peer }),
        let original = recorded.first(where: { $0.peer == place.peer })
      else { continue }
      let found =
        place.isVideo ? stops(at: place, outcome, original) : blocks(at: place, outcome, original)
      for index in found
      where counted[place.peer &* 2 &+ (place.isVideo ? 1 : 0), default: []].insert(index).inserted
      {
        if place.isVideo {
          harm.frozenSeconds += outcome.stops[index].seconds
          harm.stops += 1
        } else {
          harm.concealedSeconds += Self.blockSeconds
        }
      }
    }
    return harm
  }

  private static let blockSeconds = 0.02

  /// Returns the indices of the run's stops that affect the same pictures as the recorded stops at
  /// a place.
  private func stops(at place: Place, _ outcome: PeerOutcome, _ original: PeerOutcome) -> [Int] {
    let spans = original.stops.filter {
      $0.track == place.track && $0.fromNanoseconds < place.to && $0.toNanoseconds > place.from
    }
    return outcome.stops.indices.filter { index in
      let stop = outcome.stops[index]
      guard stop.track == place.track, stop.seconds >= 0.15 else { return false }
      return spans.contains { span in
        Self.isBefore(stop.before, span.after) && Self.isBefore(span.before, stop.after)
      }
    }
  }

  /// Returns the indices of the run's concealed blocks that belong to the same audio as the
  /// recorded concealed blocks at a place.
  private func blocks(at place: Place, _ outcome: PeerOutcome, _ original: PeerOutcome) -> [Int] {
    let own = original.concealed.filter {
      $0.track == place.track && $0.at >= place.from && $0.at < place.to
    }
    guard let first = own.first?.rtpTime, let last = own.last?.rtpTime else { return [] }
    return outcome.concealed.indices.filter { index in
      let block = outcome.concealed[index]
      return block.track == place.track && !Self.isBefore(block.rtpTime, first)
        && !Self.isBefore(last, block.rtpTime)
    }
  }

  /// Returns whether a timestamp is before another; true if `other` is nil.
  private static func isBefore(_ one: UInt32, _ other: UInt32?) -> Bool {
    other.map { Int32(bitPattern: $0 &- one) > 0 } ?? true
  }

  /// Returns the peers for which the take has both sent packets and their arrival at another peer.
  private func sendersWithReceivers() throws(TapeError) -> Set<Int64> {
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      var found: Set<Int64> = []
      let rows = try connection.prepare(
        "SELECT DISTINCT from_peer FROM one_way_delay WHERE delay_ms IS NOT NULL")
      while try rows.step() { found.insert(rows.integer(0)) }
      return found
    } catch {
      throw TapeError(path: path, error)
    }
  }

  // MARK: Runs

  private func run(
    _ changes: FreeRun.Changes, _ what: String, _ progress: (String, Instant) -> Void
  ) throws(TapeError) -> [PeerOutcome] {
    try FreeRun(path: path, changes: changes, codecs: codecs).run { progress(what, $0) }
  }

  /// Returns the RTP packets that one peer of the take sent and another did not receive, with their
  /// expected arrival times.
  private func lostPackets() throws(TapeError) -> [Lost] {
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      var found: [Lost] = []
      let ways = try connection.prepare(
        """
        SELECT from_peer, to_peer, CAST(avg(delay_ms) * 1e6 AS INTEGER),
          (SELECT label FROM peer WHERE peer = from_peer),
          (SELECT label FROM peer WHERE peer = to_peer) FROM one_way_delay
        WHERE delay_ms IS NOT NULL GROUP BY from_peer, to_peer HAVING count(*) >= 20
        """)
      while try ways.step() {
        let (from, to, delay) = ways.values(Int64.self, Int64.self, Int64.self)
        func name(_ column: Int, _ peer: Int64) -> String {
          ways.text(column).flatMap { $0.isEmpty ? nil : $0 } ?? "peer \(peer)"
        }
        var lost = Lost(
          from: UInt32(truncatingIfNeeded: from), to: UInt32(truncatingIfNeeded: to),
          way: "from \(name(3, from)) to \(name(4, to))")
        try readLost(connection, &lost, delay)
        if !lost.packets.isEmpty { found.append(lost) }
      }
      return found
    } catch {
      throw TapeError(path: path, error)
    }
  }

  private func readLost(
    _ connection: borrowing SQLiteConnection, _ lost: inout Lost, _ delay: Int64
  ) throws(SQLiteError) {
    // Uses the receiver's path with the most packets.
    let paths = try connection.prepare(
      """
      SELECT local, remote FROM path JOIN packet_store USING (path)
      WHERE peer = \(lost.to) AND direction = 'in' AND marker_type IS NOT NULL
      GROUP BY path ORDER BY count(*) DESC LIMIT 1
      """)
    guard try paths.step(), let local = SocketAddress(paths.text(0) ?? ""),
      let remote = SocketAddress(paths.text(1) ?? "")
    else { return }
    let rows = try connection.prepare(
      """
      WITH
        sent AS MATERIALIZED (
          SELECT step, ssrc, sequence, delay_ms FROM one_way_delay WHERE from_peer = \(lost.from)
        ),
        -- Packets sent after the last one that arrived may be under way at the end, and receivers
        -- do not count those lost before the first one that arrived.
        arrived AS (
          SELECT ssrc, min(step) AS first, max(step) AS last
          FROM sent WHERE delay_ms IS NOT NULL GROUP BY ssrc
        ),
        lost AS (
          SELECT sent.step AS step, sent.ssrc AS ssrc, sent.sequence AS sequence,
            coalesce(sent.step > first, 1) AS is_counted
          FROM sent LEFT JOIN arrived USING (ssrc)
          WHERE delay_ms IS NULL AND coalesce(sent.step < last, 1)
        ),
        kind AS (
          SELECT DISTINCT ssrc & 0xffffffff AS ssrc, kind FROM format
          WHERE peer = \(lost.from) AND direction = 'out'
        )
      SELECT packet.at_ns, packet.bytes, coalesce(kind.kind, ''), is_counted
      FROM lost JOIN packet ON packet.step = lost.step AND packet.ssrc = lost.ssrc
        AND packet.sequence = lost.sequence
      LEFT JOIN kind ON kind.ssrc = packet.ssrc
      WHERE packet.peer = \(lost.from) AND packet.direction = 'out' AND protocol = 'rtp'
      ORDER BY packet.row LIMIT \(Self.packetMaximum)
      """)
    while try rows.step() {
      if rows.integer(3) != 0 {
        switch rows.text(2) {
        case "audio": lost.audio += 1
        case "video": lost.video += 1
        default: lost.others += 1
        }
      }
      lost.packets.append(
        FreeRun.LostPacket(
          peer: lost.to, at: Instant(nanoseconds: rows.integer(0) &+ delay),
          datagram: Datagram(local: local, remote: remote, bytes: rows.bytes(1))))
    }
  }
}
