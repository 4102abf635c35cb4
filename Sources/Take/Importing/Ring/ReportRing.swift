import DequeModule
package import Observer
import Tape
import Wire

/// A report from a page, as a flight recorder receives it.
package enum RingReport: Sendable {
  case event(ReportedEvent)
  case frame(ScriptUnit.Frame)

  /// The approximate size in memory, in bytes.
  fileprivate var byteCount: Int {
    switch self {
    case .frame(let frame): 200 + frame.bytes.count
    case .event(let event):
      200
        + {
          switch event.content {
          case .connection(let value): value.map(Self.size) ?? 0
          case .call(let name, let value), .success(let name, let value),
            .failure(let name, let value), .event(let name, let value):
            name.utf8.count + (value.map(Self.size) ?? 0)
          case .stats(let report):
            report.objects.reduce(0) { sum, object in
              sum + 64 + object.id.utf8.count + Self.size(object.members ?? [])
            }
          }
        }()
    }
  }

  private static func size(_ value: JSONValue) -> Int {
    switch value {
    case .null, .flag, .integer, .number: 32
    case .text(let text): 48 + text.utf8.count
    case .list(let all): all.reduce(48) { $0 + size($1) }
    case .object(let members): 48 + size(members)
    }
  }

  private static func size(_ members: [JSONValue.Member]) -> Int {
    members.reduce(0) { $0 + 48 + $1.name.utf8.count + size($1.value) }
  }
}

/// A page's reports from the last seconds, in bounded memory, and the earlier reports that they
/// depend on.
///
/// Calls and events that leave the ring are kept within a limit. Statistics may contain only
/// changes, so each object's last state is kept.
struct ReportRing {
  /// The source of the reports as described in takes: its kind, and the page's browser.
  struct Head: Sendable {
    var format: String
    var head: JSONValue
  }

  struct Entry: Sendable {
    var report: RingReport
    var unixMilliseconds: Double
    var byteCount: Int
  }

  private let head: Head
  private let budget: RingBudget
  private var entries = Deque<Entry>()
  /// Connections, calls and events that left the ring.
  private var before = Deque<Entry>()
  private var beforeBytes = 0
  private var samples: [String: ReportedObjects] = [:]
  private var passed: UInt64 = 0
  private var crowdedOut: UInt64 = 0
  private var forgotten: UInt64 = 0

  /// The limits on what is kept from before the ring's period: the events' bytes, and the
  /// connections with statistics.
  private static let beforeMaximum = 1 << 20
  private static let samplesMaximum = 1_000

  init(_ head: Head, budget: RingBudget) { (self.head, self.budget) = (head, budget) }

  /// Releases all memory; the ring must not be used afterwards.
  mutating func release() {
    budget.release(entries.reduce(0) { $0 + $1.byteCount } + beforeBytes)
    entries = []
    before = []
    beforeBytes = 0
    samples = [:]
  }

  /// - Parameter earliest: the Unix time in milliseconds before which reports leave the ring.
  mutating func append(_ report: RingReport, at time: Double, earliest: Double) {
    trim(to: earliest)
    let entry = Entry(report: report, unixMilliseconds: time, byteCount: report.byteCount)
    while !budget.acquire(entry.byteCount) {
      guard !entries.isEmpty else {
        budget.exceed(by: entry.byteCount)
        break
      }
      crowdedOut += 1
      dropFirst()
    }
    entries.append(entry)
  }

  mutating func trim(to earliest: Double) {
    while let first = entries.first, first.unixMilliseconds < earliest { dropFirst() }
  }

  private mutating func dropFirst() {
    let entry = entries.removeFirst()
    passed += 1
    guard case .event(let event) = entry.report else { return budget.release(entry.byteCount) }
    if case .stats(let report) = event.content {
      let name = event.connection ?? ""
      if samples[name] != nil || samples.count < Self.samplesMaximum {
        var report = report
        report.timestamp = report.timestamp ?? entry.unixMilliseconds
        samples[name, default: ReportedObjects()].merge(report)
      }
      return budget.release(entry.byteCount)
    }
    before.append(entry)
    beforeBytes += entry.byteCount
    while beforeBytes > Self.beforeMaximum, before.count > 1 {
      let surplus = before.removeFirst()
      beforeBytes -= surplus.byteCount
      budget.release(surplus.byteCount)
      forgotten += 1
    }
  }

  func content(end: Double) -> ReportContent {
    ReportContent(
      head: head, entries: Array(entries), before: Array(before),
      samples: samples.sorted { $0.key < $1.key }.compactMap { name, objects in
        objects.report.map { (name.isEmpty ? nil : name, $0) }
      }, passed: passed, crowdedOut: crowdedOut, forgotten: forgotten, end: end)
  }
}

// MARK: - ReportContent

/// The reports in a ring at an instant.
struct ReportContent: Sendable {
  var head: ReportRing.Head
  var entries: [ReportRing.Entry]
  var before: [ReportRing.Entry]
  /// The statistics of each connection before the first report in the ring.
  var samples: [(connection: String?, report: ReportedStats)]
  var passed: UInt64
  var crowdedOut: UInt64
  var forgotten: UInt64
  /// Unix time in milliseconds.
  var end: Double

  var begin: Double { entries.first?.unixMilliseconds ?? end }

  /// Writes a take from the reports, like an import; returns nil if the ring is empty.
  func write(
    _ path: String, _ settings: ImportSettings, length: String
  ) throws(TapeError) -> RingTake.Written? {
    guard !entries.isEmpty else { return nil }
    let recorder = try ReportedRecorder(
      path, format: head.format, head: head.head,
      options: ReportedRecorder.Options(
        label: settings.label, tags: settings.tags, keepsMedia: settings.keepsMedia),
      start: begin, latest: nil)
    if passed > 0 { recorder.report(missing: CoverageKind.lateStart.rawValue, unseen(length)) }
    for entry in before { add(entry, to: recorder) }
    for (connection, report) in samples {
      recorder.add(
        ReportedEvent(connection: connection, unixMilliseconds: begin, content: .stats(report)),
        at: begin)
    }
    let headSteps = recorder.steps
    for entry in entries { add(entry, to: recorder) }
    let written = try recorder.finish()
    var summary = CaptureSummary(take: path)
    (summary.steps, summary.bytes, summary.notes) = (written.steps, written.bytes, written.notes)
    return RingTake.Written(summary: summary, headSteps: headSteps)
  }

  private func add(_ entry: ReportRing.Entry, to recorder: ReportedRecorder) {
    switch entry.report {
    case .event(let event): recorder.add(event, at: max(begin, entry.unixMilliseconds))
    case .frame(let frame): recorder.add(frame)
    }
  }

  private func unseen(_ length: String) -> String {
    let want =
      crowdedOut > 0 ? "; its memory was too small for all of it, see --ring-megabytes" : ""
    let rest =
      forgotten > 0
      ? ", but for the oldest \(counted(forgotten, "call and event", "calls and events"))" : ""
    return "a flight recorder retained the last \(length)\(want); \(counted(passed, "report")) "
      + "came before: their calls and events\(rest) stand at the beginning, and statistics as they "
      + "were then"
  }
}
