import Crypto
package import Tape
import Wire

/// Puts the takes of a call's two ends on a common clock, using the datagrams that both contain.
///
/// A datagram that one end sent and the other received has the same bytes in both takes. The
/// minimum delays in both directions determine the offset between the clocks, if the fastest
/// datagrams took equally long both ways, as NTP assumes (RFC 5905 section 8). The one-way delay of
/// each datagram follows from the offset. Takes of two participants in a room have no datagrams in
/// common, so their frames are compared instead.
package struct MergedTakes: Sendable, Codable {
  /// The datagrams from one end to the other.
  package struct Way: Sendable, Codable {
    /// The sending end: the path of its take, or its peer's number and label.
    package var from: String
    /// The receiving end: the path of its take, or its peer's number and label.
    package var to: String
    /// The number of datagrams sent between the first and the last that arrived, including these,
    /// and how many of them arrived.
    package var sent = 0
    package var received = 0
    /// The one-way delays of the datagrams that arrived, in milliseconds.
    package var leastMilliseconds = 0.0
    package var medianMilliseconds = 0.0
    package var percentile95Milliseconds = 0.0
    package var mostMilliseconds = 0.0
    /// The delays in each second of the first take in which a datagram was sent.
    package var seconds: [Second] = []

    /// The lost share of the datagrams in percent; 0 if none was sent.
    package var lostPercent: Double {
      sent > 0 ? 100 * Double(sent - received) / Double(sent) : 0
    }
  }

  /// The datagrams of one direction in one second of the first take's time.
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
    /// The takes cannot have datagrams in common, or have too few in common in one direction; the
    /// text says why.
    case nothingInCommon(String)
  }

  package var first: String
  package var second: String
  /// The offset that converts the second take's times to the first take's clock.
  package var offsetNanoseconds: Int64
  /// The offset according to the two machines' wall clocks, which may be wrong.
  package var wallClockOffsetNanoseconds: Int64
  /// The second clock's drift in parts per million, positive if it is faster; nil for short calls.
  package var driftPartsPerMillion: Double?
  package var ways: [Way]
  /// The offset for writing both takes into one, and its error at the call's ends.
  ///
  /// Each peer keeps its own clock in the joint take, so drift is not corrected. The offset in the
  /// middle of the call is therefore used.
  package var jointOffsetNanoseconds: Int64
  package var jointErrorMilliseconds: Double

  /// The offset's maximum error in milliseconds: half of the shortest round trip, since one
  /// direction may have taken all of it.
  package var uncertaintyMilliseconds: Double {
    (ways.map(\.leastMilliseconds).reduce(0, +)) / 2
  }

  /// Merges two takes, or two peers of one take.
  package init(
    first: String, peer firstPeer: Int64? = nil, second: String, peer secondPeer: Int64? = nil
  ) throws(Refusal) {
    let left = try Side(first, firstPeer)
    let right = try Side(second, secondPeer)
    if let reason = left.obstacle(beside: right) { throw .nothingInCommon(reason) }
    self.first = first
    self.second = second
    wallClockOffsetNanoseconds = right.start -| left.start
    // Two peers of one file are distinguished by their labels.
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
    // A constant offset has the smallest error if it is right in the middle of the call.
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

  /// The minimum number of datagrams in common, per direction.
  private static let fewest = 3
}

/// One end of the call, with the datagrams that it sent and received.
private struct Side {
  let path: String
  /// The peer's number and label; for a room, its label.
  var label = ""
  /// All peers in the take, and the selected peer's number.
  private let peers: [(number: Int64, label: String)]
  private let peer: Int64?
  /// Whether the end is in a room, in which case encoded frames are compared instead of datagrams.
  var isRoom = false
  var start: Int64 = 0
  /// Sent and received datagrams as hashes, because a long call has gigabytes of datagrams.
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
          reason: "it has several peers: \(names); name the one that is an end of this call with "
            + "--first-peer or --second-peer")
      }
      guard let own = history.peers.first(where: { $0.number == peer ?? $0.number }) else {
        throw TapeError(
          path: path, place: "", reason: "it has no peer \(peer ?? 0), only \(names)")
      }
      label = "\(own.number) \(own.label)"
      while let entry = try history.next() {
        let mark = XXH3.mark(entry.bytes.span.bytes)
        if entry.isInbound {
          // If a datagram was duplicated, the copy that arrived first determines the delay.
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
  /// Returns why two sides cannot have datagrams in common; nil if they can.
  func obstacle(beside other: Side) -> String? {
    if path == other.path, peer == other.peer {
      let names = peers.map { "\($0.number) \($0.label)" }.joined(separator: ", ")
      return isRoom
        ? "\(path) is given twice, and is the take of one participant of a room; give the take of "
          + "another participant as the second"
        : peers.count > 1
          ? "\(path) is given twice with the same peer; name the two ends of one call among "
            + "\(names) with --first-peer and --second-peer; or are these the two ends of one call?"
          : "\(path) is given twice and contains one end; give the take of the other end as the "
            + "second"
    }
    for side in [self, other] where side.isRoom && side.sent.isEmpty && side.received.isEmpty {
      return
        "\(side.path) is the take of a room without stored media, and takes of rooms are aligned "
        + "by their frames; record the room with its media"
    }
    guard isRoom != other.isRoom else { return nil }
    let (room, call) = isRoom ? (self, other) : (other, self)
    return "\(room.path) is the take of a participant of a room, and \(call.path) is not: a room's "
      + "server sends new datagrams, so give the take of another participant; to align one of its "
      + "connections with a take of the server's end, name the peer with --first-peer or "
      + "--second-peer"
  }

  /// The minimum size in bytes of frames to compare; shorter ones, such as silence, may have equal
  /// bytes.
  private static let leastFrameBytes = 24

  /// Reads a room's encoded frames instead of datagrams; returns false if the take has no room.
  ///
  /// A server that forwards media creates new datagrams, but leaves the frames as they are. A
  /// received frame has the time of its playout, so buffering adds to the delays. The offset is not
  /// affected if both ends buffer equally.
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
          AND outcome IN ('encoded', 'decoded', 'not decoded', 'passed on') ORDER BY row
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
      // If frames are equal, it is unknown which of them was received.
      sent.removeAll { counts[$0.mark] != 1 }
      return true
    } catch {
      throw TapeError(path: path, error)
    }
  }
}

/// A datagram that both takes contain, with each end's time on that end's clock.
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

/// The offset and the drift between the clocks of two takes.
private struct ClockDistance {
  /// The offset to add to the second clock when it shows `origin`.
  private(set) var offset: Int64 = 0
  /// The second clock's drift as a fraction; nil if the call is too short.
  private(set) var drift: Double?
  private var origin: Int64 = 0

  /// The length in nanoseconds of the parts whose minimum delays are compared, and their minimum
  /// number.
  private static let part: Int64 = 10_000_000_000
  private static let fewestParts = 3

  /// - Parameters:
  ///   - there: datagrams from the first end to the second.
  ///   - back: datagrams from the second end to the first.
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
    // `there` measures delay - offset, and `back` delay + offset: half the difference is the
    // offset.
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

  /// The fastest datagram in a part of the call: its apparent delay, and its time on the second
  /// clock.
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

  /// Computes the drift, and the offset at `origin`, by fitting a line to the parts' offsets.
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

  /// Returns the offset at a time of the second clock.
  func offset(at instant: Int64) -> Int64 {
    guard let drift else { return offset }
    return offset -| Int64(saturating: drift * Double(instant -| origin))
  }
}

extension MergedTakes.Way {
  /// Computes the statistics of one direction.
  ///
  /// - Parameters:
  ///   - moment: converts the sending end's time to the first clock.
  ///   - delay: returns a datagram's one-way delay.
  fileprivate init(
    from: String, to: String, _ passages: [Passage], sent: [(at: Int64, mark: XXH3.Mark)],
    moment: (Int64) -> Int64, delay: (Passage) -> Int64
  ) {
    self.from = from
    self.to = to
    // A datagram sent before the other end began to record, or after it stopped, does not count as
    // lost.
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
  /// Returns a percentile of the sorted values.
  fileprivate func part(_ percent: Int) -> Double {
    isEmpty ? 0 : self[Swift.min(count - 1, count * percent / 100)]
  }
}

// MARK: - Text

extension MergedTakes: CustomStringConvertible {
  /// The clock offset and a table of both directions, as text.
  package var description: String { text() }

  /// Formats the clock offset and a table of both directions for a terminal.
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

  /// All results, with the delays in each second, as a JSON object.
  package var json: String { CanonicalJSON.text(self) }

  /// A remark on how accurate a joint take's times are; nil if the error is below 0.05 ms.
  package var jointNote: String? {
    guard jointErrorMilliseconds >= 0.05 else { return nil }
    return "its delays are exact in the middle of the call and up to "
      + "\(milliseconds(jointErrorMilliseconds)) wrong at its ends, because the clocks drift"
  }

  private func milliseconds(_ value: Double) -> String { fixed(value) + " ms" }

  /// Formats a number with three decimals, or as `?` if it is too large.
  private func fixed(_ value: Double) -> String {
    let scaled = (value * 1_000).rounded()
    guard scaled.magnitude < 9e15 else { return "?" }
    return thousandths(Int64(scaled))
  }
}
