import Wire

/// Finds problems in another stack's statistics for takes without frames.
///
/// The detections have the ids of the rules that examine frames in other takes.
enum ReportedDetectors {
  /// Returns what the rules detect in the statistics of reported connections.
  static func found(_ facts: CallFacts, rules: [FindingRule]) -> [Detection] {
    guard !facts.countedSamples.isEmpty else { return [] }
    let ids = Set(rules.map(\.id))
    let limits = Dictionary(rules.map { ($0.id, $0.limits) }) { first, _ in first }
    var found: [Detection] = []
    for stream in facts.streams where stream.counted != nil && stream.direction == .inbound {
      let samples = facts.countedSamples.filter {
        $0.isInbound && $0.peer == stream.peer && $0.id == stream.counted?.id
      }
      if ids.contains("freeze") { found += freezes(stream, samples) }
      if ids.contains("video-stopped") { found += stops(stream, samples) }
      if ids.contains("concealed-audio") {
        found += concealment(stream, samples, limits["concealed-audio"]?["least_share"] ?? 20)
      }
    }
    return found
  }

  private static func detection(
    _ rule: String, _ stream: CallFacts.Stream, _ from: Int64, _ to: Int64, _ evidence: String,
    _ impact: FindingImpact
  ) -> Detection {
    Detection(
      rule, peer: stream.peer, from: from, to: to, evidence, ssrc: stream.ssrc,
      track: stream.track, direction: .inbound, kind: stream.kind, impact: impact)
  }

  /// Finds freezes in freezeCount and totalFreezesDuration, which increase when a freeze ends.
  private static func freezes(
    _ stream: CallFacts.Stream, _ samples: [CountedSample]
  ) -> [Detection] {
    zip(samples, samples.dropFirst()).compactMap { before, after in
      guard let now = after.freezes, let then = before.freezes, now > then else { return nil }
      let seconds = max(0, (after.frozenSeconds ?? 0) - (before.frozenSeconds ?? 0))
      let from = max(before.at, after.at -| Int64(saturating: seconds * 1e9))
      let length = Int64((min(seconds, 1e9) * 1e3).rounded())
      let times = now -| then
      return detection(
        "freeze", stream, seconds > 0 ? from : before.at, after.at,
        (times == 1
          ? "froze for \(length) ms" : "froze \(times) times, \(length) ms in all")
          + ", as its receiver counted", FindingImpact(frozen: seconds, count: times))
    }
  }

  /// The rules that need frames, packets or responses, which reports do not contain.
  static let unreported: Set<String> = [
    "late-first-frame", "name-unresolved", "key-frame-late", "no-key-frame",
  ]

  /// Finds periods of more than five seconds without a new frame, once there has been one.
  ///
  /// A period with fewer than five packets per second is a pause, as when a server withholds video.
  private static func stops(
    _ stream: CallFacts.Stream, _ samples: [CountedSample]
  ) -> [Detection] {
    var found: [Detection] = []
    var still: (from: CountedSample, to: CountedSample)?
    func close() {
      guard let (from, to) = still else { return }
      still = nil
      let length = to.at -| from.at
      guard length > PictureGap.longestFreeze else { return }
      let packets = max(0, (to.packets ?? 0) -| (from.packets ?? 0))
      let isPause = packets *| 1_000_000_000 < 5 *| length
      found.append(
        detection(
          isPause ? "video-paused" : "video-stopped", stream, from.at, to.at,
          "no frame was decoded for \(decimal(Double(length) / 1e9)) s, while "
            + "\(counted(packets, "packet")) of it arrived",
          isPause ? FindingImpact() : FindingImpact(frozen: Double(length) / 1e9)))
    }
    for (before, after) in zip(samples, samples.dropFirst()) {
      guard let then = before.frames, let now = after.frames, then > 0, now >= then else {
        close()
        continue
      }
      if now == then {
        still = (still?.from ?? before, after)
      } else {
        close()
      }
    }
    close()
    return found
  }

  /// Finds audible concealment, measured as a share of the playout; silent concealment does not
  /// count.
  private static func concealment(
    _ stream: CallFacts.Stream, _ samples: [CountedSample], _ leastShare: Double
  ) -> [Detection] {
    zip(samples, samples.dropFirst()).compactMap { before, after in
      guard let now = after.concealed, let then = before.concealed, let all = after.samples,
        let allThen = before.samples, all > allThen, now > then
      else { return nil }
      let share = Double(now -| then) / Double(all -| allThen)
      let seconds = share * Double(after.at -| before.at) / 1e9
      // In a long interval, `leastShare` percent of a single second is enough.
      guard share * 100 >= leastShare || seconds >= leastShare / 100 && share >= 0.02 else {
        return nil
      }
      return detection(
        "concealed-audio", stream, before.at, after.at,
        "\(percent(now -| then, of: all -| allThen)) of the played audio was concealed, as counted "
          + "by its receiver", FindingImpact(concealed: seconds, share: share))
    }
  }
}
