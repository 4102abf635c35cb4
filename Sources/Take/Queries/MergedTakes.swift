import Crypto
package import Tape
import Wire

/// Two takes of the two ends of a call on one clock, by the datagrams that both of them saw.
///
/// A datagram that one end sent and the other received has the same bytes in both takes. The least
/// times of both directions give the distance of the two clocks, on the assumption of NTP (RFC 5905
/// section 8): that the fastest datagram took equally long both ways. What is left is the time that
/// each datagram took.
package struct MergedTakes: Sendable, Codable {
  /// One way between the two ends.
  package struct Way: Sendable, Codable {
    /// The end that sent.
    package var from: String
    /// The end that received.
    package var to: String
    /// How many datagrams were sent while the other end recorded, and how many of them came.
    package var sent = 0
    package var received = 0
    /// One-way delays of those that came, in milliseconds.
    package var leastMilliseconds = 0.0
    package var medianMilliseconds = 0.0
    package var percentile95Milliseconds = 0.0
    package var mostMilliseconds = 0.0
    /// The delays in each second of the first take in which something came.
    package var seconds: [Second] = []

    /// How many of a hundred were lost.
    package var lostPercent: Double {
      sent > 0 ? 100 * Double(sent - received) / Double(sent) : 0
    }
  }

  /// What happened one way in one second of the first take.
  package struct Second: Sendable, Codable {
    package var second: Int
    package var sent = 0
    package var received = 0
    package var medianMilliseconds = 0.0
    package var mostMilliseconds = 0.0
  }

  /// Why two takes cannot be merged.
  package enum Refusal: Error, Sendable {
    case unreadable(TapeError)
    /// They have too few datagrams in common, one way or both.
    case nothingInCommon(String)
  }

  package var first: String
  package var second: String
  /// What has to be added to a time of the second take to get the same moment in the first one.
  package var offsetNanoseconds: Int64
  /// The same by the wall clocks of the two machines, which may be wrong.
  package var wallClockOffsetNanoseconds: Int64
  /// By how much the second clock runs faster than the first, in millionths; nil for short calls.
  package var driftPartsPerMillion: Double?
  package var ways: [Way]
  /// What is added to the second take when both are joined: the offset in the middle of the call,
  /// since each peer keeps its own time; and how far off that is at its ends where clocks drift.
  package var jointOffsetNanoseconds: Int64
  package var jointErrorMilliseconds: Double

  /// Half of the shortest round trip: how far off the offset is at most, if one way took all of it.
  package var uncertaintyMilliseconds: Double {
    (ways.map(\.leastMilliseconds).reduce(0, +)) / 2
  }

  /// Merges two takes, or two peers of them.
  package init(
    first: String, peer firstPeer: Int64? = nil, second: String, peer secondPeer: Int64? = nil
  ) throws(Refusal) {
    let left = try Side(first, firstPeer)
    let right = try Side(second, secondPeer)
    if let reason = left.obstacle(beside: right) { throw .nothingInCommon(reason) }
    self.first = first
    self.second = second
    wallClockOffsetNanoseconds = right.start -| left.start
    // Two ends in one file are told apart by their peers.
    let names = first == second ? (left.label, right.label) : (first, second)
    let there = Passage.all(from: left, to: right)
    let back = Passage.all(from: right, to: left)
    for (passages, from, to) in [(there, names.0, names.1), (back, names.1, names.0)] {
      guard passages.count >= MergedTakes.fewest else {
        let (things, verb, question) =
          left.isRoom
          ? (
            "frames", "decoded", "are these takes of two participants of one room, both with media?"
          )
          : ("datagrams", "received", "are these the two ends of one call?")
        throw .nothingInCommon(
          "\(passages.count) of the \(things) that \(from) sent were \(verb) in \(to), and at "
            + "least \(MergedTakes.fewest) are needed; \(question)")
      }
    }
    let clock = ClockDistance(there: there, back: back)
    offsetNanoseconds = clock.offset
    driftPartsPerMillion = clock.drift.map { $0 * 1e6 }
    // One number for all of a call is least wrong in its middle.
    let middle = ((there.first?.received ?? 0) +| (there.last?.received ?? 0)) / 2
    jointOffsetNanoseconds = clock.offset(at: middle)
    jointErrorMilliseconds = Double((jointOffsetNanoseconds -| clock.offset).magnitude) / 1e6
    ways = [
      Way(from: names.0, to: names.1, there, sent: left.sent, moment: { $0 }) { passage in
        passage.received +| clock.offset(at: passage.received) -| passage.sent
      },
      Way(
        from: names.1, to: names.0, back, sent: right.sent, moment: { $0 +| clock.offset(at: $0) }
      ) { passage in
        passage.received -| passage.sent -| clock.offset(at: passage.sent)
      },
    ]
  }

  /// How many datagrams the takes must have in common each way.
  private static let fewest = 3
}

/// One end: its datagrams with their times.
private struct Side {
  let path: String
  /// The number and label of the peer.
  var label = ""
  /// The peers of the take, and the one that was asked for.
  private let peers: [(number: Int64, label: String)]
  private let peer: Int64?
  /// Whether it is a participant of a room, whose frames are looked at in place of datagrams.
  var isRoom = false
  var start: Int64 = 0
  /// What was sent and received, by the marks of the bytes: a long call has gigabytes of them.
  var sent: [(at: Int64, mark: XXH3.Mark)] = []
  var received: [XXH3.Mark: Int64] = [:]

  init(_ path: String, _ peer: Int64?) throws(MergedTakes.Refusal) {
    self.path = path
    self.peer = peer
    do throws(TapeError) {
      let history = try DatagramHistory(path: path, peer: peer)
      start = history.startUnixNanoseconds
      peers = history.peers
      if peer == nil, try readRoom(path) {
        isRoom = true
        return
      }
      let names = history.peers.map { "\($0.number) \($0.label)" }.joined(separator: ", ")
      guard peer != nil || history.peers.count == 1 else {
        throw TapeError(
          path: path, place: "",
          reason: "it has several peers: \(names); say which one is the end of this call with "
            + "--first-peer or --second-peer")
      }
      guard let own = history.peers.first(where: { $0.number == peer ?? $0.number }) else {
        throw TapeError(
          path: path, place: "", reason: "it has no peer \(peer ?? 0); there is \(names)")
      }
      label = "\(own.number) \(own.label)"
      while let entry = try history.next() {
        let mark = XXH3.mark(entry.bytes.span.bytes)
        if entry.isInbound {
          // Of a datagram that came twice, the first one tells the delay.
          if received[mark] == nil { received[mark] = entry.atNanoseconds }
        } else {
          sent.append((entry.atNanoseconds, mark))
        }
      }
    } catch {
      throw .unreadable(error)
    }
  }
}

extension Side {
  /// Why two sides can have nothing in common; nil where they may.
  func obstacle(beside other: Side) -> String? {
    if path == other.path, peer == other.peer {
      let names = peers.map { "\($0.number) \($0.label)" }.joined(separator: ", ")
      return isRoom
        ? "\(path) stands twice, and is the take of one participant of a room; give the take of "
          + "another one, too"
        : peers.count > 1
          ? "\(path) stands twice with the same peer; name the two ends of one call among \(names) "
            + "with --first-peer and --second-peer; or are these the two ends of one call?"
          : "\(path) stands twice and holds one end; give the take of the other end, too"
    }
    for side in [self, other] where side.isRoom && side.sent.isEmpty && side.received.isEmpty {
      return
        "\(side.path) is the take of a room, which is laid beside another one by the bytes of its "
        + "frames, and it keeps none; record rooms with their media for that"
    }
    guard isRoom != other.isRoom else { return nil }
    let (room, call) = isRoom ? (self, other) : (other, self)
    return "\(room.path) is the take of a participant of a room, and \(call.path) is not: what a "
      + "server of rooms passes on are other datagrams, so a take of another participant is "
      + "needed; to lay one of its connections beside a take of the server's end, name the peer "
      + "with --first-peer or --second-peer"
  }

  /// Frames of less are too much alike: the shortest are those of silence.
  private static let leastFrameBytes = 24

  /// Takes the encoded frames of a room in the place of datagrams, because a server that passes
  /// media on makes other datagrams of it; false when the take has no room.
  ///
  /// A received frame is as late as its playout: what the buffers of both ends have in common goes
  /// into the delays, and not into the offset.
  private mutating func readRoom(_ path: String) throws(TapeError) -> Bool {
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      let rooms = try connection.prepare(
        "SELECT label FROM actor_store WHERE kind = \(MachineKind.room.rawValue) LIMIT 1")
      guard try rooms.step() else { return false }
      label = rooms.text(0) ?? ""
      var counts: [XXH3.Mark: Int] = [:]
      let frames = try connection.prepare(
        """
        SELECT at_ns, direction, bytes FROM frame
        WHERE size >= \(Side.leastFrameBytes) AND bytes IS NOT NULL
          AND outcome IN ('encoded', 'decoded') ORDER BY row
        """)
      while try frames.step() {
        let (at, direction) = frames.values(Int64.self, String.self)
        let mark = frames.withBlob(2) { XXH3.mark($0) }
        if direction == "out" {
          counts[mark, default: 0] += 1
          sent.append((at, mark))
        } else if received[mark] == nil {
          received[mark] = at
        }
      }
      // Which of several that are alike was received, nobody knows.
      sent.removeAll { counts[$0.mark] != 1 }
      return true
    } catch {
      throw TapeError(path: path, error)
    }
  }
}

/// A datagram that both ends saw: when it was sent and received, each by the clock of its end.
private struct Passage {
  var sent: Int64
  var received: Int64

  static func all(from sender: Side, to receiver: Side) -> [Passage] {
    var matched: Set<XXH3.Mark> = []
    return sender.sent.compactMap { entry in
      guard let received = receiver.received[entry.mark], matched.insert(entry.mark).inserted else {
        return nil
      }
      return Passage(sent: entry.at, received: received)
    }
  }
}

/// How far two clocks are apart.
private struct ClockDistance {
  /// What to add to the second clock's time, at `origin` of it.
  private(set) var offset: Int64 = 0
  /// How much faster the second clock runs; nil when the call is too short to say.
  private(set) var drift: Double?
  private var origin: Int64 = 0

  /// The length of the parts of a call whose least delays are compared, and how many it takes.
  private static let part: Int64 = 10_000_000_000
  private static let fewestParts = 3

  /// - Parameters:
  ///   - there: from the first end to the second.
  ///   - back: from the second end to the first.
  init(there: [Passage], back: [Passage]) {
    origin = there.first?.received ?? 0
    var parts: [Int64: (there: Least?, back: Least?)] = [:]
    for passage in there {
      let part = (passage.received -| origin) / ClockDistance.part
      let least = Least(passage, at: passage.received -| origin)
      parts[part, default: (nil, nil)].there = least.or(parts[part]?.there)
    }
    for passage in back {
      let part = (passage.sent -| origin) / ClockDistance.part
      let least = Least(passage, at: passage.sent -| origin)
      parts[part, default: (nil, nil)].back = least.or(parts[part]?.back)
    }
    // there = delay - offset, back = delay + offset: half of the difference is the offset.
    let leastThere = there.map { $0.received -| $0.sent }.min() ?? 0
    let leastBack = back.map { $0.received -| $0.sent }.min() ?? 0
    offset = (leastBack -| leastThere) / 2
    fit(
      parts.sorted { $0.key < $1.key }.compactMap { _, part in
        guard let there = part.there, let back = part.back else { return nil }
        return (
          time: Double(there.at +| back.at) / 2, offset: Double(back.delay -| there.delay) / 2
        )
      })
  }

  /// The fastest datagram of a part: what it took by both clocks, and when it was at the second
  /// end.
  private struct Least {
    var delay: Int64
    var at: Int64

    init(_ passage: Passage, at: Int64) {
      delay = passage.received -| passage.sent
      self.at = at
    }

    func or(_ other: Least?) -> Least {
      if let other, other.delay <= delay { return other }
      return self
    }
  }

  /// Lays a line through the offsets of the parts.
  private mutating func fit(_ parts: [(time: Double, offset: Double)]) {
    guard parts.count >= ClockDistance.fewestParts else { return }
    let count = Double(parts.count)
    let meanTime = parts.map(\.time).reduce(0, +) / count
    let meanOffset = parts.map(\.offset).reduce(0, +) / count
    var above = 0.0
    var below = 0.0
    for part in parts {
      above += (part.time - meanTime) * (part.offset - meanOffset)
      below += (part.time - meanTime) * (part.time - meanTime)
    }
    guard below > 0 else { return }
    let slope = above / below
    drift = -slope
    offset = Int64(saturating: meanOffset - slope * meanTime)
  }

  /// What to add to a time of the second clock.
  func offset(at instant: Int64) -> Int64 {
    guard let drift else { return offset }
    return offset -| Int64(saturating: drift * Double(instant -| origin))
  }
}

extension MergedTakes.Way {
  /// Counts one way.
  ///
  /// - Parameters:
  ///   - moment: a time of the sending end by the first clock.
  ///   - delay: the time that a datagram took.
  fileprivate init(
    from: String, to: String, _ passages: [Passage], sent: [(at: Int64, mark: XXH3.Mark)],
    moment: (Int64) -> Int64, delay: (Passage) -> Int64
  ) {
    self.from = from
    self.to = to
    // What was sent before the other end was there, or when it had gone, was not lost on the way.
    let delays = passages.map { (at: moment($0.sent), delay: Double(delay($0)) / 1e6) }
    let first = passages.first?.sent ?? 0
    let last = passages.last?.sent ?? 0
    let counted = sent.filter { (first...max(first, last)).contains($0.at) }
    self.sent = counted.count
    received = delays.count
    let sorted = delays.map(\.delay).sorted()
    leastMilliseconds = sorted.first ?? 0
    medianMilliseconds = sorted.part(50)
    percentile95Milliseconds = sorted.part(95)
    mostMilliseconds = sorted.last ?? 0
    var bySecond: [Int: (sent: Int, delays: [Double])] = [:]
    for entry in counted { bySecond[second(moment(entry.at)), default: (0, [])].sent += 1 }
    for entry in delays { bySecond[second(entry.at), default: (0, [])].delays.append(entry.delay) }
    seconds = bySecond.sorted { $0.key < $1.key }.map { second, values in
      let sorted = values.delays.sorted()
      return MergedTakes.Second(
        second: second, sent: values.sent, received: sorted.count,
        medianMilliseconds: sorted.part(50), mostMilliseconds: sorted.last ?? 0)
    }
  }

  private func second(_ nanoseconds: Int64) -> Int {
    Int(saturating: (Double(nanoseconds) / 1e9).rounded(.down))
  }
}

extension [Double] {
  /// The value that so many of a hundred of these sorted ones do not exceed.
  fileprivate func part(_ percent: Int) -> Double {
    isEmpty ? 0 : self[Swift.min(count - 1, count * percent / 100)]
  }
}

// MARK: - Text

extension MergedTakes: CustomStringConvertible {
  /// The offset of the clocks and a table of both ways.
  package var description: String { text() }

  /// The same for a terminal.
  package func text(_ look: TableLook = TableLook()) -> String {
    let names = (ways.first?.from ?? first, ways.first?.to ?? second)
    var lines = [
      "\(names.1) begins \(milliseconds(Double(offsetNanoseconds) / 1e6)) after \(names.0), "
        + "within \(milliseconds(uncertaintyMilliseconds)); "
        + "by their wall clocks \(milliseconds(Double(wallClockOffsetNanoseconds) / 1e6))"
    ]
    if let driftPartsPerMillion {
      lines.append("its clock runs \(fixed(driftPartsPerMillion)) millionths faster")
    }
    let rows = ways.map { way in
      [
        way.from, way.to, String(way.sent), String(way.received), fixed(way.lostPercent),
        fixed(way.leastMilliseconds), fixed(way.medianMilliseconds),
        fixed(way.percentile95Milliseconds), fixed(way.mostMilliseconds),
      ]
    }
    let table = TextTable(
      columns: ["from", "to", "sent", "came", "lost %", "least ms", "median", "95 %", "most"],
      rows: rows,
      alignsRight: [false, false, true, true, true, true, true, true, true], wraps: true)
    return lines.joined(separator: "\n") + "\n" + table.text(look)
  }

  /// Everything, with the delays in each second, as a JSON object.
  package var json: String { CanonicalJSON.text(self) }

  /// What to know of a joint take of both ends; nil when there is nothing.
  package var jointNote: String? {
    guard jointErrorMilliseconds >= 0.05 else { return nil }
    return "its delays are right in the middle of the call and up to "
      + "\(milliseconds(jointErrorMilliseconds)) wrong at its ends, because the clocks drift"
  }

  private func milliseconds(_ value: Double) -> String { fixed(value) + " ms" }

  /// A number with three digits after the point.
  private func fixed(_ value: Double) -> String {
    let scaled = (value * 1_000).rounded()
    guard scaled.magnitude < 9e15 else { return "?" }
    return (scaled < 0 ? "-" : "") + thousandths(Int64(scaled.magnitude))
  }
}
