import Tape
import Wire

/// The display names of peers, directions and streams.
package struct FindingNames: Sendable {
  private var labels: [Int64: String] = [:]
  private var others: [Int64: Int64] = [:]
  private let people: RoomPeople
  /// Transceivers that carry a screen, according to the room's data about their media.
  private var screens: Set<String> = []
  private let streams: [CallFacts.Stream]
  /// The distinctive parts of names that would otherwise be equal.
  private var apart = StreamsApart()

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
      others[peer.number] = peer.other ?? peer.end
    }
    if count == 1, let only = facts.peers.first, only.label.isEmpty {
      labels[only.number] = "the local participant"
    }
    // Omits long lists that names do not need.
    streams = facts.streams.map {
      var stream = $0
      (stream.buckets, stream.gaps, stream.bursts) = ([], [], [])
      return stream
    }
    apart = StreamsApart(facts) { plainName($0.peer, $0.direction, $0.kind, $0.track) }
  }

  /// Returns a peer's label, with its number if others have the same label; without a label, a name
  /// such as `peer 1`.
  package func end(_ peer: Int64) -> String { labels[peer] ?? "peer \(peer)" }

  /// Returns the label of the peer at the other end; `the remote peer` if the take does not have
  /// it.
  package func otherEnd(of peer: Int64) -> String { others[peer].map(end) ?? "the remote peer" }

  /// Returns the names of a direction's two ends, as in `caller to callee`.
  func way(_ peer: Int64, _ direction: WireDirection) -> String {
    direction == .inbound
      ? "\(otherEnd(of: peer)) to \(end(peer))" : "\(end(peer)) to \(otherEnd(of: peer))"
  }

  /// Returns a name such as `caller's video to callee`.
  package func media(of detection: Detection) -> String {
    guard let direction = detection.direction else { return end(detection.peer) }
    let receiver = direction == .inbound ? end(detection.peer) : otherEnd(of: detection.peer)
    return "\(stream(of: detection)) to \(receiver)"
  }

  /// Returns a name such as `caller's video`.
  package func stream(of detection: Detection) -> String {
    guard let direction = detection.direction else { return end(detection.peer) }
    let stream = streams.first {
      $0.peer == detection.peer && $0.direction == direction
        && ($0.ssrc == detection.ssrc || detection.ssrc == nil && $0.track == detection.track)
    }
    let kind = detection.kind.isEmpty ? stream?.kind ?? "" : detection.kind
    let track = detection.track ?? stream?.track
    let name = plainName(detection.peer, direction, kind, track)
    let (ordinal, part) = apart.words(
      detection.peer, direction, ssrc: detection.ssrc, track: track)
    return "\(name.sender)'s \(ordinal)\(name.what)\(part)"
  }

  /// Returns the name of a stream's sender and the stream's kind, as in `alice` and `screen`.
  private func plainName(
    _ peer: Int64, _ direction: WireDirection, _ kind: String, _ track: Int64?
  ) -> (sender: String, what: String) {
    let person = track.flatMap {
      people.name(peer: peer, track: $0, direction: direction.rawValue)
    }
    let sender = person ?? (direction == .inbound ? otherEnd(of: peer) : end(peer))
    let isScreen = kind == "video" && screens.contains("\(peer)/\(track ?? -1)")
    return (sender, kind.isEmpty ? "media" : isScreen ? "screen" : kind)
  }

  /// Rules that fire on the packets that a peer received but are about their sender.
  private static let aboutSender: Set = ["peer-starved", "wall-clock-jump", "address-changed"]

  func subject(of finding: Finding, _ scope: FindingRule.Scope, _ ends: FindingEnds) -> String {
    guard let worst = finding.worst else { return "" }
    if Self.aboutSender.contains(finding.id) { return "at \(otherEnd(of: worst.peer))" }
    switch scope {
    case .call: return ""
    case .end: return "at \(end(worst.peer))"
    case .connection:
      guard let other = others[worst.peer] else { return "at \(end(worst.peer))" }
      let peers = Set(finding.detections.map(\.peer))
      return "between \(end(min(worst.peer, other))) and \(end(max(worst.peer, other)))"
        + (peers.count == 1 ? ", seen at \(end(worst.peer))" : "")
    case .flow:
      return worst.direction.map { "from \(way(worst.peer, $0))" } ?? "at \(end(worst.peer))"
    case .stream: return media(of: worst)
    }
  }
}

extension FindingNames {
  /// Returns the name of a finding's side to display, such as `network` or an end's name.
  func side(of finding: Finding) -> String {
    guard let side = finding.side, let worst = finding.worst else { return "" }
    let isInbound = worst.direction == .inbound
    switch side {
    case .network, .server, .signaling: return side.rawValue
    case .end: return end(worst.peer)
    case .otherEnd: return otherEnd(of: worst.peer)
    case .sender: return isInbound ? otherEnd(of: worst.peer) : end(worst.peer)
    case .receiver:
      return worst.direction == .outbound ? otherEnd(of: worst.peer) : end(worst.peer)
    }
  }
}

// MARK: - StreamsApart

/// Distinguishes streams that would otherwise have the same name.
///
/// Examples are a sender's second camera, simulcast layers, and successive sources of a track.
private struct StreamsApart: Sendable {
  private struct Source: Hashable {
    var peer: Int64
    var direction: WireDirection
    /// An SSRC or a transceiver's number.
    var number: Int64
  }

  private struct Group: Hashable {
    var peer: Int64
    var direction: WireDirection
    var sender: String
    var what: String
  }

  /// The ordinal among a sender's tracks of one kind, by SSRC and by transceiver; absent if the
  /// sender has only one track.
  private var ordinals: [Source: String] = [:]
  private var trackOrdinals: [Source: String] = [:]
  /// The words that distinguish a source from its track's other sources, as in ` (low layer)`.
  private var parts: [Source: String] = [:]

  init() {}

  /// - Parameter name: returns a stream's sender and kind; streams for which both are equal need
  ///   distinctive names.
  init(_ facts: CallFacts, name: (CallFacts.Stream) -> (sender: String, what: String)) {
    var groups: [(name: Group, streams: [CallFacts.Stream])] = []
    var places: [Group: Int] = [:]
    for stream in facts.streams where stream.role == .media && !stream.kind.isEmpty {
      let (sender, what) = name(stream)
      let group = Group(
        peer: stream.peer, direction: stream.direction, sender: sender, what: what)
      let place = places[group] ?? groups.count
      if place == groups.count {
        places[group] = place
        groups.append((group, []))
      }
      groups[place].streams.append(stream)
    }
    for group in groups where group.streams.count > 1 { distinguish(group.streams) }
    // At a receiver, streams may appear in another order, so their names come from the sender.
    for stream in facts.streams where stream.direction == .inbound {
      guard let sent = facts.otherEnd(of: stream) else { continue }
      let (here, there) = (Self.source(stream), Self.source(sent))
      (ordinals[here], parts[here]) = (ordinals[there], parts[there])
      if let track = Self.track(stream) { trackOrdinals[track] = ordinals[there] }
    }
  }

  private static func source(_ stream: CallFacts.Stream) -> Source {
    Source(peer: stream.peer, direction: stream.direction, number: stream.ssrc)
  }

  private static func track(_ stream: CallFacts.Stream) -> Source? {
    stream.track.map { Source(peer: stream.peer, direction: stream.direction, number: $0) }
  }

  private mutating func distinguish(_ streams: [CallFacts.Stream]) {
    var tracks: [[CallFacts.Stream]] = []
    for stream in streams.sorted(by: { ($0.first, $0.ssrc) < ($1.first, $1.ssrc) }) {
      let place = tracks.firstIndex { $0[0].track == stream.track && stream.track != nil }
      if let place { tracks[place].append(stream) } else { tracks.append([stream]) }
    }
    for (place, track) in tracks.enumerated() {
      if tracks.count > 1 {
        for stream in track { ordinals[Self.source(stream)] = Self.ordinal(place) }
        if let number = Self.track(track[0]) { trackOrdinals[number] = Self.ordinal(place) }
      }
      guard track.count > 1 else { continue }
      for (stream, words) in zip(track, Self.parts(of: track)) {
        parts[Self.source(stream)] = " (\(words))"
      }
    }
  }

  /// Returns names for the sources of a track: layers if up to three were sent simultaneously,
  /// otherwise their starting times.
  private static func parts(of track: [CallFacts.Stream]) -> [String] {
    let areLayers = zip(track, track.dropFirst()).allSatisfy { before, after in
      let both = min(before.last, after.last) -| max(before.first, after.first)
      return both *| 2 > min(before.last -| before.first, after.last -| after.first)
    }
    guard areLayers, track.count <= 3 else {
      return track.enumerated().map { place, stream in
        let time = "from \(decimal(Double(stream.first) / 1e9)) s"
        // Sources that start at the same time are distinguished by SSRC.
        let isOnly = track.count { abs($0.first -| stream.first) < 100_000_000 } == 1
        return isOnly ? time : "\(time), ssrc \(stream.ssrc)"
      }
    }
    func rate(_ stream: CallFacts.Stream) -> Double {
      Double(stream.bytes) / Double(max(1, stream.last -| stream.first))
    }
    let names = track.count == 2 ? ["low", "high"] : ["low", "middle", "high"]
    let order = track.indices.sorted { (rate(track[$0]), $0) < (rate(track[$1]), $1) }
    return track.indices.map { place in
      "\(names[order.firstIndex(of: place) ?? 0]) layer"
    }
  }

  private static func ordinal(_ place: Int) -> String {
    let words = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]
    guard !words.indices.contains(place) else { return words[place] + " " }
    let number = place +| 1
    let ending =
      switch (number % 100 / 10, number % 10) {
      case (1, _): "th"
      case (_, 1): "st"
      case (_, 2): "nd"
      case (_, 3): "rd"
      default: "th"
      }
    return "\(number)\(ending) "
  }

  /// Returns the words before and after the kind in a stream's name; empty if the name is unique
  /// without them.
  func words(_ peer: Int64, _ direction: WireDirection, ssrc: Int64?, track: Int64?) -> (
    ordinal: String, part: String
  ) {
    let source = ssrc.map { Source(peer: peer, direction: direction, number: $0) }
    let number = track.map { Source(peer: peer, direction: direction, number: $0) }
    return (
      source.flatMap { ordinals[$0] } ?? number.flatMap { trackOrdinals[$0] } ?? "",
      source.flatMap { parts[$0] } ?? ""
    )
  }
}

// MARK: - FindingEnds

/// Maps detections to their subject, whichever end saw them.
struct FindingEnds: Sendable {
  /// The common subject of a finding's detections.
  struct Subject: Hashable, Sendable {
    /// The numbers of the sender and the receiver, which are equal for an end, a connection or the
    /// call; an end that the take lacks has the other end's number, negated.
    var from: Int64
    var to: Int64
    /// A number that all sources of the stream share; -1 for all streams, and a lower number for an
    /// unknown stream.
    var stream: Int64
  }

  private var others: [Int64: Int64] = [:]
  /// The ends with which a relay's legs talk.
  private var ends: [Int64: Int64] = [:]
  /// The peers whose own stack was recorded, rather than observed or reported.
  private var recorded: Set<Int64> = []
  private var reported: Set<Int64> = []
  /// A stream's number by SSRC and by transceiver, the same at both ends.
  private var bySource: [Source: Int64] = [:]
  private var byTrack: [Source: Int64] = [:]

  private struct Source: Hashable {
    var peer: Int64
    var direction: WireDirection
    /// An SSRC or a transceiver number.
    var number: Int64
  }

  init(_ facts: CallFacts) {
    for peer in facts.peers {
      others[peer.number] = peer.other
      ends[peer.number] = peer.end
      if peer.isReported { reported.insert(peer.number) }
      if !peer.isReported && !peer.isObserved { recorded.insert(peer.number) }
    }
    // A transceiver's simulcast layers and repairs are one stream, named by the sender.
    let sorted = facts.streams.sorted {
      ($0.direction == .outbound ? 0 : 1, $0.role == .media ? 0 : 1, $0.first)
        < ($1.direction == .outbound ? 0 : 1, $1.role == .media ? 0 : 1, $1.first)
    }
    for (place, stream) in sorted.enumerated() {
      let way = (stream.peer, stream.direction)
      let track = stream.track.map { Source(peer: way.0, direction: way.1, number: $0) }
      let source = Source(peer: way.0, direction: way.1, number: stream.ssrc)
      var number = track.flatMap { byTrack[$0] }
      if number == nil, let original = stream.original {
        number = bySource[Source(peer: way.0, direction: way.1, number: original)]
      }
      if number == nil, let other = others[stream.peer] {
        number =
          bySource[
            Source(
              peer: other, direction: way.1 == .inbound ? .outbound : .inbound,
              number: stream.ssrc)]
      }
      let chosen = number ?? Int64(place)
      bySource[source] = chosen
      if let track { byTrack[track] = chosen }
    }
  }

  /// Returns the stream that a detection is about; nil if it is about no stream, or if the stream
  /// is unknown.
  func stream(of detection: Detection) -> Int64? {
    guard let (peer, direction) = side(of: detection) else { return nil }
    if let ssrc = detection.ssrc,
      let found = bySource[Source(peer: peer, direction: direction, number: ssrc & 0xffff_ffff)]
    {
      return found
    }
    guard let track = detection.track else { return nil }
    return byTrack[Source(peer: peer, direction: direction, number: track)]
  }

  /// Returns the peer and direction of the media that a detection is about; nil if it has no
  /// direction.
  ///
  /// For a leg of a relay, that is its end: what the leg receives, the end sends.
  private func side(of detection: Detection) -> (peer: Int64, direction: WireDirection)? {
    guard let direction = detection.direction else { return nil }
    guard let end = ends[detection.peer] else { return (detection.peer, direction) }
    return (end, direction == .inbound ? .outbound : .inbound)
  }

  /// Returns the sender and the receiver of the media that a detection is about; for an end that
  /// the take lacks, it is the other end's number, negated.
  ///
  /// Returns nil for a detection without a direction.
  func flow(of detection: Detection) -> (from: Int64, to: Int64)? {
    guard let (peer, direction) = side(of: detection) else { return nil }
    let other = others[peer] ?? -peer
    return direction == .inbound ? (other, peer) : (peer, other)
  }

  /// Returns whether a peer's own stack was recorded, rather than observed or reported.
  func hasInside(of peer: Int64) -> Bool { recorded.contains(peer) }

  /// Returns whether the take recorded the stack at the other end of a peer's connection.
  func hasOtherInside(of peer: Int64) -> Bool { others[peer].map(recorded.contains) ?? false }

  /// Returns whether a peer is another stack that reported about itself.
  func isReported(_ peer: Int64) -> Bool { reported.contains(peer) }

  /// Returns the lower number of a connection's two ends, which identifies it.
  func connection(of peer: Int64) -> Int64 {
    let end = ends[peer] ?? peer
    return min(end, others[end] ?? end)
  }

  func subject(of detection: Detection, _ scope: FindingRule.Scope) -> Subject {
    let connection = connection(of: detection.peer)
    switch scope {
    case .call: return Subject(from: 0, to: 0, stream: -1)
    case .end: return Subject(from: detection.peer, to: detection.peer, stream: -1)
    case .connection: return Subject(from: connection, to: connection, stream: -1)
    case .flow:
      let flow = flow(of: detection) ?? (connection, connection)
      return Subject(from: flow.from, to: flow.to, stream: -1)
    case .stream:
      let flow = flow(of: detection) ?? (detection.peer, detection.peer)
      let stream = stream(of: detection) ?? -2 -| (detection.ssrc ?? detection.track ?? 0)
      return Subject(from: flow.from, to: flow.to, stream: stream)
    }
  }

  /// Rules about the path, although each of their detections names a stream.
  private static let ofPath: Set = ["high-jitter", "standing-queue", "path-became-longer"]

  /// Returns whether a cause with a scope affects a symptom's subject.
  func isAbout(_ cause: Detection, _ scope: FindingRule.Scope, _ symptom: Detection) -> Bool {
    if scope == .call { return true }
    guard connection(of: cause.peer) == connection(of: symptom.peer) else { return false }
    if scope == .end || scope == .connection { return true }
    if let one = flow(of: cause), let other = flow(of: symptom), one != other { return false }
    // A problem of the path affects all of its streams.
    if Self.ofPath.contains(cause.rule) { return true }
    if let one = stream(of: cause), let other = stream(of: symptom) { return one == other }
    return scope == .flow || cause.kind.isEmpty || symptom.kind.isEmpty
      || cause.kind == symptom.kind
  }

  /// Returns the harm of detections, in seconds summed over streams; overlapping times of one
  /// stream count once.
  func weight(of detections: [Detection]) -> Double {
    seconds(\.frozenSeconds, of: detections) + seconds(\.concealedSeconds, of: detections)
      + seconds(\.withoutMediaSeconds, of: detections)
  }

  private func seconds(_ member: KeyPath<FindingImpact, Double>, of detections: [Detection])
    -> Double
  {
    var spans: [Subject: (sum: Double, spans: [(from: Int64, to: Int64)])] = [:]
    var order: [Subject] = []
    for one in detections where one.impact[keyPath: member] > 0 {
      let subject = subject(of: one, .stream)
      if spans[subject] == nil { order.append(subject) }
      spans[subject, default: (0, [])].sum += one.impact[keyPath: member]
      spans[subject, default: (0, [])].spans.append((one.fromNanoseconds, one.toNanoseconds))
    }
    return order.reduce(0) { total, subject in
      guard let found = spans[subject] else { return total }
      return total + min(found.sum, Double(Finding.union(found.spans)) / 1e9)
    }
  }

  /// Returns the joint impact of detections.
  ///
  /// Overlapping times count once, even across streams: nobody misses media for longer than the
  /// call.
  func impact(of detections: [Detection]) -> FindingImpact {
    var impact = FindingImpact()
    func seconds(_ member: KeyPath<FindingImpact, Double>) -> Double {
      let all = detections.filter { $0.impact[keyPath: member] > 0 }
      let spans = all.map { ($0.fromNanoseconds, $0.toNanoseconds) }
      return min(self.seconds(member, of: all), Double(Finding.union(spans)) / 1e9)
    }
    impact.frozenSeconds = seconds(\.frozenSeconds)
    impact.concealedSeconds = seconds(\.concealedSeconds)
    impact.withoutMediaSeconds = seconds(\.withoutMediaSeconds)
    for one in detections {
      impact.delayMilliseconds = max(impact.delayMilliseconds, one.impact.delayMilliseconds)
    }
    return impact
  }
}
