import FoundationEssentials
import Observer
package import Queries
package import Replay
import Stats
import Tape
import Wire

/// Writes a ring as a take, like an import of a capture with a key log.
///
/// The take begins at the time of the ring's oldest packet. Packets retained from before the ring's
/// period get that time, too.
struct RingTake {
  let content: RingContent
  let settings: ImportSettings
  /// The ring's length as text, as in `60 s`.
  let length: String

  /// A written take, with the number of its steps that come from packets before the ring's period.
  struct Written {
    var summary: CaptureSummary
    var headSteps: Int
  }

  /// Writes the take; returns nil if the ring is empty.
  func write(_ path: String) throws(TapeError) -> Written? {
    guard !content.isEmpty else { return nil }
    var settings = settings
    settings.keyLogs += content.keyLogs
    settings.signaling += content.descriptions
    settings.names += content.names.map {
      ObserverGenesis.EndName(address: $0.address.description, name: $0.label)
    }
    settings.keepsIncomplete = false
    settings.followsKeyLogs = false
    // The ring has received all its keys already, so packets wait for keys only if it has any.
    settings.awaitsKeys = !settings.keyLogs.isEmpty || !settings.srtpKeys.isEmpty
    let recorder = CaptureRecorder(settings, writing: path)
    try recorder.begin(unixNanoseconds: content.begin)
    guard let observer = recorder.observer else { return nil }
    if content.passed > 0 { observer.apply(unseen) }
    content.visitHead { packet in
      var packet = packet
      packet.at = content.begin
      observer.show(packet)
    }
    let headSteps = observer.steps
    content.visit { observer.show($0) }
    observer.pass(to: content.end)
    observer.recordDropped(content.dropped)
    guard let summary = try recorder.finish(CaptureCounters()) else { return nil }
    return Written(summary: summary, headSteps: headSteps)
  }

  /// The coverage row stating that the take is a part of a call, and why.
  private var unseen: ObserverCall {
    let want =
      content.crowdedOut > 0
      ? "; its memory was too small for all of them, see --ring-megabytes" : ""
    let (before, pictureless) = (content.secondsBefore, content.picturelessCount)
    let held =
      before > 0 ? ", and \(decimal(before, 1)) s before that from the last key frame on" : ""
    let none =
      pictureless > 0
      ? "; \(counted(pictureless, "stream")) of video without one "
        + "\(pictureless > 1 ? "show" : "shows") no picture" : ""
    return .notSeen(
      kind: CoverageKind.lateStart.rawValue, count: content.passed,
      detail: "a flight recorder retained the last \(length)\(held)\(want); handshakes and checks "
        + "of before stand at the beginning, and receive sides go on from their first key frames"
        + none)
  }
}

// MARK: - RingWish

/// A condition that a ring is searched for every ten seconds.
package enum RingWish: Sendable, Hashable {
  /// A failure of ICE, DTLS or the connection at an end of an observed call.
  case failure
  /// A finding of this severity or worse.
  case severity(FindingSeverity)
  /// A finding with this id.
  case finding(String)
  case condition(StepCondition)

  /// Searches a take written from the ring for this condition.
  ///
  /// - Returns: the triggers; empty if the condition is not met.
  func search(_ take: String, _ written: RingTake.Written, _ findings: () throws -> TakeFindings)
    throws -> [RingTrigger]
  {
    switch self {
    case .failure:
      let failed = try StepCondition("state to_state=failed")
      return try Self.isMet(failed, take, written)
        ? [RingTrigger(key: "failure", words: "an end that failed")] : []
    case .severity(let severity):
      return try findings().findings.filter { $0.severity >= severity }.map(Self.trigger)
    case .finding(let id):
      return try findings().findings.filter { $0.ids.contains(id) }.map(Self.trigger)
    case .condition(let condition):
      return try Self.isMet(condition, take, written)
        ? [RingTrigger(key: "condition \(condition)", words: "\(condition)")] : []
    }
  }

  private static func trigger(_ finding: Finding) -> RingTrigger {
    RingTrigger(
      key: "finding \(finding.id) \(finding.subject)",
      words: "finding \(finding.id): \(finding.text)")
  }

  /// Returns whether a condition is met within the ring's period, that is, after the steps for
  /// earlier packets.
  private static func isMet(
    _ condition: StepCondition, _ take: String, _ written: RingTake.Written
  ) throws(TapeError) -> Bool {
    if condition.isAboutRows {
      return try StepFinder(path: take).first(condition, after: written.headSteps) != nil
    }
    return try meetsSample(condition, take, written)
  }

  /// Returns whether any statistics sample meets a condition; there is one sample per second.
  private static func meetsSample(
    _ condition: StepCondition, _ take: String, _ written: RingTake.Written
  ) throws(TapeError) -> Bool {
    let types = (condition.statsTypes ?? []).sorted().map { "'\($0)'" }.joined(separator: ", ")
    let connection = try TakeFile.openForQueries(take)
    do throws(SQLiteError) {
      let samples = try connection.prepare(
        """
        SELECT peer, id, type, timestamp_ms, members FROM stat
        WHERE type IN (\(types)) AND row >= \(Int64(written.headSteps + 1) << 16) ORDER BY row
        """)
      while try samples.step() {
        let (peer, id, type, timestamp, members) = samples.values(
          UInt32.self, String.self, String.self, Double.self, String.self)
        let object = StatsObject(
          id: id, type: type, timestamp: timestamp, members: statsMembers(members))
        if condition.matches(StatsReport(objects: [object]), of: peer) { return true }
      }
    } catch {
      throw TapeError(path: take, place: "stat", error)
    }
    return false
  }

  /// Parses a stats object's JSON, keeping the members that are numbers, strings or Booleans.
  private static func statsMembers(_ text: String) -> [StatsMember] {
    guard case .object(let members)? = try? JSONValue(parsing: text) else { return [] }
    return members.compactMap { member in
      switch member.value {
      case .integer(let number): StatsMember(member.name, .integer(number))
      case .number(let number): StatsMember(member.name, .number(number))
      case .text(let text): StatsMember(member.name, .text(text))
      case .flag(let flag): StatsMember(member.name, .flag(flag))
      case .null, .list, .object: nil
      }
    }
  }
}
