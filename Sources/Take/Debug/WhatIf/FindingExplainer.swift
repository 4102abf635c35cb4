package import Media
import Peer
package import Queries
import Replay
package import Tape
package import Wire

/// Reruns a session with changes to explain what would have avoided each finding's freezes and
/// concealment.
///
/// The loop is open: the remote side sends what it sent in the recording. That shows how a buffer
/// or a packet affects the receiver, but not what the sender would have done, so explanations do
/// not cover that.
package struct FindingExplainer {
  private let path: String
  private let codecs: () -> any CodecFactory
  private let findings: [Finding]

  /// The harm at one place in one run.
  private struct Harm {
    var frozenSeconds = 0.0
    var concealedSeconds = 0.0

    var isNone: Bool { frozenSeconds < 0.05 && concealedSeconds < 0.05 }

    var words: String {
      let parts = [(frozenSeconds, "frozen"), (concealedSeconds, "concealed")]
        .filter { $0.0 >= 0.05 }
        .map { "\(decimal($0.0, 1)) s \($0.1)" }
      return parts.isEmpty ? "nothing frozen or concealed" : parts.joined(separator: ", ")
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

  /// Returns explanations by finding index, where there is one.
  ///
  /// - Parameter progress: called with a description of the current run and its time.
  package func explain(progress: (String, Instant) -> Void) throws(TapeError) -> [Int: String] {
    let wanted = findings.enumerated().map { (index: $0.offset, places: places(of: $0.element)) }
      .filter { !$0.places.isEmpty }
    let unseen = findingsOfOthers()
    guard !wanted.isEmpty else { return unseen }
    let recorded = try run(FreeRun.Changes(), "as recorded", progress)
    guard !recorded.isEmpty else {
      return Dictionary(
        uniqueKeysWithValues: wanted.map {
          ($0.index, "not explained: this end was only seen, so nothing of it can be run otherwise")
        })
    }
    let lost = try lostPackets()
    let delivered =
      lost.isEmpty
      ? nil
      : try run(FreeRun.Changes(delivering: lost), "with the lost packets delivered", progress)
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
      uniqueKeysWithValues: wanted.map {
        ($0.index, words($0.places, recorded, delivered, lost.count, buffered))
      }
    ).merging(unseen) { one, _ in one }
  }

  /// Returns texts for findings about the remote side's media, which the take lacks.
  private func findingsOfOthers() -> [Int: String] {
    var texts: [Int: String] = [:]
    for (index, finding) in findings.enumerated()
    where finding.severity >= .medium && places(of: finding).isEmpty
      && finding.detections.allSatisfy({ $0.direction == .outbound && $0.kind != "data" })
      && [.stream, .flow].contains(finding.scope)
    {
      texts[index] = "not explained: what the other side saw and heard is not in the take"
    }
    return texts
  }

  private func words(
    _ places: [Place], _ recorded: [PeerOutcome], _ delivered: [PeerOutcome]?, _ lost: Int,
    _ buffered: [(milliseconds: UInt32, outcomes: [PeerOutcome])]
  ) -> String {
    let before = harm(places, recorded, recorded)
    guard !before.isNone else {
      return "not explained: run freely from its inputs, the session shows nothing frozen or "
        + "concealed, as what it waited for was decided by time"
    }
    var text: String
    if let delivered {
      let after = harm(places, delivered, recorded)
      text =
        after.isNone
        ? "with the \(lost) lost packets delivered, nothing is frozen or concealed"
        : "with the \(lost) lost packets delivered: \(after.words), instead of \(before.words)"
    } else {
      text = "which packets were lost is not known, as the take does not have the other end's"
    }
    if let enough = buffered.first(where: { harm(places, $0.outcomes, recorded).isNone }) {
      text += "; \(enough.milliseconds) ms of buffer would have been enough"
    } else if let best = buffered.min(by: {
      total(harm(places, $0.outcomes, recorded)) < total(harm(places, $1.outcomes, recorded))
    }), total(harm(places, best.outcomes, recorded)) < 0.8 * total(before) {
      text +=
        "; \(best.milliseconds) ms of buffer: \(harm(places, best.outcomes, recorded).words)"
    } else {
      text += "; no buffer of up to a second helps: what is missing never came, or came too late"
    }
    return text + " (open loop: the other side sends what it sent)"
  }

  private func total(_ harm: Harm) -> Double { harm.frozenSeconds + harm.concealedSeconds }

  // MARK: Places

  private func places(of finding: Finding) -> [Place] {
    var places = finding.symptoms.flatMap { self.places(of: $0) }
    guard ["freeze", "video-stopped", "concealed-audio"].contains(finding.id) else {
      return places
    }
    for one in finding.detections {
      places.append(
        Place(
          peer: UInt32(truncatingIfNeeded: one.peer), isVideo: one.kind == "video",
          track: UInt32(truncatingIfNeeded: one.track ?? 0), from: one.fromNanoseconds,
          to: one.toNanoseconds))
    }
    return places
  }

  /// Returns the duration of freezes and concealment at the places: freezes from a second before to
  /// a second after; concealment over the entire session, since its counter is cumulative.
  private func harm(_ places: [Place], _ outcomes: [PeerOutcome], _ recorded: [PeerOutcome])
    -> Harm
  {
    var harm = Harm()
    var counted: [PeerOutcome.Freeze] = []
    var peers: [UInt32] = []
    for place in places {
      guard let outcome = outcomes.first(where: { $0.peer == place.peer }) else { continue }
      if place.isVideo {
        for freeze in outcome.freezes
        where freeze.track == place.track && freeze.toNanoseconds >= place.from - 1_000_000_000
          && freeze.fromNanoseconds <= place.to + 1_000_000_000 && !counted.contains(freeze)
        {
          counted.append(freeze)
          harm.frozenSeconds += freeze.seconds
        }
      } else if !peers.contains(place.peer) {
        peers.append(place.peer)
        harm.concealedSeconds +=
          outcome.measures.filter {
            $0.name.hasSuffix(" audio concealed ms")
          }.reduce(0) { $0 + $1.value } / 1e3
      }
    }
    return harm
  }

  // MARK: Runs

  private func run(
    _ changes: FreeRun.Changes, _ what: String, _ progress: (String, Instant) -> Void
  ) throws(TapeError) -> [PeerOutcome] {
    try FreeRun(path: path, changes: changes, codecs: codecs).run { progress(what, $0) }
  }

  /// Returns media packets that one peer of the take sent and another did not receive, with their
  /// expected arrival times.
  private func lostPackets() throws(TapeError) -> [FreeRun.LostPacket] {
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      var found: [FreeRun.LostPacket] = []
      let ways = try connection.prepare(
        """
        SELECT from_peer, to_peer, CAST(avg(delay_ms) * 1e6 AS INTEGER) FROM one_way_delay
        WHERE delay_ms IS NOT NULL GROUP BY from_peer, to_peer HAVING count(*) >= 20
        """)
      while try ways.step() {
        let (from, to, delay) = ways.values(Int64.self, Int64.self, Int64.self)
        found += try lostPackets(connection, from, to, delay)
      }
      return found.sorted { $0.at < $1.at }
    } catch {
      throw TapeError(path: path, error)
    }
  }

  private func lostPackets(
    _ connection: borrowing SQLiteConnection, _ from: Int64, _ to: Int64, _ delay: Int64
  ) throws(SQLiteError) -> [FreeRun.LostPacket] {
    // The path with the most packets.
    let paths = try connection.prepare(
      """
      SELECT local, remote FROM path JOIN packet_store USING (path)
      WHERE peer = \(to) AND direction = 'in' AND marker_type IS NOT NULL
      GROUP BY path ORDER BY count(*) DESC LIMIT 1
      """)
    guard try paths.step(), let local = SocketAddress(paths.text(0) ?? ""),
      let remote = SocketAddress(paths.text(1) ?? "")
    else { return [] }
    let rows = try connection.prepare(
      """
      SELECT packet.at_ns, packet.bytes FROM packet
      WHERE peer = \(from) AND direction = 'out' AND protocol = 'rtp'
        AND (step, ssrc, sequence) IN (
        SELECT step, ssrc, sequence FROM one_way_delay
        WHERE from_peer = \(from) AND delay_ms IS NULL)
      ORDER BY row LIMIT \(Self.packetMaximum)
      """)
    var found: [FreeRun.LostPacket] = []
    while try rows.step() {
      found.append(
        FreeRun.LostPacket(
          peer: UInt32(truncatingIfNeeded: to),
          at: Instant(nanoseconds: rows.integer(0) &+ delay),
          datagram: Datagram(local: local, remote: remote, bytes: rows.bytes(1))))
    }
    return found
  }
}
