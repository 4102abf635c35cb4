import Importing
import Observer
import Room
import Synchronization
import Tape
import Wire

/// The number of bytes of messages that all sessions together may still write.
final class PageBudget: Sendable {
  private let left: Mutex<Int>

  init(_ bytes: Int) { left = Mutex(bytes) }

  /// Uses up some bytes; returns false and changes nothing if fewer bytes remain.
  func use(_ bytes: Int) -> Bool {
    left.withLock { left in
      guard bytes <= left else { return false }
      left -= bytes
      return true
    }
  }
}

/// A session: everything that a browser tab reports, across reloads and lost connections, in one
/// take.
actor PageSession {
  /// The result of handling a message.
  enum Outcome {
    case nothing
    /// Send this text to the client.
    case reply(String)
    /// Stop writing, for this reason.
    case stop(String)
  }

  /// The protocol that the client speaks.
  enum Dialect: Sendable {
    /// Spoken by Retake's own script.
    case script
    /// Spoken by rtcstats-js, whose lines are not numbered, so each connection is a session of its
    /// own.
    case rtcstats
  }

  private let settings: PageService.Settings
  private let dialect: Dialect
  private let path: @Sendable () throws(TapeError) -> String
  private let head: JSONValue
  private let budget: PageBudget
  private let begun = ContinuousClock.now
  private var recorder: ReportedRecorder?
  /// Retains the last seconds, if no whole take is recorded.
  private var ring: FlightRecorder?
  private var lines = ReportedLines(.rtcstats)
  /// The last message number received from each load of the page, and the loads in order of
  /// arrival.
  private var received: [String: UInt64] = [:]
  private var loads: [String] = []
  private var firstMilliseconds: Double?
  private var bytes = 0
  private var strangeLines: UInt64 = 0
  private var ending: String?

  /// The maximum number of page loads in a session; nobody reloads a page that often during a call.
  private static let loadsMaximum = 1_000
  /// How far a page's clock may run ahead of the recorder's.
  private static let leadMilliseconds = 60_000.0

  /// - Parameters:
  ///   - path: returns the take's path; called once there is something to write.
  ///   - head: what the request says about the client.
  init(
    _ dialect: Dialect, settings: PageService.Settings, budget: PageBudget, head: JSONValue,
    path: @escaping @Sendable () throws(TapeError) -> String
  ) {
    self.dialect = dialect
    self.settings = settings
    self.budget = budget
    self.head = head
    self.path = path
  }

  /// The first message to the script, which says what has already arrived.
  var greeting: String {
    JSONText.object([("isNew", .flag(received.isEmpty)), ("received", receipts)]).text
  }

  private var receipts: JSONText {
    .object(loads.map { ($0, .integer(received[$0] ?? 0)) })
  }

  func receive(_ message: SignalingFrame) -> Outcome {
    if let ending { return .stop(ending) }
    let size =
      switch message {
      case .text(let text): text.utf8.count
      case .binary(let bytes): bytes.count
      }
    // A ring bounds its own size, so these limits apply to takes only.
    if settings.ring == nil {
      guard bytes + size <= settings.sessionBytes else {
        return stop("the session has written all that --session-megabytes allows")
      }
      guard budget.use(size) else {
        return stop("all sessions have written what --total-megabytes allows")
      }
    }
    bytes += size
    do throws(TapeError) {
      switch (dialect, message) {
      case (.script, .text(let text)):
        guard let unit = ScriptUnit(text: text) else { return strange() }
        return try receive(unit, repliesAlways: true)
      case (.script, .binary(let bytes)):
        guard let unit = ScriptUnit(frames: bytes) else { return strange() }
        return try receive(unit, repliesAlways: false)
      case (.rtcstats, .text(let text)):
        guard let event = lines.event(ofLine: text) else { return strange() }
        try write(event, event.connection)
        return .nothing
      case (.rtcstats, .binary): return strange()
      }
    } catch {
      return stop(error.reason)
    }
  }

  /// Completes the take and returns its summary, or the summaries of a ring's takes; nil if nothing
  /// was reported.
  func finish() async throws(TapeError) -> [ReportedImport.Summary]? {
    if ending == nil { ending = "the recording has ended" }
    if let ring {
      self.ring = nil
      return await ring.finish().map { ReportedImport.Summary($0) }
    }
    guard let recorder else { return nil }
    self.recorder = nil
    let count = strangeLines + lines.strangeLines
    if count > 0 {
      recorder.report(
        missing: "strange-lines", "\(counted(count, "line")) of unknown form, skipped")
    }
    return [try recorder.finish()]
  }

  private func strange() -> Outcome {
    strangeLines += 1
    return .nothing
  }

  private func stop(_ reason: String) -> Outcome {
    ending = reason
    recorder?.report(missing: "session-limit", "from here on nothing was written: \(reason)")
    return .stop(reason)
  }

  // MARK: Reports from the script

  /// - Parameter repliesAlways: whether every message is answered; otherwise every fourth message
  ///   is.
  private func receive(_ unit: ScriptUnit, repliesAlways: Bool) throws(TapeError) -> Outcome {
    if received[unit.load] == nil {
      guard loads.count < Self.loadsMaximum else {
        return stop("the page was loaded more than \(Self.loadsMaximum) times")
      }
      loads.append(unit.load)
    }
    let last = received[unit.load] ?? 0
    // After a lost connection, the page repeats messages; those that already arrived are skipped.
    if unit.number > last {
      received[unit.load] = unit.number
      switch unit.content {
      case .events(let events, let strange):
        strangeLines += UInt64(strange)
        for event in events {
          try write(event, event.connection.map { name(of: $0, in: unit.load) })
        }
      case .frames(let frames):
        for var frame in frames {
          frame.connection = name(of: frame.connection, in: unit.load)
          frame.unixMilliseconds = bounded(frame.unixMilliseconds)
          recorder?.add(frame)
          ring?.append(.frame(frame), unixMilliseconds: frame.unixMilliseconds)
        }
      }
      try recorder?.check()
    }
    guard repliesAlways || unit.number % 4 == 0 else { return .nothing }
    let receipt = JSONText.object([(unit.load, .integer(received[unit.load] ?? 0))])
    return .reply(JSONText.object([("received", receipt)]).text)
  }

  /// Returns a connection's name in the take: each load of the page numbers its connections from 0,
  /// so the name also states any load after the first.
  private func name(of connection: String, in load: String) -> String {
    guard let place = loads.firstIndex(of: load), place > 0 else { return connection }
    return "\(connection), load \(place + 1)"
  }

  private func write(_ event: ReportedEvent, _ connection: String?) throws(TapeError) {
    var event = event
    event.connection = connection
    let milliseconds = bounded(event.unixMilliseconds ?? firstMilliseconds ?? 0)
    event.unixMilliseconds = milliseconds
    let format = dialect == .script ? "recorded page" : "session of rtcstats-js"
    if let plan = settings.ring {
      if ring == nil { ring = plan.recorder(take: try path(), format: format, head: head) }
      ring?.append(.event(event), unixMilliseconds: milliseconds)
      return
    }
    if recorder == nil {
      recorder = try ReportedRecorder(
        try path(), format: format, head: head,
        options: ReportedRecorder.Options(
          label: settings.label, tags: settings.tags, keepsMedia: settings.keepsMedia,
          waitsForDisk: false),
        start: milliseconds, latest: nil)
    }
    recorder?.add(event, at: milliseconds)
  }

  /// Clamps a time reported by the page between the first reported time and `leadMilliseconds`
  /// after the session's own time.
  ///
  /// The session's time starts at the first reported time and advances with the recorder's clock.
  private func bounded(_ milliseconds: Double) -> Double {
    let first = firstMilliseconds ?? milliseconds
    firstMilliseconds = first
    let passed = Double((ContinuousClock.now - begun).components.seconds) * 1000
    return min(max(milliseconds, first), first + passed + Self.leadMilliseconds)
  }
}
