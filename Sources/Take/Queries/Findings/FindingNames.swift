import Tape

/// What people call peers, ways and streams.
package struct FindingNames: Sendable {
  private var labels: [Int64: String] = [:]
  private var others: [Int64: Int64] = [:]
  private let people: RoomPeople
  /// Transceivers that carry a screen, by what rooms say.
  private var screens: Set<String> = []
  private let streams: [CallFacts.Stream]

  init(_ connection: borrowing SQLiteConnection, _ facts: CallFacts) throws(SQLiteError) {
    people = try RoomPeople(connection)
    let shared = try connection.prepare(
      """
      SELECT DISTINCT peer || '/' || track FROM carriage
      WHERE extra_value LIKE '%screen%' LIMIT 1000
      """)
    while try shared.step() { screens.insert(shared.text(0) ?? "") }
    let count = facts.peers.count
    for peer in facts.peers {
      let isOne = !peer.label.isEmpty && facts.peers.count { $0.label == peer.label } == 1
      labels[peer.number] =
        isOne
        ? peer.label : peer.label.isEmpty ? "peer \(peer.number)" : "\(peer.label) \(peer.number)"
      others[peer.number] = peer.other
    }
    if count == 1, let only = facts.peers.first, only.label.isEmpty {
      labels[only.number] = "this side"
    }
    // Without what only matters while packets are counted.
    streams = facts.streams.map {
      var stream = $0
      (stream.buckets, stream.gaps, stream.bursts) = ([], [], [])
      return stream
    }
  }

  /// The name of a peer of the take.
  package func end(_ peer: Int64) -> String { labels[peer] ?? "peer \(peer)" }

  /// The name of the other side of a peer.
  package func otherEnd(of peer: Int64) -> String { others[peer].map(end) ?? "the other side" }

  /// `caller to callee`, by what a peer receives or sends.
  func way(_ peer: Int64, _ direction: WireDirection) -> String {
    direction == .inbound
      ? "\(otherEnd(of: peer)) to \(end(peer))" : "\(end(peer)) to \(otherEnd(of: peer))"
  }

  /// `caller's video to callee`.
  package func media(of detection: Detection) -> String {
    guard let direction = detection.direction else { return end(detection.peer) }
    let receiver = direction == .inbound ? end(detection.peer) : otherEnd(of: detection.peer)
    return "\(stream(of: detection)) to \(receiver)"
  }

  /// `caller's video`.
  package func stream(of detection: Detection) -> String {
    guard let direction = detection.direction else { return end(detection.peer) }
    let stream = streams.first {
      $0.peer == detection.peer && $0.direction == direction
        && ($0.ssrc == detection.ssrc || detection.ssrc == nil && $0.track == detection.track)
    }
    let kind = detection.kind.isEmpty ? stream?.kind ?? "" : detection.kind
    let track = detection.track ?? stream?.track
    let person = track.flatMap {
      people.name(peer: detection.peer, track: $0, direction: direction.rawValue)
    }
    let sender =
      person ?? (direction == .inbound ? otherEnd(of: detection.peer) : end(detection.peer))
    let isScreen =
      kind == "video" && screens.contains("\(detection.peer)/\(track ?? -1)")
    return "\(sender)'s \(kind.isEmpty ? "media" : isScreen ? "screen" : kind)"
  }

  func subject(of finding: Finding, _ scope: FindingRule.Scope, _ ends: FindingEnds) -> String {
    guard let worst = finding.worst else { return "" }
    switch scope {
    case .call: return ""
    case .end: return "at \(end(worst.peer))"
    case .connection:
      return others[worst.peer].map {
        "between \(end(min(worst.peer, $0))) and \(end(max(worst.peer, $0)))"
      }
        ?? "at \(end(worst.peer))"
    case .flow:
      return worst.direction.map { "from \(way(worst.peer, $0))" } ?? "at \(end(worst.peer))"
    case .stream: return media(of: worst)
    }
  }
}
