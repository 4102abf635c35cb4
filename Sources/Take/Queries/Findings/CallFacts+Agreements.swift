import Tape
import Wire

// What was agreed on, and the times without media that it makes wrong.

extension CallFacts {
  /// A time of two seconds or more in which no media passed one way that should have.
  struct SilentWay {
    var peer: Int64
    var direction: WireDirection
    var from: Int64
    var to: Int64
    /// Whether it has no packet before or after it in the time that was agreed on.
    var isWhole: Bool
    /// How many packets went the other way.
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

  /// Whether media of a kind was agreed on at a time, and two seconds longer.
  func isAgreed(_ peer: Int64, _ direction: WireDirection, _ kind: String, at: Int64) -> Bool {
    agreements.contains {
      $0.peer == peer && $0.direction == direction && $0.kind == kind && $0.from <= at
        && $0.to >= at &+ 2_000_000_000
    }
  }

  /// When a peer was connected: that of one that was only seen shows in its packets.
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

  /// Where no media passed one way.
  func silentWays() -> [SilentWay] {
    var found: [SilentWay] = []
    for peer in peers {
      guard let live = live(peer) else { continue }
      let isSeen = !states.contains { $0.peer == peer.number && $0.machine == "connection" }
      for agreement in agreements where agreement.peer == peer.number && agreement.kind.isEmpty {
        // Each way is judged at its receiver; in an observed call both ends have the same packets.
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
    // A way over which nothing passed at all has no row.
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

  /// What reports say of own streams in a time: how many there were, and how much more was lost.
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
