package import Tape
import Wire

/// Writes a take's events as a Perfetto trace (`perfetto.protos.Trace`): https://ui.perfetto.dev
/// shows it, and Perfetto's trace processor queries it with SQL.
///
/// Each peer is shown as a process, and each packet as a flow: from capture through encoder and
/// SRTP to the socket, and on the other side from the socket through SRTP, jitter buffer and
/// decoder to the screen or loudspeaker. The few protobuf messages needed are encoded by hand,
/// because Perfetto's library would need a protobuf compiler to generate code for all messages.
package struct PerfettoExport {
  /// The trace file that an export wrote, with the number of its events.
  package struct Written: Sendable {
    package var path: String
    package var events = 0
    package var flows = 0
  }

  private let take: String
  private let peer: Int64?
  private let window: ClosedRange<Int64>
  private let present: WholeFile.Present

  package init(
    take: String, peer: Int64?, window: ClosedRange<Int64>, present: WholeFile.Present
  ) {
    self.take = take
    self.peer = peer
    self.window = window
    self.present = present
  }

  /// Writes the file, unless it would be empty.
  package func write(to path: String, progress: (String) -> Void) throws(ExportFailure) -> Written {
    let connection = try ExportFailure.reading { () throws(TapeError) in
      try TakeFile.openForQueries(take)
    }
    let header = try ExportFailure.reading { () throws(TapeError) in
      try TakeHeader.read(from: connection, path: take)
    }
    let times = try ExportFailure.reading { () throws(TapeError) in
      var times: [Int64] = []
      try StepTimes.each(in: take, until: Instant(nanoseconds: window.upperBound)) { _, at in
        times.append(at.nanoseconds)
      }
      return times
    }
    var story = TraceStory(
      TraceFile(try TextFile(path, present), start: header.startUnixNanoseconds), peer: peer,
      window: window, times: times)
    try ExportFailure.asking(take) { () throws(SQLiteError) in
      try story.readPeers(connection)
      try story.readLinks(connection)
    }
    progress("frames")
    try ExportFailure.asking(take) { () throws(SQLiteError) in try story.addFrames(connection) }
    progress("packets")
    try ExportFailure.asking(take) { () throws(SQLiteError) in try story.addPackets(connection) }
    progress("events")
    try ExportFailure.asking(take) { () throws(SQLiteError) in try story.addStates(connection) }
    return try story.finish(path)
  }
}

/// Converts a take's rows into trace events.
private struct TraceStory {
  private var file: TraceFile
  private let peer: Int64?
  private let window: ClosedRange<Int64>
  /// The times of the steps, beginning with step 1.
  private let times: [Int64]
  private var labels: [Int64: String] = [:]
  /// The sent packet's row by the received packet's row, if the take has both; the two rows form
  /// one flow.
  private var sentRows: [Int64: Int64] = [:]
  /// The flows of each frame's packets, and the time at which the first packet arrived.
  private var carried: [Int64: (flows: [UInt64], first: Int64)] = [:]
  /// The flows written so far, so that each is counted once.
  private var flows: Set<UInt64> = []

  init(_ file: TraceFile, peer: Int64?, window: ClosedRange<Int64>, times: [Int64]) {
    self.file = file
    self.peer = peer
    self.window = window
    self.times = times
  }

  private var span: String { "at_ns BETWEEN \(window.lowerBound) AND \(window.upperBound)" }
  private var whose: String { peer.map { "peer = \($0)" } ?? "peer > 0" }

  private func flow(_ row: Int64) -> UInt64 { UInt64(bitPattern: sentRows[row] ?? row) }

  mutating func readPeers(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare("SELECT peer, label FROM peer WHERE peer > 0")
    while try rows.step() { labels[rows.integer(0)] = rows.text(1) ?? "" }
  }

  mutating func readLinks(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let lives = try connection.prepare(
      "SELECT sent_row, arrived_row FROM packet_life WHERE sent_row <> arrived_row")
    while try lives.step() { sentRows[lives.integer(1)] = lives.integer(0) }
    let rows = try connection.prepare(
      "SELECT frame_row, packet_row, at_ns FROM frame_packet WHERE \(whose)")
    while try rows.step() {
      let (frame, packet, at) = rows.values(Int64.self, Int64.self, Int64.self)
      var known = carried[frame] ?? ([], .max)
      known.flows.append(flow(packet))
      known.first = min(known.first, at)
      carried[frame] = known
    }
  }

  private mutating func track(_ peer: Int64, _ name: String, lane: Int = 0) -> UInt64 {
    file.track(peer, labels[peer] ?? "", name, lane: lane)
  }

  // MARK: Frames

  /// A frame that is shown until the next one replaces it.
  private struct Shown {
    var at: Int64
    var name: String
    var flows: [UInt64]
  }

  mutating func addFrames(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT row, at_ns, peer, track, kind, direction, codec, outcome, key, size
      FROM frame WHERE \(whose) AND \(span) ORDER BY row
      """)
    var shown: [String: (peer: Int64, frame: Shown)] = [:]
    var lanes: [String: [Int64]] = [:]
    // A frame captured in a step was encoded in the same step.
    var captured: [String: [UInt64]] = [:]
    while try rows.step() {
      let (row, at, number, track, kind) = rows.values(
        Int64.self, Int64.self, Int64.self, Int64.self, String.self)
      let (direction, codec, outcome, isKey, size) = rows.values(
        from: 5, String.self, String.self, String.self, Int64.self, Int64.self)
      let packets = carried[row]
      let flows = packets?.flows ?? []
      let name = isKey == 1 && kind == "video" ? "key frame" : "\(kind) frame"
      let facts: [(String, TraceValue)] = [
        ("codec", .text(codec)), ("outcome", .text(outcome)), ("bytes", .number(size)),
      ]
      let place = "\(kind) \(track)"
      guard direction == "in" else {
        let encoder = self.track(number, "encoder \(place)")
        file.instant(encoder, name, at, flows: flows, facts)
        captured["\(number) \(track) \(row >> 16)"] = flows
        continue
      }
      if let first = packets?.first, first < at {
        // Frames in the buffer overlap, so each goes into the first free lane.
        var ends = lanes["\(number) \(place)"] ?? []
        let lane = ends.firstIndex { $0 <= first } ?? ends.count
        if lane == ends.count { ends.append(at) } else { ends[lane] = at }
        lanes["\(number) \(place)"] = ends
        let buffer = self.track(number, "jitter buffer \(place)", lane: lane)
        file.slice(
          buffer, name, first, at, flows: flows, [("packets", .number(Int64(flows.count)))])
      }
      let decoder = self.track(number, "decoder \(place)")
      file.instant(decoder, outcome == "decoded" ? name : outcome, at, flows: flows, facts)
      if kind == "audio" {
        let speaker = self.track(number, "loudspeaker \(place)")
        file.instant(speaker, outcome == "decoded" ? "played" : outcome, at, ending: flows, [])
      } else if outcome != "undecodable" {
        show(number, "screen \(place)", Shown(at: at, name: name, flows: flows), &shown)
      }
    }
    for key in shown.keys.sorted() {
      guard let (number, frame) = shown[key] else { continue }
      let screen = track(number, key.split(separator: " ").dropFirst().joined(separator: " "))
      file.slice(screen, frame.name, frame.at, frame.at + 33_000_000, ending: frame.flows, [])
    }
    try addCaptures(connection, captured)
  }

  private mutating func show(
    _ number: Int64, _ name: String, _ frame: Shown,
    _ shown: inout [String: (peer: Int64, frame: Shown)]
  ) {
    let key = "\(number) \(name)"
    if let former = shown[key]?.frame {
      let screen = track(number, name)
      file.slice(screen, former.name, former.at, frame.at, ending: former.flows, [])
    }
    shown[key] = (number, frame)
  }

  private mutating func addCaptures(
    _ connection: borrowing SQLiteConnection, _ flows: [String: [UInt64]]
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT row, at_ns, peer, track, kind FROM capture
      WHERE kind NOT LIKE 'relayed %' AND \(whose) AND \(span) ORDER BY row
      """)
    while try rows.step() {
      let (row, at, number, track, kind) = rows.values(
        Int64.self, Int64.self, Int64.self, Int64.self, String.self)
      let source = self.track(number, "capture \(kind == "audio" ? kind : "video") \(track)")
      file.instant(
        source, "captured", at, flows: flows["\(number) \(track) \(row >> 16)"] ?? [], [])
    }
  }

  // MARK: Packets

  mutating func addPackets(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT "row", peer, direction, at_ns, ssrc, payload_type, sequence, size
      FROM rtp WHERE \(whose) AND \(span) ORDER BY "row"
      """)
    while try rows.step() {
      let (row, number, direction, at) = rows.values(
        Int64.self, Int64.self, String.self, Int64.self)
      let (ssrc, type, sequence, size) = rows.values(
        from: 4, Int64.self, Int64.self, Int64.self, Int64.self)
      let facts: [(String, TraceValue)] = [
        ("ssrc", .number(ssrc)), ("payload_type", .number(type)), ("sequence", .number(sequence)),
        ("bytes", .number(size)),
      ]
      let flow = [flow(row)]
      flows.insert(flow[0])
      let isIn = direction == "in"
      let socket = track(number, isIn ? "socket in" : "socket out")
      let protection = track(number, isIn ? "SRTP in" : "SRTP out")
      let step = Int(row >> 16)
      // A packet is decrypted in its step, and may have waited in the socket before that.
      let worked = step > 0 && step <= times.count ? max(at, times[step - 1]) : at
      if isIn {
        file.instant(socket, "RTP", at, flows: flow, facts)
        file.instant(protection, "open", worked, flows: flow, [])
      } else {
        file.instant(protection, "protect", at, flows: flow, [])
        file.instant(socket, "RTP", at, flows: flow, facts)
      }
    }
    let lost = try connection.prepare(
      """
      SELECT coalesce(peer, to_peer), coalesce(sent_ns, asked_ns), ssrc, sequence, sent_row
      FROM packet_life WHERE lost = 1 AND coalesce(sent_ns, asked_ns) IS NOT NULL
      """)
    while try lost.step() {
      let (number, at, ssrc, sequence, row) = lost.values(
        Int64.self, Int64.self, Int64.self, Int64.self, Int64?.self)
      guard peer == nil || peer == number, window.contains(at) else { continue }
      let path = track(number, "lost on the way")
      file.instant(
        path, "lost", at, ending: row.map { [flow($0)] } ?? [],
        [("ssrc", .number(ssrc)), ("sequence", .number(sequence))])
    }
  }

  // MARK: States, calls, speech, bit rates

  mutating func addStates(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let states = try connection.prepare(
      """
      SELECT peer, at_ns, machine, to_state,
        lead(at_ns) OVER (PARTITION BY peer, machine ORDER BY row)
      FROM state WHERE \(whose) ORDER BY row
      """)
    let end = min(times.last ?? 0, window.upperBound)
    while try states.step() {
      let (number, at, machine, state, next) = states.values(
        Int64.self, Int64.self, String.self, String.self, Int64?.self)
      let (from, to) = (max(at, window.lowerBound), min(next ?? end, window.upperBound))
      guard from <= to else { continue }
      let line = track(number, "state \(machine)")
      file.slice(line, state, from, max(from, to), [])
    }
    let calls = try connection.prepare(
      """
      SELECT peer, at_ns, name FROM call_request
      WHERE \(whose) AND \(span) AND name <> 'getStats' ORDER BY row
      """)
    while try calls.step() {
      let (number, at, name) = calls.values(Int64.self, Int64.self, String.self)
      let line = track(number, "calls")
      file.instant(line, name, at, flows: [], [])
    }
    let speech = try connection.prepare(
      "SELECT peer, participant, from_ns, to_ns FROM speaker WHERE \(whose) ORDER BY from_ns")
    while try speech.step() {
      let (number, participant, from, to) = speech.values(
        Int64.self, String.self, Int64.self, Int64.self)
      guard to >= window.lowerBound, from <= window.upperBound else { continue }
      let line = track(number, "speech \(participant)")
      file.slice(
        line, "speaks", max(from, window.lowerBound), min(max(from, to), window.upperBound), [])
    }
    let rates = try connection.prepare(
      """
      SELECT peer, direction, second, sum(bits_per_second) FROM bitrate
      WHERE \(whose) GROUP BY 1, 2, 3 ORDER BY 3
      """)
    while try rates.step() {
      let (number, direction, second, bits) = rates.values(
        Int64.self, String.self, Int64.self, Double.self)
      let at = second *| 1_000_000_000
      guard window.contains(at) else { continue }
      file.counter(
        number, labels[number] ?? "", direction == "in" ? "received kbit/s" : "sent kbit/s", at,
        bits / 1_000)
    }
  }

  mutating func finish(_ path: String) throws(ExportFailure) -> PerfettoExport.Written {
    let written = PerfettoExport.Written(path: path, events: file.events, flows: flows.count)
    if written.events > 0 { try file.finish() }
    return written
  }
}
