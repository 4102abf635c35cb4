import Dispatch
import FoundationEssentials
import Glibc
import Observer
import Queries
import Replay
import Synchronization
import Tape
package import Wire

/// The reason for writing a take from a ring.
package struct RingTrigger: Sendable, Hashable {
  /// Limits repetitions: triggers with the same key write at most one take within the ring's
  /// length; an empty key sets no limit.
  package var key: String
  /// A phrase that states the reason, for the notice and the take's tags.
  package var words: String

  package init(key: String, words: String) { (self.key, self.words) = (key, words) }

  /// Returns a trigger for an explicit request, which never counts as a repetition.
  package static func signal(_ name: String) -> RingTrigger { RingTrigger(key: "", words: name) }
}

/// A take that was written from a ring.
package struct RingTakeSummary: Sendable {
  /// The summary of the capture; its `take` is the file's path.
  package var capture: CaptureSummary
  /// A phrase that states the take's length and the reason.
  package var words: String
}

/// The settings, the memory budget and the list of takes that all flight recorders of a process
/// share.
package final class RingPlan: Sendable {
  /// How much a ring retains, and how many takes are written from it.
  package struct Settings: Sendable {
    /// The duration that a ring retains.
    package var length = Interval.seconds(60)
    /// The memory limit of all rings together, in bytes.
    package var bytesMaximum = 64 << 20
    /// The maximum number of takes that all recorders together write, or keep if `removesOldest`.
    package var takesMaximum = 20
    /// Whether the oldest take is removed to make room for a new one.
    package var removesOldest = false
    /// Whether a ring also retains older packets, from the last key frame before its period.
    package var retainsPictures = true
    /// The conditions that rings are searched for.
    package var wishes: [RingWish] = []
    /// Whether takes are written on the caller's thread, for drivers in virtual time.
    package var isSynchronous = false
    /// The label, tags, keys and other settings for the takes.
    package var take = ImportSettings()

    package init() {}
  }

  let settings: Settings
  let budget: RingBudget
  let notice: @Sendable (String) -> Void
  /// Writes one take at a time, so that at most one copy of a ring exists.
  let queue = DispatchQueue(label: "flight recorder")

  private struct State {
    var recorders: [WeakRecorder] = []
    var paths: [String] = []
  }

  private struct WeakRecorder {
    weak var recorder: FlightRecorder?
  }

  private let state = Mutex(State())

  /// - Parameter notice: receives a sentence for each take, and for each failure.
  package init(_ settings: Settings, notice: @escaping @Sendable (String) -> Void) {
    self.settings = settings
    self.notice = notice
    budget = RingBudget(maximum: settings.bytesMaximum)
  }

  /// The memory in use by all rings, in bytes.
  package var usedBytes: Int { budget.usedBytes }

  /// Creates a recorder that writes its takes beside a path, named after it.
  package func recorder(take path: String) -> FlightRecorder {
    let recorder = FlightRecorder(self, path: path)
    state.withLock { state in
      state.recorders.removeAll { $0.recorder == nil }
      state.recorders.append(WeakRecorder(recorder: recorder))
    }
    return recorder
  }

  /// Creates a recorder that retains the reports of a page instead of packets.
  ///
  /// - Parameters:
  ///   - format: the kind of source, such as `recorded page`.
  ///   - head: the known facts about the page's browser.
  package func recorder(take path: String, format: String, head: JSONValue) -> FlightRecorder {
    let recorder = recorder(take: path)
    recorder.beginReports(ReportRing(ReportRing.Head(format: format, head: head), budget: budget))
    return recorder
  }

  /// Makes all recorders write their last seconds.
  package func writeAll(_ trigger: RingTrigger) {
    for recorder in state.withLock({ $0.recorders.compactMap(\.recorder) }) {
      recorder.write(trigger)
    }
  }

  // MARK: Takes

  /// Whether another take may be written.
  var hasRoom: Bool {
    settings.removesOldest || state.withLock { $0.paths.count } < settings.takesMaximum
  }

  /// Adds a take to the list, and removes the oldest one if there are too many.
  func add(_ path: String) {
    let (count, surplus) = state.withLock { state -> (Int, [String]) in
      state.paths.append(path)
      guard settings.removesOldest, state.paths.count > settings.takesMaximum else {
        return (state.paths.count, [])
      }
      let surplus = Array(state.paths.prefix(state.paths.count - settings.takesMaximum))
      state.paths.removeFirst(surplus.count)
      return (state.paths.count, surplus)
    }
    for path in surplus { FileBytes.remove(path) }
    if count == settings.takesMaximum, !settings.removesOldest {
      notice("no more takes are written from the ring: --ring-count allows \(count)")
    }
  }

  /// Returns whether a take was written and not removed since.
  func contains(_ path: String) -> Bool { state.withLock { $0.paths.contains(path) } }
}

// MARK: - FlightRecorder

/// Retains the last seconds of a session in memory, and writes them as a take when triggered.
package final class FlightRecorder: Sendable {
  private struct State: ~Copyable {
    var ring: PacketRing
    /// The ring of a page's reports, which is used instead of the packet ring; nil for packets.
    var reports: ReportRing?
    /// The time of the next search, as Unix time in nanoseconds; nil before the first packet.
    var nextSearch: Int64?
    /// The time at which each trigger last wrote a take.
    var written: [String: Int64] = [:]
    var takes: [RingTakeSummary] = []
    /// The end of the last take, as Unix time in nanoseconds.
    var lastEnd = Int64.min
    /// The number of queued searches and takes.
    var waiting = 0
  }

  private let plan: RingPlan
  private let path: String
  private let state: Mutex<State>

  /// The interval between searches, in nanoseconds.
  package static let searchInterval: Int64 = 10_000_000_000
  /// The maximum number of searches and takes that may be queued.
  private static let waitingMaximum = 16

  fileprivate init(_ plan: RingPlan, path: String) {
    (self.plan, self.path) = (plan, path)
    let ring = PacketRing(length: plan.settings.length, budget: plan.budget)
    state = Mutex(State(ring: ring))
  }

  // MARK: Recording

  /// Adds a packet to the ring, and searches the ring if a search is due.
  package func append(_ packet: RingPacket, of owner: UInt32 = 0, isOutbound: Bool = false) {
    let isDue = state.withLock { state in
      state.ring.append(packet, of: owner, isOutbound: isOutbound)
      return Self.isSearchDue(&state, packet.at)
    }
    if isDue { search() }
  }

  fileprivate func beginReports(_ ring: ReportRing) { state.withLock { $0.reports = ring } }

  /// Adds a page's report to the ring, and searches the ring if a search is due.
  package func append(_ report: RingReport, unixMilliseconds: Double) {
    let now = Int64(max(-9e12, min(unixMilliseconds, 9e12)) * 1e6)
    let isDue = state.withLock { state in
      state.ring.trim(to: now)
      let earliest = state.ring.latest -| plan.settings.length.nanoseconds
      state.reports?.append(report, at: unixMilliseconds, earliest: Double(earliest) / 1e6)
      return Self.isSearchDue(&state, now)
    }
    if isDue { search() }
  }

  /// Advances the time when no packet arrives.
  package func pass(to unixNanoseconds: Int64) {
    let isDue = state.withLock { state in
      state.ring.trim(to: unixNanoseconds)
      return Self.isSearchDue(&state, unixNanoseconds)
    }
    if isDue { search() }
  }

  private static func isSearchDue(_ state: inout State, _ now: Int64) -> Bool {
    guard let due = state.nextSearch else {
      state.nextSearch = now +| searchInterval
      return false
    }
    guard now >= due else { return false }
    state.nextSearch = now +| searchInterval
    return true
  }

  /// Records when an owner sent or received a video frame.
  package func recordFrame(of stream: RingStream, isKey: Bool, at: Int64) {
    guard plan.settings.retainsPictures else { return }
    state.withLock { $0.ring.recordFrame(of: stream, isKey: isKey, at: at) }
  }

  /// Sets an owner's name, and optionally the name of the remote ends that it sends to.
  package func name(_ label: String, owner: UInt32, remote: String = "") {
    state.withLock { $0.ring.name(label, owner: owner, remote: remote) }
  }

  /// Adds lines of an owner's NSS key log.
  package func add(keyLog lines: String, of owner: UInt32 = 0) {
    state.withLock { $0.ring.add(keyLog: lines, of: owner) }
  }

  /// Adds a session description from either end.
  package func add(description text: String, of owner: UInt32 = 0) {
    state.withLock { $0.ring.add(description: text, of: owner) }
  }

  package func recordDropped(_ count: UInt64) {
    state.withLock { $0.ring.recordDropped(count) }
  }

  /// Records that an owner has left: its packets stay, and its keys and descriptions are dropped
  /// later.
  package func end(owner: UInt32) { state.withLock { $0.ring.end(owner: owner) } }

  // MARK: Takes

  /// Writes the last seconds, unless the same trigger already wrote a take within the ring's
  /// length.
  package func write(_ trigger: RingTrigger) {
    queue { [self] in
      guard isNew(trigger), plan.hasRoom else { return }
      let content = snapshot().whole
      guard let file = newFile(for: content) else { return }
      do {
        guard let written = try made(content, file, trigger.words) else {
          return plan.notice("\(path): the ring is empty, so no take is written")
        }
        try complete(file, written, content, [trigger])
      } catch {
        plan.notice("\(path): no take was written from the ring: \(error)")
      }
    }
  }

  /// Searches the ring a last time and waits for queued work; returns the takes that exist.
  package func finish() async -> [RingTakeSummary] {
    search()
    await withCheckedContinuation { continuation in
      plan.queue.async { continuation.resume() }
    }
    state.withLock { $0.reports?.release() }
    return takes
  }

  /// The takes that were written and not removed since.
  package var takes: [RingTakeSummary] {
    state.withLock { $0.takes }.filter { plan.contains($0.capture.take) }
  }

  /// Writes the ring to a temporary take and searches it for the conditions; if a condition is
  /// newly met, writes a take that is kept.
  private func search() {
    guard !plan.settings.wishes.isEmpty else { return }
    queue { [self] in
      guard plan.hasRoom else { return }
      let ring = snapshot()
      // Earlier searches covered the packets from before the ring's period, so they are left out.
      let content = ring.last
      guard !content.isEmpty, let file = newFile(for: content) else { return }
      do {
        guard let written = try made(content, file, nil) else { return }
        var findings: TakeFindings?
        var met: [RingTrigger] = []
        for wish in plan.settings.wishes {
          met += try wish.search(file.temporary, written) {
            if let findings { return findings }
            let found = try TakeFindings(path: file.temporary)
            findings = found
            return found
          }
        }
        let new = met.filter { isNew($0) }
        guard let first = new.first, !isRepeated(content, new) else { return }
        // A take's tags state the reason for it, so the take is written again now that the reason
        // is known.
        let whole = ring.whole
        guard let named = newFile(for: whole), let again = try made(whole, named, first.words)
        else { return }
        try complete(named, again, whole, new)
      } catch {
        plan.notice("\(path): the ring cannot be searched: \(error)")
      }
    }
  }

  private func queue(_ work: @escaping @Sendable () -> Void) {
    guard !plan.settings.isSynchronous else { return plan.queue.sync(execute: work) }
    let isAccepted = state.withLock { state in
      guard state.waiting < Self.waitingMaximum else { return false }
      state.waiting += 1
      return true
    }
    guard isAccepted else { return }
    plan.queue.async { [self] in
      work()
      state.withLock { $0.waiting -= 1 }
    }
  }

  private enum Content {
    case packets(RingContent)
    case reports(ReportContent)

    var isEmpty: Bool {
      switch self {
      case .packets(let content): content.isEmpty
      case .reports(let content): content.entries.isEmpty
      }
    }

    /// The Unix times at which the content begins and ends, in nanoseconds.
    var begin: Int64 { times.begin }
    var end: Int64 { times.end }

    private var times: (begin: Int64, end: Int64) {
      switch self {
      case .packets(let content): (content.begin, content.end)
      case .reports(let content): (Int64(content.begin * 1e6), Int64(content.end * 1e6))
      }
    }
  }

  /// The ring as it was at an instant.
  private enum Snapshot {
    case packets(RingSnapshot)
    case reports(ReportContent)

    /// The content within the ring's period.
    var last: Content {
      switch self {
      case .packets(let ring): .packets(RingContent(ring))
      case .reports(let content): .reports(content)
      }
    }

    /// The whole content, including the earlier packets that decoding needs.
    var whole: Content {
      switch self {
      case .packets(let ring): .packets(RingContent(ring, hasPictures: true))
      case .reports(let content): .reports(content)
      }
    }
  }

  /// Returns a copy of the ring; the lock is held only while copying, because media waits for it.
  private func snapshot() -> Snapshot {
    state.withLock { state in
      if let reports = state.reports {
        return .reports(reports.content(end: Double(state.ring.latest) / 1e6))
      }
      return .packets(state.ring.snapshot())
    }
  }

  /// Returns whether a trigger has written no take within the ring's length.
  private func isNew(_ trigger: RingTrigger) -> Bool {
    state.withLock { state in
      guard !trigger.key.isEmpty, let before = state.written[trigger.key] else { return true }
      return state.ring.latest -| before >= plan.settings.length.nanoseconds
    }
  }

  /// Returns whether the last take has nearly the same content; if so, these triggers count as
  /// having written that take.
  private func isRepeated(_ content: Content, _ triggers: [RingTrigger]) -> Bool {
    let path = state.withLock { state -> String? in
      guard content.end -| state.lastEnd < Self.repetition else { return nil }
      Self.mark(triggers, &state)
      return state.takes.last?.capture.take
    }
    guard let path else { return false }
    plan.notice("\(path): also \(Self.words(triggers))")
    return true
  }

  /// How far a take must extend beyond the previous one to count as new, in nanoseconds.
  private static let repetition: Int64 = 2_000_000_000

  private static func mark(_ triggers: [RingTrigger], _ state: inout State) {
    for trigger in triggers where !trigger.key.isEmpty {
      state.written[trigger.key] = state.ring.latest
    }
  }

  private static func words(_ triggers: [RingTrigger]) -> String {
    PrintableText.line(triggers.map(\.words).joined(separator: "; "))
  }

  private func newFile(for content: Content) -> WholeFile? {
    do throws(WholeFile.Failure) {
      return try WholeFile(
        RingName.free(beside: path, unixNanoseconds: content.end), .kept, isTake: true)
    } catch {
      plan.notice("no take was written from the ring: \(error)")
      return nil
    }
  }

  private func made(_ content: Content, _ file: WholeFile, _ reason: String?)
    throws(TapeError) -> RingTake.Written?
  {
    var settings = plan.settings.take
    let length = decimal(Double(plan.settings.length.nanoseconds) / 1e9, 1) + " s"
    settings.tags["ring"] = length
    if let reason {
      settings.tags["ring_trigger"] = String(PrintableText.line(reason).prefix(200))
    }
    switch content {
    case .packets(let content):
      return try RingTake(content: content, settings: settings, length: length)
        .write(file.temporary)
    case .reports(let content):
      return try content.write(file.temporary, settings, length: length)
    }
  }

  private func complete(
    _ file: WholeFile, _ written: RingTake.Written, _ content: Content,
    _ triggers: [RingTrigger]
  ) throws(WholeFile.Failure) {
    try file.finish()
    let seconds = decimal(Double(content.end &- content.begin) / 1e9, 1)
    var summary = written.summary
    summary.take = file.path
    let words = "the last \(seconds) s: \(Self.words(triggers))"
    state.withLock { state in
      Self.mark(triggers, &state)
      state.lastEnd = content.end
      if state.written.count > Self.triggersMaximum {
        let limit = state.ring.latest -| plan.settings.length.nanoseconds
        state.written = state.written.filter { $0.value > limit }
      }
      state.takes.append(RingTakeSummary(capture: summary, words: words))
      if state.takes.count > Self.takesMaximum { state.takes.removeFirst() }
    }
    plan.notice("\(file.path): \(words)")
    plan.add(file.path)
  }

  private static let triggersMaximum = 1_000
  private static let takesMaximum = 1_000
}

// MARK: - RingName

/// Names of takes from a ring: the base name with the time, and with a number if that name exists.
enum RingName {
  /// Returns an unused name beside a take.
  static func free(beside path: String, unixNanoseconds: Int64) -> String {
    let stem = path.hasSuffix(".take") ? String(path.dropLast(5)) : path
    let stamp = stamp(unixNanoseconds)
    for number in 1... {
      let name = number == 1 ? "\(stem)-\(stamp).take" : "\(stem)-\(stamp)-\(number).take"
      if FileBytes.kind(of: name) == nil { return name }
    }
    return path
  }

  /// Formats a time in UTC to the second, as in `20261126-141500`.
  private static func stamp(_ unixNanoseconds: Int64) -> String {
    var (now, parts) = (time_t(unixNanoseconds / 1_000_000_000), tm())
    gmtime_r(&now, &parts)
    var text = [CChar](repeating: 0, count: 32)
    let length = strftime(&text, text.count, "%Y%m%d-%H%M%S", &parts)
    return String(decoding: text.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
