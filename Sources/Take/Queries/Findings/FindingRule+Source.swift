import Tape
import Wire

// Rules about cameras and screens.

extension FindingRule {
  /// Finds a camera that stops delivering frames when it should not.
  ///
  /// A screen delivers none while its content does not change; changes that the application or a
  /// negotiation makes to the track are intended.
  static let stoppedCamera = FindingRule(
    id: "camera-stopped", severity: .high, title: "Camera stopped", scope: .stream,
    thresholds: [
      Threshold("least_pause", 2, "s", "TX and ORC wait for 3 samples; W3C calls 5 s a pause"),
      Threshold("most_gap", 1000, "ms", "between frames before it; a screen pauses now and then"),
      Threshold("least_frames", 40, "frames", "before it: a screen that moves for once has fewer"),
    ], causes: ["process-starved"],
    sql: """
      SELECT peer, track, at_ns, kind FROM capture WHERE kind <> 'audio'
      """, detector: findStoppedCameras)

  @Sendable private static func findStoppedCameras(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.tracks.filter { $0.kind == "video" && $0.direction == .outbound }
      .flatMap { stops(of: $0, facts, limits) }
  }

  private static func stops(
    of track: CallFacts.Track, _ facts: CallFacts, _ limits: Limits
  ) -> [Detection] {
    let captured = facts.perception.captured.filter {
      $0.peer == track.peer && $0.track == track.track && $0.isVideo
    }
    // Without captured frames, encoded frames represent the source.
    let times = captured.isEmpty ? Self.runs(of: track.pictures) : captured
    guard let live = facts.peer(track.peer)?.live,
      !facts.perception.isScreen(track.peer, track.track),
      // Isolated frames are typical of a screen.
      times.count(where: { $0.count <= 3 }) < 2
    else { return [] }
    var found: [Detection] = []
    for (place, run) in times.enumerated() {
      let end = min(place +| 1 < times.count ? times[place +| 1].from : live.upperBound, facts.end)
      // The frames before the pause must be many and without long gaps, unlike a screen's, and
      // nothing may show that the pause was intended.
      guard Double(end -| run.to) / 1e9 >= limits["least_pause"], run.to >= live.lowerBound,
        Double(run.count) >= limits["least_frames"],
        Double(run.longestGap) / 1e6 <= limits["most_gap"],
        !facts.perception.isMeant(track.peer, at: run.to),
        !facts.perception.isOff(track.peer, track.track, .outbound, from: run.to, to: end),
        runsOn(facts, track.peer, from: run.to, to: end)
      else { continue }
      let ended = facts.perception.changes.contains {
        $0.peer == track.peer && $0.name == "noteCapture" && $0.track == track.track
          && abs($0.at -| run.to) < 2_000_000_000
      }
      let isLast = place +| 1 == times.count
      found.append(
        Detection(
          "camera-stopped", peer: track.peer, from: run.to, to: end,
          "no frame for \(tenths(end - run.to)) s\(isLast ? ", to the end" : ""), after "
            + "\(counted(run.count, "frame")) without a pause"
            + (ended ? "; its capturer ended" : "") + "; the track was not switched off",
          track: track.track, direction: .outbound, kind: "video",
          impact: FindingImpact(withoutMedia: Double(end -| run.to) / 1e9)))
    }
    return found
  }

  /// Returns whether a peer's process kept running during a period, judging by the levels of the
  /// audio that it sent; true if there is too little audio to judge.
  private static func runsOn(
    _ facts: CallFacts, _ peer: Int64, from: Int64, to: Int64
  ) -> Bool {
    // If the process stops, its audio stops too; if only the camera stops, audio continues.
    let voices = facts.tracks.filter {
      $0.peer == peer && $0.kind == "audio" && $0.direction == .outbound && !$0.levels.isEmpty
    }
    guard !voices.isEmpty else { return true }
    return voices.contains { track in
      let count = track.levels.count { $0.at > from && $0.at <= to }
      return Double(count) >= 0.5 * Double(to - from) / 1e8 || to - from < 500_000_000
    } || voices.allSatisfy { $0.levels.count < 10 }
  }

  /// Splits frames at pauses of a second.
  private static func runs(of pictures: [CallFacts.Picture]) -> [PerceptionFacts.Captured] {
    var runs: [PerceptionFacts.Captured] = []
    for picture in pictures {
      if var run = runs.last, picture.at -| run.to < 1_000_000_000 {
        run.longestGap = max(run.longestGap, picture.at -| run.to)
        (run.to, run.count) = (picture.at, run.count + 1)
        runs[runs.count - 1] = run
      } else {
        runs.append(
          PerceptionFacts.Captured(
            peer: 0, track: 0, isVideo: true, from: picture.at, to: picture.at, count: 1,
            longestGap: 0))
      }
    }
    return runs
  }

  /// Finds cameras that repeat one picture; a working camera never does, because its sensor is
  /// noisy.
  ///
  /// A screen repeats pictures too, but only about once a second; a capturer that hangs repeats
  /// them at its frame rate. In received video, equal digests of decoded pictures reveal the
  /// repetition; if the digests differ, only `picture-still` can be reported.
  static let stuckCamera = FindingRule(
    id: "camera-repeats", severity: .high, title: "Camera repeats one picture", scope: .stream,
    thresholds: [
      Threshold("least_still", 3, "s", "TR and RKB name frozen sources without a bound"),
      Threshold("least_rate", 4, "frames/s", "a screen that repeats itself does so once a second"),
    ], silentUnder: ["camera-black", "encoder-capped", "standing-queue"],
    sql: """
      SELECT peer, track, digest, count(*) AS pictures, min(at_ns) AS from_ns, max(at_ns) AS to_ns
      FROM frame WHERE kind = 'video' AND direction = 'in' AND digest IS NOT NULL
      GROUP BY peer, track, digest HAVING pictures >= 5
      """, detector: findStuckCameras)

  @Sendable private static func findStuckCameras(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for still in facts.perception.stills where still.shade == nil {
      let seconds = Double(still.to -| still.from) / 1e9
      guard seconds >= limits["least_still"],
        Double(still.pictures) >= limits["least_rate"] * seconds,
        !isScreen(facts, still.peer, still.track, still.direction, before: still.from),
        still.direction == .inbound
          || !facts.perception.isOff(
            still.peer, still.track, .outbound, from: still.from, to: still.to)
      else { continue }
      found.append(
        Detection(
          "camera-repeats", peer: still.peer, from: still.from, to: still.to,
          "the same picture \(still.pictures) times in \(tenths(still.to - still.from)) s",
          track: still.track, direction: still.direction, kind: "video",
          impact: FindingImpact(frozen: seconds)))
    }
    return found
  }

  /// Returns whether a track behaved like a screen, judging by its pauses, or by a content hint
  /// from its sender's application; true for received video with too few frames to judge.
  static func isScreen(
    _ facts: CallFacts, _ peer: Int64, _ track: Int64, _ direction: WireDirection, before: Int64
  ) -> Bool {
    if direction == .outbound { return facts.perception.isScreen(peer, track) }
    if let other = facts.peer(peer)?.other,
      facts.perception.changes.contains(where: {
        $0.peer == other && $0.name == "setContentHint"
      })
    {
      return true
    }
    let pictures = facts.track(peer, track, direction)?.pictures.filter { $0.at <= before } ?? []
    guard pictures.count > 10 else { return true }
    let gaps = zip(pictures, pictures.dropFirst()).map { $1.at -| $0.at }
    return gaps.count { $0 > 700_000_000 } >= 2
  }

  /// Finds frames of a single dark shade: the lens is covered, the capturer lacks permission, or
  /// another program uses the camera.
  ///
  /// A disabled track also sends dark frames; a receiver cannot distinguish the two.
  static let blackCamera = FindingRule(
    id: "camera-black", severity: .medium, title: "Black picture", scope: .stream,
    thresholds: [
      Threshold("least_black", 2, "s", "a cut to black between two shots is shorter")
    ],
    sql: """
      SELECT peer, track, digest, count(*) AS pictures, min(at_ns) AS from_ns, max(at_ns) AS to_ns
      FROM frame WHERE kind = 'video' AND direction = 'in' AND digest IS NOT NULL
      GROUP BY peer, track, digest HAVING pictures >= 5
      """, detector: findBlackCameras)

  @Sendable private static func findBlackCameras(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for still in facts.perception.stills where still.shade != nil {
      let seconds = Double(still.to -| still.from) / 1e9
      let sender = still.direction == .inbound ? facts.peer(still.peer)?.other : still.peer
      // The sender's application disabled the track, so the black picture is intended.
      let isOff =
        if still.direction == .outbound {
          facts.perception.isOff(
            still.peer, still.track, .outbound, from: still.from, to: still.to)
        } else {
          facts.track(still.peer, still.track, .inbound).map {
            facts.isOffAtSource($0, from: still.from, to: still.to)
          } ?? false
        }
      guard seconds >= limits["least_black"], !isOff else { continue }
      found.append(
        Detection(
          "camera-black", peer: still.peer, from: still.from, to: still.to,
          "only black in \(counted(still.pictures, "picture")), \(tenths(still.to - still.from)) s"
            + (still.direction == .inbound && sender == nil
              ? "; a camera that is switched off looks the same" : ""),
          track: still.track, direction: still.direction, kind: "video",
          impact: FindingImpact(withoutMedia: sender == nil ? 0 : seconds),
          severity: sender == nil ? .low : nil))
    }
    return found
  }

  /// Finds a camera that temporarily delivers at most half as many frames as usual.
  static let slowCamera = FindingRule(
    id: "camera-slow", severity: .low, title: "Camera slower than before", scope: .stream,
    thresholds: [
      Threshold("most_share", 0.5, "", "of the frames that it gave; ORC capture-bottleneck"),
      Threshold("least_time", 3, "s", "two samples in ORC"),
      Threshold("least_usual", 8, "frames/s", "less is a screen, or was meant"),
    ], causes: ["process-starved", "camera-stopped", "encoder-capped"],
    sql: """
      SELECT peer, track, second, frames FROM frame_rate WHERE direction = 'out'
      """, detector: findSlowCameras)

  @Sendable private static func findSlowCameras(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for series in facts.perception.series("media-source", "video") {
      let rates = series.compactMap { $0[.framesPerSecond] }
      let usual = rates.sorted().dropFirst(rates.count / 2).first ?? 0
      guard usual >= limits["least_usual"], !series.isEmpty else { continue }
      let peer = series[0].peer
      let points = series.points { $1[.framesPerSecond].map { $0 > 0 ? usual / $0 : 0 } ?? nil }
      for run in StatRun.runs(
        points, on: 1 / limits["most_share"], off: 1.4,
        least: Int64(saturating: limits["least_time"] * 1e9))
      where !facts.perception.isMeant(peer, at: run.from, within: 2_500_000_000)
        && !facts.perception.changes.contains(where: {
          $0.peer == peer && $0.name == "setContentHint"
        })
      {
        found.append(
          Detection(
            "camera-slow", peer: peer, from: run.from, to: run.to,
            "\(whole(usual / run.peak)) frames a second, while \(whole(usual)) are usual",
            direction: .outbound, kind: "video"))
      }
    }
    return found
  }
}
