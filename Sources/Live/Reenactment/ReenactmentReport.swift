import Replay
package import Tape
package import Wire

/// A re-enactment's result.
package struct ReenactmentReport: Sendable {
  /// The deviation of packets' sending times from the recorded timing, in milliseconds.
  package struct Timing: Hashable, Sendable {
    package var median: Double
    package var p99: Double
    package var most: Double

    /// - Parameter nanoseconds: each packet's delay; without packets, the result is nil.
    package init?(_ nanoseconds: [Int64]) {
      let sorted = nanoseconds.map(\.magnitude).sorted()
      guard let last = sorted.last else { return nil }
      func quantile(_ share: Double) -> Double {
        let place = min(sorted.count - 1, Int(share * Double(sorted.count)))
        return Double(sorted[place]) / 1e6
      }
      (median, p99, most) = (quantile(0.5), quantile(0.99), Double(last) / 1e6)
    }
  }

  /// An expectation with its outcome.
  package struct Judgement: Hashable, Sendable {
    package var expectation: String
    package var holds: Bool
    package var sentence: String

    /// Judges a client's statistics.
    package init(_ expectation: StatExpectation, of objects: [JSONValue]) {
      let outcome = expectation.judge(objects)
      self.expectation = expectation.description
      (holds, sentence) = (outcome.holds, outcome.sentence)
    }
  }

  /// The recorded call's take.
  package var take: String
  package var peer: Int64
  package var label: String
  /// The recorded time from the connected state to the last packet or message.
  package var seconds: Double
  /// The new take, and those that the client's page recorded.
  package var recording: String
  package var pageRecordings: [String] = []
  package var repair: String
  package var packetsSent = 0
  package var reportsSent = 0
  package var packetsLeftOut = 0
  package var messagesSent = 0
  package var changesSent = 0
  package var packetsRequested = 0
  package var packetsRepaired = 0
  package var keyframeRequests = 0
  package var packetsReceived = 0
  package var isComplete = false
  package var omissions: [String] = []
  package var timing: Timing?
  package var judgements: [Judgement] = []

  /// - Parameter recording: the new take, which must be finished.
  package init(
    _ plan: ReenactmentPlan, _ outcome: ReenactmentOutcome, changesSent: Int,
    repair: RepairRule, recording: String
  ) throws(TapeError) {
    take = plan.take
    peer = plan.peer
    label = plan.label
    seconds = plan.duration.seconds
    self.recording = recording
    self.repair = repair.rawValue
    let tally = outcome.player.tally
    packetsSent = tally.media
    reportsSent = tally.reports
    packetsLeftOut = tally.leftOut
    packetsRequested = tally.requested
    packetsRepaired = tally.repaired
    keyframeRequests = tally.keyframeRequests
    packetsReceived = tally.received
    isComplete = tally.media + tally.leftOut == plan.mediaPackets
    omissions = outcome.agreement.omissions
    if plan.unexplained > 0 {
      omissions.append(
        "\(counted(plan.unexplained, "packet")) of an unknown payload type")
    }
    messagesSent = tally.messages
    if tally.unsentMessages > 0 {
      omissions.append(
        "\(counted(tally.unsentMessages, "message")), whose data channel the client did not open")
    }
    self.changesSent = changesSent
    if changesSent < plan.changes.count {
      omissions.append(
        "\(counted(plan.changes.count - changesSent, "later description")) of the sender, which "
          + "the client did not request or did not answer")
    }
    timing = try Timing(
      ReenactmentReport.delays(
        in: recording, of: outcome.leg, after: outcome.player.dueInstants))
  }

  /// Returns how late each of a leg's packets, except repairs, was sent, in nanoseconds.
  private static func delays(
    in recording: String, of leg: UInt32, after due: [Instant?]
  ) throws(TapeError) -> [Int64] {
    let connection = try TakeFile.open(recording)
    var delays: [Int64] = []
    do throws(SQLiteError) {
      let sent = try connection.prepare(
        "SELECT at_ns FROM relayed_store WHERE protocol = 'rtp' AND peer = \(leg) "
          + "ORDER BY \"row\"")
      var place = 0
      while try sent.step(), place < due.count {
        if let due = due[place] { delays.append(sent.values(Int64.self) - due.nanoseconds) }
        place += 1
      }
    } catch {
      throw TapeError(path: recording, error)
    }
    return delays
  }

  /// The report as a JSON object.
  package var json: String {
    func nanoseconds(_ milliseconds: Double) -> JSONText {
      .integer(Int64(saturating: milliseconds * 1e6))
    }
    return JSONText.object([
      ("take", .text(take)), ("peer", .integer(peer)), ("label", .text(label)),
      ("duration_ns", .integer(Int64(saturating: seconds * 1e9))), ("out", .text(recording)),
      ("pages", .list(pageRecordings.map { .text($0) })), ("repair", .text(repair)),
      ("complete", .flag(isComplete)), ("packets", .integer(packetsSent)),
      ("reports", .integer(reportsSent)), ("messages", .integer(messagesSent)),
      ("descriptions", .integer(changesSent)),
      ("left_out", .integer(packetsLeftOut)),
      ("requested", .integer(packetsRequested)), ("repaired", .integer(packetsRepaired)),
      ("keyframe_requests", .integer(keyframeRequests)),
      ("received", .integer(packetsReceived)),
      ("omissions", .list(omissions.map { .text($0) })),
      ("median_ns", timing.map { nanoseconds($0.median) }),
      ("p99_ns", timing.map { nanoseconds($0.p99) }),
      ("max_ns", timing.map { nanoseconds($0.most) }),
      (
        "expectations",
        .list(
          judgements.map { judgement in
            .object([
              ("expectation", .text(judgement.expectation)), ("holds", .flag(judgement.holds)),
              ("sentence", .text(judgement.sentence)),
            ])
          })
      ),
    ]).text
  }

  /// The report as printed lines.
  package var lines: [String] {
    var lines = [
      "\(recording): \(counted(packetsSent, "packet")), \(counted(reportsSent, "report")) and "
        + "\(counted(messagesSent, "message")) of \(decimal(seconds, 3)) s that \(label) received"
        + (isComplete ? "" : ", until the client left")
    ]
    if let timing {
      lines.append(
        "deviation from the recorded times between packets: \(decimal(timing.median, 2)) ms at the "
          + "median, \(decimal(timing.p99, 2)) ms at the 99th percentile")
    }
    if packetsLeftOut > 0 { lines.append("\(counted(packetsLeftOut, "packet")) left out") }
    if packetsRequested > 0 {
      lines.append(
        "the client requested \(counted(packetsRequested, "retransmission")): "
          + (repair == RepairRule.honest.rawValue
            ? "the take has \(packetsRepaired) of them"
            : "only recorded retransmissions were sent (--repair as-recorded)"))
    }
    if keyframeRequests > 0 {
      lines.append(
        "the client requested \(counted(keyframeRequests, "key frame")), which cannot be produced "
          + "from a recording")
    }
    lines += omissions.map { "not played: \($0)" }
    lines += judgements.map { ($0.holds ? "as expected: " : "not as expected: ") + $0.sentence }
    lines += pageRecordings.map {
      "the differences: retake diff \(take) \($0) --align connected "
        + "--first-peer \(peer) --second-peer 1"
    }
    return lines
  }
}
