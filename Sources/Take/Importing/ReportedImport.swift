import FoundationEssentials
package import Observer
import Tape
import Wire

/// Creates a take from another stack's reports about itself.
package struct ReportedImport {
  /// A summary of an imported report file.
  package struct Summary: Encodable, Sendable {
    package var take: String
    package var format: String
    package var connections = 0
    package var events = 0
    /// The number of getStats reports.
    package var reports = 0
    /// The number of encoded frames in the file; nil for formats that hold only reports.
    package var frames: Int?
    package var steps = 0
    /// The take's size in bytes.
    package var bytes = 0
    /// The parts that the file lacks or that could not be read, one sentence each.
    package var notes: [String] = []
    /// The take's length and the reason for writing it, if it was written from a ring; nil
    /// otherwise.
    package private(set) var ringWords: String?

    init(take: String, format: String) { (self.take, self.format) = (take, format) }

    /// Summarizes a take written from a ring.
    package init(_ part: RingTakeSummary) {
      self.init(take: part.capture.take, format: "ring")
      (steps, bytes, notes) = (part.capture.steps, part.capture.bytes, part.capture.notes)
      ringWords = part.words
    }

    /// A phrase that states the numbers of connections, events, reports and frames, or `ringWords`.
    package var partWords: String {
      if let ringWords { return ringWords }
      let parts = [
        counted(UInt64(connections), "connection"), counted(UInt64(events), "event"),
        counted(UInt64(reports), "report") + " of statistics",
        frames.map { counted(UInt64($0), "encoded frame") },
      ]
      return parts.compactMap { $0 }.joined(separator: ", ")
    }

    package var words: String {
      (["\(take): a \(format), \(partWords), \(counted(UInt64(bytes), "byte"))"] + notes)
        .joined(separator: "\n")
    }
  }

  private let text: SpooledText
  /// The number of lines in a log collector's file that contain no event of a call.
  private let linesOfOthers: UInt64
  private let name: String
  private let format: ReportedFormat
  private let label: String
  private let tags: [String: String]
  private let isSpecified: Bool
  private let reports: ImportReports

  /// - Parameters:
  ///   - path: the file; `-` is standard input.
  ///   - isSpecified: whether the user specified the format; if not, it was detected.
  ///   - label: the take's label.
  package init(
    _ path: String, _ format: ReportedFormat, isSpecified: Bool = false, label: String,
    tags: [String: String] = [:],
    reports: ImportReports
  ) throws {
    let spooled = try SpooledText(path, notice: reports.notice)
    (text, linesOfOthers) = try Self.unwrapped(spooled, format)
    name = PrintableText.line(path)
    self.format = format
    self.isSpecified = isSpecified
    self.label = label
    self.tags = tags
    self.reports = reports
  }

  /// The length of a log's beginning that is examined, in bytes.
  private static let headLength = 64 << 10

  /// Removes what a log collector put around each line, and counts the lines without an event; text
  /// that does not come from a log collector stays unchanged.
  private static func unwrapped(
    _ text: SpooledText, _ format: ReportedFormat
  ) throws -> (SpooledText, linesOfOthers: UInt64) {
    guard format == .rtcstats || format == .jitsi,
      LogUnwrapper.lines(atTheBeginOf: try text.bytes(at: 0, count: headLength)) != nil
    else { return (text, 0) }
    var unwrapper = LogUnwrapper()
    let lines = try text.mapped { line in
      unwrapper.line(in: String(decoding: line, as: UTF8.self)).map { Array($0.utf8) }
    }
    return (lines, unwrapper.strangeLines)
  }

  /// Reads the file and writes the take; returns a summary.
  package func write(to path: String) throws -> Summary {
    switch format {
    case .rtcstats, .jitsi:
      if try isArrayOfLines() { return try writeDocument(to: path) }
      return try writeLines(to: path)
    case .internals, .getstats: return try writeDocument(to: path)
    case .aboutwebrtc: return try writePage(to: path)
    }
  }

  /// Returns whether a log is a single JSON array whose elements are the lines.
  private func isArrayOfLines() throws -> Bool {
    let start = try text.bytes(at: 0, count: 64).filter { $0 > 0x20 }
    return ["[[", "[{", "[\"RTCStatsDump\""].contains { start.starts(with: Array($0.utf8)) }
  }

  private func none() -> TapeError {
    TapeError(
      path: name, place: "",
      reason: "it contains no report of a connection"
        + (isSpecified
          ? ""
          : ", though it looks like \(ImportedFormat.reported(format).words); name "
            + "another format with --as"))
  }

  // MARK: One document

  private func writeDocument(to path: String) throws -> Summary {
    let (document, damage) = try document()
    guard let found = ReportedDocument(document) else { throw none() }
    // Once repaired as JSON, the lines of a log may look like one document of the specified format.
    if isSpecified, found.isLog, format == .internals || format == .getstats { throw none() }
    let writing = try write(found.events, of: found.format, head: found.head, to: path)
    for each in damage { writing.report(missing: "damage", each) }
    report(found.strangeLines, to: writing)
    if found.unreadTimes > 0 {
      writing.report(
        missing: "entry-times",
        "the times of \(counted(found.unreadTimes, "entry", "entries")) are of unknown form: "
          + "each is where the one before it is")
    }
    if found.hasSpreadTimes {
      writing.report(
        missing: "report-times",
        "the dump has no times of its statistics: they are spread evenly from its first to its last"
      )
    }
    return try writing.finish()
  }

  /// Parses the document, or the readable part of a damaged one, and describes the damage.
  private func document() throws -> (JSONValue, damage: [String]) {
    let bytes = try text.all()
    var limits = ReportedLines.limits
    limits.values = 8_000_000
    do throws(JSONError) {
      return (try JSONValue(parsing: String(decoding: bytes, as: UTF8.self), limits: limits), [])
    } catch {
      guard let repaired = RepairedJSON(bytes),
        let value = try? JSONValue(
          parsing: String(decoding: repaired.text, as: UTF8.self), limits: limits)
      else {
        throw TapeError(
          path: name, place: "", reason: "it is neither a packet capture nor JSON: \(error.reason)")
      }
      return (value, repaired.notes)
    }
  }

  private func writePage(to path: String) throws -> Summary {
    let page = SavedPage(String(decoding: try text.all(), as: UTF8.self))
    let writing = try write(page.events, of: format.words, head: page.head, to: path)
    writing.report(
      missing: "one-report",
      "the page has the statistics of the instant when it was saved, and sizes in hundredths of a "
        + "kilobyte")
    return try writing.finish()
  }

  /// Writes the events of a file that was read as a whole, in time order.
  private func write(
    _ events: [ReportedEvent], of format: String, head: JSONValue?, to path: String
  ) throws -> ReportedRecorder {
    guard !events.isEmpty else { throw none() }
    var keys = events.map { (connection: $0.connection, milliseconds: $0.unixMilliseconds) }
    let order = ReportedEvent.order(&keys)
    let times = keys.compactMap(\.milliseconds)
    let writing = try ReportedRecorder(
      path, format: format, head: head, options: .importing(label, tags), start: times.min(),
      latest: times.max())
    for place in order { writing.add(events[place], at: keys[place].milliseconds) }
    return writing
  }

  // MARK: Lines

  private struct Line {
    var offset: Int
    var count: Int
  }

  private func writeLines(to path: String) throws -> Summary {
    let dialect: ReportedLines.Dialect = format == .rtcstats ? .rtcstats : .jitsi
    // Jitsi's lines may be out of order, so they are sorted first.
    var lines: [Line] = []
    var keys: [(connection: String?, milliseconds: Double?)] = []
    var survey = ReportedLines(dialect)
    defer { reports.end() }
    try text.eachLine { bytes, offset in
      // The survey of an rtcstats dump needs only the first event: all later times build on its
      // time.
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
    let writing = try ReportedRecorder(
      path, format: format.words, head: survey.head, options: .importing(label, tags),
      start: times.min(), latest: times.max())
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
    report(max(reader.strangeLines, survey.strangeLines), to: writing)
    if linesOfOthers > 0 {
      writing.report(
        missing: "other-lines",
        "\(counted(linesOfOthers, "line")) of the log have no event of the call, left out")
    }
    return try writing.finish()
  }

  private func report(_ strangeLines: UInt64, to writing: ReportedRecorder) {
    guard strangeLines > 0 else { return }
    writing.report(
      missing: "strange-lines", "\(counted(strangeLines, "line")) of unknown form, skipped")
  }
}
