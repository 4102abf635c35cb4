import Tape
import Wire

/// Reads calls, events and statistics from a take's rows.
struct ReportReader {
  private let peer: Int64?
  private let window: ClosedRange<Int64>
  private let start: Int64
  private let withSecrets: Bool

  init(peer: Int64?, window: ClosedRange<Int64>, start: Int64, withSecrets: Bool) {
    self.peer = peer
    self.window = window
    self.start = start
    self.withSecrets = withSecrets
  }

  private func time(_ at: Int64) -> Double { Double(start +| at) / 1e6 }

  private func json(_ text: String?) -> JSONValue {
    guard let text else { return .null }
    var limits = JSONValue.Limits()
    limits.values = 1_000_000
    let value = (try? JSONValue(parsing: text, limits: limits)) ?? .text(text)
    return withSecrets ? value : ReportSecrets.removed(from: value)
  }

  /// Returns the connections; if another stack reported any of them, the page follows with the
  /// number 0.
  func reporters(_ connection: borrowing SQLiteConnection) throws(SQLiteError) -> [Reporter] {
    let rows = try connection.prepare(
      "SELECT peer, label, role, at_ns, configuration FROM peer WHERE peer > 0 ORDER BY row")
    var found: [Reporter] = []
    while try rows.step() {
      let (number, label, role, at, configuration) = rows.values(
        Int64.self, String.self, String.self, Int64.self, String.self)
      guard peer == nil || peer == number else { continue }
      found.append(
        Reporter(
          number: number, name: role == "reported" ? label : "1-\(number)", label: label,
          role: role, at: at, configuration: json(configuration)))
    }
    // Rows without a peer also come from rooms and audio sessions, so they alone do not show that
    // there is a page.
    if found.contains(where: { $0.role == "reported" }) {
      found.append(
        Reporter(
          number: 0, name: "", label: "", role: "reported", at: .min, configuration: .null))
    }
    return found
  }

  // MARK: Calls and events

  /// Returns the calls and events in the window, in the order of their rows.
  func events(
    _ connection: borrowing SQLiteConnection, _ reporters: [Reporter]
  ) throws(SQLiteError) -> [ReportEvent] {
    var events: [ReportEvent] = []
    try addCalls(connection, reporters, to: &events)
    try addStates(connection, reporters, to: &events)
    try addCandidates(connection, reporters, to: &events)
    try addTracks(connection, reporters, to: &events)
    try addDescriptions(connection, reporters, to: &events)
    try addReported(connection, reporters, to: &events)
    return events.filter { window.contains($0.at) }.enumerated()
      .sorted { ($0.element.row, $0.offset) < ($1.element.row, $1.offset) }
      .map(\.element)
  }

  private func reporter(_ number: Int64, _ reporters: [Reporter]) -> Reporter? {
    reporters.first { $0.number == number }
  }

  /// Adds API calls with their results, each at its time.
  private func addCalls(
    _ connection: borrowing SQLiteConnection, _ reporters: [Reporter],
    to events: inout [ReportEvent]
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT call_request.row, call_request.peer, call_request.at_ns, call_request.call, name,
        arguments, reply, error, call_reply.row, call_reply.at_ns
      FROM call_request LEFT JOIN call_reply
        ON call_reply.peer = call_request.peer AND call_reply.call = call_request.call
      WHERE name NOT IN ('getStats', 'RTCPeerConnection') ORDER BY call_request.row
      """)
    // A call of setLocalDescription() without an argument sets a description that is known only
    // after the call.
    var implicit: [Int64: Int] = [:]
    while try rows.step() {
      let (row, number, at, call) = rows.values(
        Int64.self, Int64.self, Int64.self, Int64.self)
      let (name, arguments, reply, error) = rows.values(
        from: 4, String.self, String.self, String?.self, String?.self)
      let (replyRow, replyAt) = rows.values(from: 8, Int64?.self, Int64?.self)
      // A `close` that ends the entire file is left out, because each format has its own ending.
      guard let reporter = reporter(number, reporters), reporter.role != "observed",
        number > 0 || call > 0 && name != "close"
      else { continue }
      let isOwn = reporter.role != "reported"
      if isOwn, name == "localDescription" {
        if let place = implicit[number] {
          events[place].value = Self.argument(json(reply))
          implicit[number] = nil
        }
        continue
      }
      guard !isOwn || Self.calls.contains(name) else { continue }
      let value = isOwn ? Self.argument(json(arguments)) : json(arguments)
      events.append(
        ReportEvent(
          row: row, peer: number, at: at, time: time(at), kind: .call, name: name, value: value,
          call: call))
      if isOwn, name == "setLocalDescription", value == .null {
        implicit[number] = events.count - 1
      }
      guard let replyRow, let replyAt, !isOwn || Self.answered.contains(name) else { continue }
      events.append(
        ReportEvent(
          row: replyRow, peer: number, at: replyAt, time: time(replyAt),
          kind: error == nil ? .success : .failure, name: name,
          value: error.map { .text($0) } ?? json(reply), call: call))
    }
  }

  /// The endpoint calls of the W3C API that have results; `calls` adds the calls without results.
  private static let answered: Set<String> = [
    "createOffer", "createAnswer", "setLocalDescription", "setRemoteDescription",
    "addIceCandidate",
  ]
  private static let calls = answered.union([
    "addTrack", "removeTrack", "addTransceiver", "createDataChannel", "restartIce",
    "setConfiguration", "setParameters", "setCodecPreferences", "replaceTrack", "close",
  ])

  /// Returns a call's single argument, or null; a description begins with its type, as readers
  /// expect.
  private static func argument(_ value: JSONValue) -> JSONValue {
    let inner = value["_0"] ?? value
    guard case .object(let members) = inner else { return inner }
    guard !members.isEmpty else { return .null }
    guard let sdp = inner["sdp"], let type = inner["type"] else { return inner }
    return .members(("type", type), ("sdp", sdp))
  }

  private func addStates(
    _ connection: borrowing SQLiteConnection, _ reporters: [Reporter],
    to events: inout [ReportEvent]
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT row, peer, at_ns, machine, to_state FROM state
      WHERE machine IN ('signaling', 'ice-connection', 'ice-gathering', 'connection')
      """)
    while try rows.step() {
      let (row, number, at, machine, state) = rows.values(
        Int64.self, Int64.self, Int64.self, String.self, String.self)
      guard let reporter = reporter(number, reporters), reporter.role != "reported" else {
        continue
      }
      let name = machine.split(separator: "-").joined() + "statechange"
      events.append(
        ReportEvent(
          row: row, peer: number, at: at, time: time(at), kind: .event, name: name,
          value: .text(state)))
    }
  }

  private func addCandidates(
    _ connection: borrowing SQLiteConnection, _ reporters: [Reporter],
    to events: inout [ReportEvent]
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT row, peer, at_ns, 'candidate:' || foundation || ' ' || component || ' ' || protocol
        || ' ' || priority || ' ' || address || ' ' || port || ' typ ' || candidate_type
        || coalesce(' raddr ' || related_address || ' rport ' || related_port, '')
        || coalesce(' ufrag ' || username_fragment, ''), username_fragment
      FROM candidate WHERE type = 'local-candidate' AND candidate_type <> 'prflx'
      """)
    while try rows.step() {
      let (row, number, at, text, fragment) = rows.values(
        Int64.self, Int64.self, Int64.self, String.self, String?.self)
      guard let reporter = reporter(number, reporters), reporter.role != "reported" else {
        continue
      }
      events.append(
        ReportEvent(
          row: row, peer: number, at: at, time: time(at), kind: .event, name: "icecandidate",
          value: .members(
            ("sdpMid", .text("0")), ("sdpMLineIndex", .integer(0)), ("candidate", .text(text)),
            ("usernameFragment", fragment.map { .text($0) }))))
    }
  }

  /// Adds events for newly negotiated transceivers, received tracks, and data channels that the
  /// remote side opened; in observed calls, also the data channels that this side created.
  private func addTracks(
    _ connection: borrowing SQLiteConnection, _ reporters: [Reporter],
    to events: inout [ReportEvent]
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT min(row), peer, at_ns, track, mid, kind, direction, codec, ssrc FROM track
      WHERE codec <> 'rtx' GROUP BY peer, track, direction ORDER BY row
      """)
    while try rows.step() {
      let (row, number, at, track, mid) = rows.values(
        Int64.self, Int64.self, Int64.self, Int64.self, String.self)
      let (kind, direction) = rows.values(from: 5, String.self, String.self)
      guard let reporter = reporter(number, reporters), reporter.role != "reported" else {
        continue
      }
      let name = direction == "in" ? "track" : "transceiverModified"
      let value: JSONValue =
        direction == "in"
        ? .list([.text(kind), .text("track-\(track)"), .text("mid \(mid)")])
        : .members(
          ("mid", .text(mid)), ("kind", .text(kind)), ("direction", .text("sendrecv")),
          ("sender", .members(("track", .text("track-\(track)")), ("streams", .list([])))))
      events.append(
        ReportEvent(
          row: row, peer: number, at: at, time: time(at), kind: .event, name: name, value: value))
    }
    let channels = try connection.prepare(
      """
      SELECT min(row), peer, at_ns, label, id, remote FROM channel
      GROUP BY peer, channel ORDER BY row
      """)
    while try channels.step() {
      let (row, number, at, label, id, isRemote) = channels.values(
        Int64.self, Int64.self, Int64.self, String.self, Int64?.self, Int64.self)
      guard let reporter = reporter(number, reporters), reporter.role != "reported",
        isRemote == 1 || reporter.role == "observed"
      else { continue }
      events.append(
        ReportEvent(
          row: row, peer: number, at: at, time: time(at), kind: isRemote == 1 ? .event : .call,
          name: isRemote == 1 ? "datachannel" : "createDataChannel",
          value: .members(("label", .text(label)), ("id", id.map { .integer($0) }))))
    }
  }

  /// Adds the descriptions signaled in observed calls, as if they had been set.
  private func addDescriptions(
    _ connection: borrowing SQLiteConnection, _ reporters: [Reporter],
    to events: inout [ReportEvent]
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      "SELECT row, peer, at_ns, direction, type, sdp FROM description ORDER BY row")
    while try rows.step() {
      let (row, number, at, direction) = rows.values(
        Int64.self, Int64.self, Int64.self, String.self)
      let (type, sdp) = rows.values(from: 4, String?.self, String.self)
      guard let reporter = reporter(number, reporters), reporter.role == "observed" else {
        continue
      }
      let name = direction == "in" ? "setRemoteDescription" : "setLocalDescription"
      let text = withSecrets ? sdp : ReportSecrets.removed(fromText: sdp)
      for kind in [ReportEvent.Kind.call, .success] {
        events.append(
          ReportEvent(
            row: row, peer: number, at: at, time: time(at), kind: kind, name: name,
            value: kind == .success
              ? .null : .members(("type", .text(type ?? "offer")), ("sdp", .text(text))),
            call: row))
      }
    }
  }

  /// Adds the events that another stack reported.
  private func addReported(
    _ connection: borrowing SQLiteConnection, _ reporters: [Reporter],
    to events: inout [ReportEvent]
  ) throws(SQLiteError) {
    guard reporters.contains(where: { $0.number == 0 }) else { return }
    let rows = try connection.prepare("SELECT row, peer, at_ns, type, detail FROM event")
    while try rows.step() {
      let (row, number, at, type, detail) = rows.values(
        Int64.self, Int64.self, Int64.self, String.self, String.self)
      guard let reporter = reporter(number, reporters), reporter.role == "reported" else {
        continue
      }
      events.append(
        ReportEvent(
          row: row, peer: number, at: at, time: time(at), kind: .event, name: type,
          value: json(detail)))
    }
  }

  // MARK: Statistics

  /// The current state of a peer's stats objects while its rows are read.
  private struct Known {
    var objects: [StatsReport.Object] = []
    var places: [String: Int] = [:]
    var changed: Set<String> = []
    var row: Int64 = 0
    var at: Int64 = 0

    mutating func set(_ object: StatsReport.Object, row: Int64, at: Int64) {
      (self.row, self.at) = (row, at)
      changed.insert(object.id)
      if let place = places[object.id] {
        objects[place] = object
      } else {
        places[object.id] = objects.count
        objects.append(object)
      }
    }

    mutating func remove(_ ids: [String]) {
      guard ids.contains(where: { places[$0] != nil }) else { return }
      objects.removeAll { ids.contains($0.id) }
      places = Dictionary(
        objects.enumerated().map { ($0.element.id, $0.offset) }, uniquingKeysWith: { $1 })
    }
  }

  /// Calls a closure with each of the take's reports in order; every report is complete.
  func reports(
    _ connection: borrowing SQLiteConnection, _ reporters: [Reporter],
    _ use: (StatsReport) -> Bool
  ) throws(SQLiteError) {
    var gone = try goneObjects(connection)[...]
    var known: [Int64: Known] = [:]
    var current: (peer: Int64, step: Int64)?
    func report(_ number: Int64, _ step: Int64) -> Bool {
      guard var state = known[number] else { return true }
      var ids: [String] = []
      // A step's rows precede the next step's.
      while let next = gone.first, next.row < (step + 1) << 16 {
        gone = gone.dropFirst()
        if next.peer == number { ids += next.ids } else { known[next.peer]?.remove(next.ids) }
      }
      state.remove(ids)
      let made =
        state.objects.filter { state.changed.contains($0.id) && !Self.isRemote($0.type) }
        .map(\.timestamp).max() ?? time(state.at)
      let result = StatsReport(
        row: state.row, peer: number, time: made, objects: state.objects, changed: state.changed,
        gone: ids)
      state.changed = []
      known[number] = state
      return !window.contains(state.at) || use(result)
    }
    let rows = try connection.prepare(
      """
      SELECT row, peer, at_ns, id, type, timestamp_ms, members FROM stat
      WHERE at_ns <= \(window.upperBound) ORDER BY row
      """)
    while try rows.step() {
      let (row, number, at) = rows.values(Int64.self, Int64.self, Int64.self)
      let (id, type, timestamp, members) = rows.values(
        from: 3, String.self, String.self, Double.self, String?.self)
      guard reporter(number, reporters) != nil else { continue }
      if let open = current, open != (number, row >> 16), !report(open.peer, open.step) { return }
      current = (number, row >> 16)
      let value = (try? JSONValue(parsing: members ?? "{}")) ?? .object([])
      known[number, default: Known()].set(
        StatsReport.Object(id: id, type: type, timestamp: timestamp, members: value.members),
        row: row, at: at)
    }
    if let current { _ = report(current.peer, current.step) }
  }

  static func isRemote(_ type: String) -> Bool {
    type == "remote-inbound-rtp" || type == "remote-outbound-rtp"
  }

  private func goneObjects(
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [(row: Int64, peer: Int64, ids: [String])] {
    let rows = try connection.prepare(
      """
      SELECT row, peer, reply FROM call_reply
      WHERE reply LIKE '{"objects":%' AND reply LIKE '%"gone"%' ORDER BY row
      """)
    var found: [(row: Int64, peer: Int64, ids: [String])] = []
    while try rows.step() {
      let ids = json(rows.text(2))["gone"]?.elements.compactMap(\.text) ?? []
      found.append((rows.integer(0), rows.integer(1), ids))
    }
    return found
  }
}
