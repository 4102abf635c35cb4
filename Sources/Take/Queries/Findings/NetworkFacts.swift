package import Tape
import Wire

/// Facts for rules about the network, such as packet delays, silences, handshakes and descriptions.
package struct NetworkFacts: Sendable {
  /// All packets of a peer in one direction, whatever their protocol.
  package struct Way: Sendable {
    package var peer: Int64
    package var direction: WireDirection
    package var first: Int64
    package var last: Int64
    package var packets: Int64 = 0
    /// The silences of at least `leastHitch`; only the first ones are kept, because short silences
    /// are frequent.
    package var hitches: [Silence] = []
    /// The silences of at least `leastSilence`.
    package var silences: [Silence] { hitches.filter { $0.length >= NetworkFacts.leastSilence } }
    /// The number of RTCP packets, the times of the first and the last, and the first pauses
    /// between them of two seconds or more.
    package var reports: Int64 = 0
    package var firstReport: Int64 = 0
    package var lastReport: Int64 = 0
    package var reportGaps: [ClosedRange<Int64>] = []
    var pace = Pace()
  }

  /// A period without packets in any protocol, and what followed it.
  package struct Silence: Sendable {
    package var from: Int64
    package var to: Int64
    /// The number of RTP packets in the last second before the silence.
    package var pace: Int64
    /// The number of RTP packets in the 60 ms after the silence, and the number of streams that
    /// they belong to.
    package var burst: Int64 = 0
    package var streams: Int64 = 0
    /// The number of sequence numbers that these streams skipped during the silence.
    package var missing: Int64 = 0
    /// The largest increase in delay, in nanoseconds, of a stream's first packet after the silence.
    package var lateness: Int64 = 0

    package var length: Int64 { to -| from }
  }

  /// The RTP packets on one path, as seen by one of its ends.
  package struct PathUse: Sendable {
    package var path: Int64
    package var peer: Int64
    package var direction: WireDirection
    package var local: String
    package var remote: String
    /// The number of RTP packets, and the times of the first and the last.
    package var media: Int64 = 0
    package var firstMedia: Int64 = 0
    package var lastMedia: Int64 = 0
  }

  /// The comparison of arrival times with timestamps, for each stream in `CallFacts.streams`.
  package private(set) var timings: [StreamTiming] = []
  package private(set) var ways: [Way] = []
  package private(set) var pathUses: [PathUse] = []
  package internal(set) var datagrams = DatagramFacts()
  /// What senders know about the path to their receivers, from feedback and round trips.
  package private(set) var sending = SenderFacts()
  /// The data channel chunks that were sent, acknowledged and retransmitted.
  package private(set) var channels = ChannelFacts()
  /// The steps that an endpoint executed 100 ms or more after they were due.
  package private(set) var lateSteps: [StepTimes.Late] = []
  /// The steps that an endpoint executed half as late or more, which matter if they are many.
  package private(set) var slightlyLateSteps: [StepTimes.Late] = []
  package private(set) var descriptions: [SignaledDescription] = []

  package static let leastSilence: Int64 = 150_000_000
  static let leastHitch: Int64 = 90_000_000
  static let mostHitches = 5_000
  static let leastLateness: Int64 = 100_000_000
  /// The time after a silence in which packets count towards its `burst`, in nanoseconds.
  static let burstTime: Int64 = 60_000_000
  static let most = 20_000

  init() {}

  /// Ignores a packet of the common pass over all packets.
  ///
  /// Delays depend on clock rates, which are known only after that pass, so `read` makes another
  /// pass.
  mutating func add(_ sight: PacketSight, _ stream: Int) {}

  /// Reads descriptions, datagrams and late steps.
  mutating func read(_ connection: borrowing SQLiteConnection, _ facts: CallFacts)
    throws(SQLiteError)
  {
    descriptions = try SignaledDescription.read(connection, facts)
    timings = facts.streams.map {
      StreamTiming(clockRate: $0.role == .media ? $0.clockRate : 0)
    }
    try sending.prepare(connection)
    try channels.prepare(connection)
    try readDatagrams(connection, facts)
    datagrams.finish()
    sending.finish(datagrams.checks, facts)
    for place in timings.indices { timings[place].finish() }
    let endpoints = Set(facts.peers.filter { !$0.isObserved }.map(\.actor))
    slightlyLateSteps = try StepTimes.late(
      by: Self.leastLateness / 2, atMost: Self.most, in: connection
    ).filter { endpoints.contains($0.actor) }
    lateSteps = slightlyLateSteps.filter { $0.at -| $0.due >= Self.leastLateness }
  }

  /// An end at which the packets of a path are counted; a path has two ends if the take has both
  /// peers.
  private struct End {
    var way: Int
    /// The end's index in `pathUses`; nil if that list is full.
    var use: Int?
    /// The indexes of the end's streams, by SSRC.
    var streams: [Int64: Int]
  }

  private mutating func readDatagrams(
    _ connection: borrowing SQLiteConnection, _ facts: CallFacts
  ) throws(SQLiteError) {
    let ends = try readPaths(connection, facts)
    var bytes = try WirePieces(connection)
    let rows = try connection.prepare(
      """
      SELECT path, at_ns, ssrc & 0xffffffff, marker_type IS NOT NULL, sequence & 0xffff,
        rtp_time & 0xffffffff, size, position, transport_sequence, row
      FROM packet_store ORDER BY row
      """)
    while try rows.step() {
      let (path, at) = (rows.integer(0), rows.integer(1))
      guard let ends = ends[path] else { continue }
      for end in ends { pass(end.way, at) }
      if rows.integer(3) != 0 {
        let (ssrc, sequence, rtpTime) = (rows.integer(2), rows.integer(4), rows.integer(5))
        for end in ends {
          if let use = end.use { pathUses[use].add(at) }
          guard let stream = end.streams[ssrc] else { continue }
          addMedia(end.way, stream, at, sequence, rtpTime)
        }
        guard sending.isNeeded, !rows.isNull(8) else { continue }
        for end in ends where ways[end.way].direction == .outbound {
          let kind = end.streams[rows.integer(2)].map { facts.streams[$0].kind } ?? ""
          sending.add(
            rows.integer(9), ways[end.way].peer, rows.integer(8), isVideo: kind != "audio", at)
        }
      } else if !rows.isNull(2) {
        for end in ends { ways[end.way].addReport(at) }
      } else {
        let (size, position) = (rows.integer(6), rows.integer(7))
        let head = try bytes.read(position, min(size, 64))
        let isForChannels = channels.isNeeded && ChannelFacts.mayCarry(head)
        let isWhole = size <= 2048 && (isForChannels || DatagramFacts.needsAll(head))
        let whole = isWhole ? try bytes.read(position, size) : head
        if isForChannels, isWhole {
          channels.add(whole, ends.map { (ways[$0.way].peer, ways[$0.way].direction) }, at)
        }
        for end in ends {
          datagrams.add(whole, size, ways[end.way].peer, ways[end.way].direction, path, at)
        }
      }
    }
  }

  private mutating func readPaths(_ connection: borrowing SQLiteConnection, _ facts: CallFacts)
    throws(SQLiteError) -> [Int64: [End]]
  {
    var ends: [Int64: [End]] = [:]
    let paths = try connection.prepare(
      "SELECT path, peer, direction, local, remote FROM path_end ORDER BY path, peer, direction")
    while try paths.step() {
      let (path, peer, direction, local, remote) = paths.values(
        Int64.self, Int64.self, String.self, String.self, String.self)
      guard let direction = WireDirection(rawValue: direction) else { continue }
      var way = ways.firstIndex { $0.peer == peer && $0.direction == direction } ?? ways.count
      if way == ways.count {
        guard way < Self.most else { continue }
        ways.append(Way(peer: peer, direction: direction, first: .max, last: .min))
        way = ways.count - 1
      }
      var streams: [Int64: Int] = [:]
      for (place, stream) in facts.streams.enumerated()
      where stream.peer == peer && stream.direction == direction {
        streams[stream.ssrc] = place
      }
      let use = pathUses.count < Self.most ? pathUses.count : nil
      if use != nil {
        pathUses.append(
          PathUse(path: path, peer: peer, direction: direction, local: local, remote: remote))
      }
      ends[path, default: []].append(End(way: way, use: use, streams: streams))
    }
    return ends
  }

  private mutating func pass(_ way: Int, _ at: Int64) {
    if ways[way].packets > 0 {
      let last = ways[way].last
      let most = at &- last >= Self.leastSilence ? Self.most : Self.mostHitches
      if at &- last >= Self.leastHitch, ways[way].hitches.count < most {
        ways[way].hitches.append(
          Silence(from: last, to: at, pace: ways[way].pace.packets(before: last)))
      }
    } else {
      ways[way].first = at
    }
    ways[way].packets +|= 1
    ways[way].last = max(ways[way].last, at)
  }

  private mutating func addMedia(
    _ way: Int, _ stream: Int, _ at: Int64, _ sequence: Int64, _ rtpTime: Int64
  ) {
    let step = timings[stream].add(at, sequence, rtpTime)
    ways[way].pace.add(at)
    guard let silence = ways[way].hitches.indices.last,
      at &- ways[way].hitches[silence].to < Self.burstTime
    else { return }
    ways[way].hitches[silence].burst +|= 1
    guard timings[stream].silence != silence else { return }
    timings[stream].silence = silence
    ways[way].hitches[silence].streams +|= 1
    guard let step else { return }
    ways[way].hitches[silence].missing +|= max(0, step.numbers -| 1)
    ways[way].hitches[silence].lateness = max(
      ways[way].hitches[silence].lateness, step.lateness)
  }

  /// Returns a peer's packets in a direction; nil if there were none.
  package func way(_ peer: Int64, _ direction: WireDirection) -> Way? {
    ways.first { $0.peer == peer && $0.direction == direction }
  }

  package func descriptions(of peer: Int64) -> [SignaledDescription] {
    descriptions.filter { $0.peer == peer }
  }
}

extension NetworkFacts.PathUse {
  fileprivate mutating func add(_ at: Int64) {
    if media == 0 { firstMedia = at }
    media +|= 1
    lastMedia = max(lastMedia, at)
  }
}

extension NetworkFacts.Way {
  fileprivate mutating func addReport(_ at: Int64) {
    if reports == 0 { firstReport = at }
    if reports > 0, at &- lastReport >= 2_000_000_000, reportGaps.count < NetworkFacts.most {
      reportGaps.append(lastReport...max(lastReport, at))
    }
    reports +|= 1
    lastReport = max(lastReport, at)
  }
}

/// Counts the packets of the last second, in slots of a tenth of a second.
struct Pace: Sendable {
  private var counts = [Int64](repeating: 0, count: 16)
  private var slots = [Int64](repeating: -1, count: 16)
  private static let slot: Int64 = 100_000_000

  mutating func add(_ at: Int64) {
    let slot = at / Self.slot
    let place = Int(slot & 15)
    if slots[place] != slot { (slots[place], counts[place]) = (slot, 0) }
    counts[place] +|= 1
  }

  /// Returns the number of packets in the second before a time.
  func packets(before at: Int64) -> Int64 {
    let last = at / Self.slot
    return zip(slots, counts).reduce(0) { sum, entry in
      entry.0 > last -| 10 && entry.0 <= last && entry.0 >= 0 ? sum +| entry.1 : sum
    }
  }
}

/// Reads datagrams from the `wire` table, which stores their bytes in pieces.
struct WirePieces: ~Copyable {
  private var rows: SQLiteStatement
  private var piece: Int64 = -1
  private var bytes: [UInt8] = []
  private static let length: Int64 = 8152

  init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    rows = try connection.prepare("SELECT bytes FROM wire WHERE piece = ?1")
  }

  /// Returns the bytes at a position, or fewer if the take lacks some of them.
  mutating func read(_ position: Int64, _ count: Int64) throws(SQLiteError) -> [UInt8] {
    guard position >= 0, count > 0 else { return [] }
    var result: [UInt8] = []
    var place = position
    while place < position +| count {
      if place / Self.length != piece {
        piece = place / Self.length
        rows.reset()
        rows.bind(piece, at: 1)
        bytes = try rows.step() ? rows.bytes(0) : []
      }
      let begin = Int(place % Self.length)
      let end = min(bytes.count, begin +| Int(position +| count -| place))
      guard begin < end else { break }
      result += bytes[begin..<end]
      place +|= Int64(end -| begin)
    }
    return result
  }
}
