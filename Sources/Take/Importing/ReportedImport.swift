import FoundationEssentials
package import Observer
import Tape
import Wire

/// Creates a take of another stack's reports about itself.
package struct ReportedImport {
  /// The summary of an imported file of reports.
  package struct Summary: Encodable, Sendable {
    package var take: String
    package var format: String
    package var connections = 0
    package var events = 0
    /// Reports of getStats.
    package var reports = 0
    package var steps = 0
    /// The size of the take.
    package var bytes = 0
    /// Data missing from the file, each in a sentence.
    package var notes: [String] = []

    package var words: String {
      let parts = [
        counted(UInt64(connections), "connection"), counted(UInt64(events), "event"),
        counted(UInt64(reports), "report") + " of statistics",
      ]
      return
        ([

          "\(take): a \(format), \(parts.joined(separator: ", ")), "
            + counted(UInt64(bytes), "byte")
        ]
        + notes).joined(separator: "\n")
    }
  }

  private let text: SpooledText
  private let name: String
  private let format: ReportedFormat
  private let label: String
  private let reports: ImportReports

  /// - Parameters:
  ///   - path: the file; `-` is standard input.
  ///   - label: the label of the take.
  package init(
    _ path: String, _ format: ReportedFormat, label: String, reports: ImportReports
  ) throws {
    text = try SpooledText(path, notice: reports.notice)
    name = PrintableText.line(path)
    self.format = format
    self.label = label
    self.reports = reports
  }

  /// Writes the take.
  package func write(to path: String) throws -> Summary {
    switch format {
    case .rtcstats, .jitsi: try writeLines(to: path)
    case .internals, .getstats: try writeDocument(to: path)
    }
  }

  private func none() -> TapeError {
    TapeError(
      path: name, place: "",
      reason: "no report of a connection is in it, though it looks like a \(format.words); "
        + "--as names another format")
  }

  // MARK: One document

  private func writeDocument(to path: String) throws -> Summary {
    let bytes = try text.all()
    let document: JSONValue
    do throws(JSONError) {
      var limits = ReportedLines.limits
      limits.values = 8_000_000
      document = try JSONValue(parsing: String(decoding: bytes, as: UTF8.self), limits: limits)
    } catch {
      throw TapeError(
        path: name, place: "",
        reason: "it is neither a packet capture nor whole JSON: \(error.reason); a dump that was "
          + "cut off while it was saved cannot be read")
    }
    guard let found = ReportedDocument(document), !found.events.isEmpty else { throw none() }
    var keys = found.events.map { (connection: $0.connection, milliseconds: $0.unixMilliseconds) }
    let order = ReportedEvent.order(&keys)
    let times = keys.compactMap(\.milliseconds)
    let writing = try ReportedWriting(
      path, format: found.format, head: found.head, label: label,
      start: times.min(), latest: times.max())
    for place in order { writing.add(found.events[place], at: keys[place].milliseconds) }
    if found.hasSpreadTimes {
      writing.lacks(
        "report-times",
        "the dump has no times of its statistics: they are spread evenly from its first to its last"
      )
    }
    return try writing.finish()
  }

  // MARK: Lines

  private struct Line {
    var offset: Int
    var count: Int
  }

  private func writeLines(to path: String) throws -> Summary {
    let dialect: ReportedLines.Dialect = format == .rtcstats ? .rtcstats : .jitsi
    // Lines of Jitsi may be out of order, so they are sorted first.
    var lines: [Line] = []
    var keys: [(connection: String?, milliseconds: Double?)] = []
    var survey = ReportedLines(dialect)
    defer { reports.end() }
    try text.eachLine { bytes, offset in
      // The first line of rtcstats contains the base of all times.
      if dialect == .rtcstats, !lines.isEmpty { return }
      reports.progress("reading", offset)
      let event = survey.event(ofLine: String(decoding: bytes, as: UTF8.self))
      guard let event else { return }
      lines.append(Line(offset: offset, count: bytes.count))
      keys.append((event.connection, event.unixMilliseconds))
    }
    guard !lines.isEmpty else { throw none() }
    let order = ReportedEvent.order(&keys)
    let times = keys.compactMap(\.milliseconds)
    let writing = try ReportedWriting(
      path, format: format.words, head: survey.head, label: label, start: times.min(),
      latest: times.max())
    var reader = ReportedLines(dialect)
    if dialect == .rtcstats {
      try text.eachLine { bytes, offset in
        reports.progress("importing", offset)
        if let event = reader.event(ofLine: String(decoding: bytes, as: UTF8.self)) {
          try writing.check()
          writing.add(event, at: event.unixMilliseconds)
        }
      }
    } else {
      for place in order {
        let bytes = try text.bytes(at: lines[place].offset, count: lines[place].count)
        reports.progress("importing", lines[place].offset)
        if let event = reader.event(ofLine: String(decoding: bytes, as: UTF8.self)) {
          try writing.check()
          writing.add(event, at: keys[place].milliseconds)
        }
      }
    }
    let strange = max(reader.strangeLines, survey.strangeLines)
    if strange > 0 {
      writing.lacks("strange-lines", "\(counted(strange, "line")) of no known form, passed over")
    }
    return try writing.finish()
  }
}

/// Writes reported events into a take.
private final class ReportedWriting {
  private let writer: TapeWriter
  private let actor: UInt32
  private let machine = ReportedMachine()
  private var outbox = Outbox<ReportedOutput>()
  private let start: Double
  private var now = Instant.zero
  private var lastMilliseconds: Double
  private var peers: [String: UInt32] = [:]
  /// The number of the last call of each peer, and calls that wait for their results.
  private var calls: [UInt32: UInt32] = [:]
  private var waiting: [UInt32: [(id: UInt32, name: String, correlation: String?)]] = [:]
  private var summary: ReportedImport.Summary

  init(
    _ path: String, format: String, head: JSONValue?, label: String, start: Double?, latest: Double?
  ) throws(TapeError) {
    self.start = start ?? 0
    lastMilliseconds = self.start
    summary = ReportedImport.Summary(take: path, format: format)
    do {
      var options = TapeWriter.Options()
      options.label = label
      options.startUnixNanoseconds = Self.nanoseconds(self.start)
      options.toolVersion = retakeVersion
      options.waitsForDisk = true
      options.queueLimit = 16 << 20
      options.staysIncomplete = false
      options.toolchain = try Toolchain.current(for: path)
      writer = try TapeWriter(path: path, options: options)
    }
    actor = writer.addActor(.reported, label: "reported")
    step(.genesis(ReportedGenesis(format: format, head: head?.json)))
    if let latest, latest < 1e9 {
      lacks("no-clock", "the file counts its events in place of telling their times")
    }
  }

  /// Stops when the take cannot be written any further.
  func check() throws(TapeError) {
    if let error = writer.error { throw error }
  }

  /// Whole milliseconds are exact; a `Double` cannot represent today's dates in nanoseconds.
  private static func nanoseconds(_ milliseconds: Double) -> Int64 {
    let bounded = max(min(milliseconds, 4e12), -4e12)
    let whole = bounded.rounded(.down)
    guard let exact = Int64(exactly: whole) else { return 0 }
    return exact * 1_000_000 + Int64(((bounded - whole) * 1e6).rounded())
  }

  private func instant(_ milliseconds: Double) -> Instant {
    Instant(nanoseconds: max(0, Self.nanoseconds(milliseconds) - Self.nanoseconds(start)))
  }

  /// Adds an event; the first event of a connection creates it.
  ///
  /// - Parameter time: its Unix time in milliseconds; nil for that of the previous event.
  func add(_ event: ReportedEvent, at time: Double?) {
    let milliseconds = time ?? lastMilliseconds
    lastMilliseconds = milliseconds
    let at = instant(milliseconds)
    now = max(now, at)
    summary.events += 1
    let peer = peer(of: event, at)
    switch event.content {
    case .connection: break
    case .call(let name, let arguments):
      let id = nextCall(of: peer)
      waiting[peer, default: []].append((id, name, event.correlation))
      if waiting[peer, default: []].count > 1000 { waiting[peer]?.removeFirst() }
      step(.call(peer: peer, at: at, id: id, name: name, arguments: text(arguments)))
    case .success(let name, let result):
      step(
        .reply(peer: peer, at: at, id: answered(peer, name, event), reply: text(result), error: nil)
      )
    case .failure(let name, let reason):
      step(
        .reply(
          peer: peer, at: at, id: answered(peer, name, event), reply: nil,
          error: reason?.text ?? text(reason)))
    case .event(let name, let detail):
      step(.event(peer: peer, at: at, name: name, detail: text(detail)))
    case .stats(var report):
      summary.reports += 1
      summary.events -= 1
      report.timestamp = report.timestamp ?? milliseconds
      step(.stats(peer: peer, at: at, id: nextCall(of: peer), report: report.value.json))
    }
  }

  private func text(_ value: JSONValue?) -> String { value?.json ?? "null" }

  private func peer(of event: ReportedEvent, _ at: Instant) -> UInt32 {
    guard let name = event.connection else { return 0 }
    if let known = peers[name] { return known }
    guard peers.count < ReportedMachine.peersMaximum else { return 0 }
    let number = UInt32(peers.count + 1)
    peers[name] = number
    summary.connections += 1
    var configuration: JSONValue?
    if case .connection(let value) = event.content { configuration = value }
    step(.connection(peer: number, at: at, label: name, configuration: text(configuration)))
    return number
  }

  private func nextCall(of peer: UInt32) -> UInt32 {
    let number = (calls[peer] ?? 0) + 1
    calls[peer] = number
    return number
  }

  /// The call that a result belongs to: by their common identifier, else the oldest of that name
  /// without one.
  private func answered(_ peer: UInt32, _ name: String, _ event: ReportedEvent) -> UInt32 {
    let open = waiting[peer] ?? []
    let place =
      open.firstIndex { $0.name == name && $0.correlation == event.correlation }
      ?? open.firstIndex { $0.name == name }
    guard let place else { return nextCall(of: peer) }
    waiting[peer]?.remove(at: place)
    return open[place].id
  }

  /// Records that the file lacks something.
  func lacks(_ what: String, _ reason: String) {
    summary.notes.append(reason)
    step(.notSeen(what: what, reason: reason))
  }

  func finish() throws(TapeError) -> ReportedImport.Summary {
    let written = try writer.finish()
    (summary.steps, summary.bytes) = (written.steps, written.bytes)
    return summary
  }

  private func step(_ input: ReportedInput) {
    machine.step(input, at: now, into: &outbox)
    writer.record(
      StepRecord(
        actor: actor, at: now, input: input, outputs: OutputList(outbox.drain()), deadline: nil,
        entropyDrawn: 0))
  }
}
