import Tape
import Wire

// Rules about received video.

extension FindingRule {
  static func findFreezes(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.pictureGaps.compactMap { gap in
      guard let mean = gap.freezeMean, gap.isFreeze else { return nil }
      let length = Int64((Double(gap.length) / 1e6).rounded())
      return Detection(
        "freeze", peer: gap.peer, from: gap.from, to: gap.to,
        "froze for \(length) ms; the frames before it lasted "
          + "\(Int64((mean / 1e6).rounded())) ms on average",
        ssrc: gap.ssrc, track: gap.track, direction: .inbound, kind: "video",
        impact: FindingImpact(frozen: gap.seconds))
    }
  }

  /// Finds times without video that are longer than a freeze or last until the end.
  ///
  /// A stop that was negotiated, or that the sender announced with BYE, is not a problem.
  static func findStops(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for gap in facts.pictureGaps {
      let hasPackets = Double(gap.packets) >= 5 * gap.seconds
      // Shortly before the end, the next frame may merely be late, for example because
      // retransmissions are in flight.
      let isOver = gap.isLast && hasPackets && gap.seconds > (gap.missing > 0 ? 1 : 2)
      guard gap.length > PictureGap.longestFreeze || isOver, gap.isLast || !gap.isPause
      else { continue }
      guard try !wasAgreed(gap, connection), try !saidGoodbye(gap, connection) else { continue }
      let ending = gap.isLast ? facts.ending(at: gap.to) : ""
      var text = "no frame was shown for \(decimal(gap.seconds)) s\(ending): "
      if hasPackets {
        text += "\(gap.packets) packets of it arrived meanwhile"
        if gap.missing > 0 { text += ", and \(gap.missing) are missing" }
      } else {
        text +=
          gap.missing > 0
          ? "\(gap.missing) packets of it are missing"
          : "its sender sent nothing, or none of it arrived"
      }
      found.append(
        Detection(
          "video-stopped", peer: gap.peer, from: gap.from, to: gap.to, text, ssrc: gap.ssrc,
          track: gap.track, direction: .inbound, kind: "video",
          impact: FindingImpact(frozen: gap.seconds)))
    }
    return found
  }

  /// Finds pauses because of a static screen or a disabled camera: nothing was sent and no packet
  /// is missing.
  ///
  /// Shorter pauses are reported only if freezeCount counts them, so that every freeze in the
  /// statistics has an explanation.
  static func findVideoPauses(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for gap in facts.pictureGaps where gap.isCountedPause || isLongPause(gap) {
      if !gap.isCountedPause, try wasAgreed(gap, connection) { continue }
      found.append(
        Detection(
          "video-paused", peer: gap.peer, from: gap.from, to: gap.to,
          gap.isCountedPause
            ? "its sender sent nothing new for \(decimal(gap.seconds)) s and no packet is missing; "
              + "freezeCount counts that as a freeze"
            : "nothing was sent for \(decimal(gap.seconds)) s",
          ssrc: gap.ssrc, track: gap.track, direction: .inbound, kind: "video",
          severity: gap.isCountedPause ? .info : nil))
    }
    return found
  }

  private static func isLongPause(_ gap: PictureGap) -> Bool {
    gap.length > PictureGap.longestFreeze && !gap.isLast && gap.isPause
  }

  private static func wasAgreed(_ gap: PictureGap, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> Bool
  {
    try connection.integer(
      """
      SELECT EXISTS (
        SELECT 1 FROM signaling WHERE peer = \(gap.peer) AND type IN ('offer', 'answer')
          AND at_ns BETWEEN \(gap.from) - 1000000000 AND \(gap.from) + 1000000000)
      """) == 1
  }

  private static func saidGoodbye(_ gap: PictureGap, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> Bool
  {
    try connection.integer(
      """
      SELECT EXISTS (
        SELECT 1 FROM rtcp WHERE peer = \(gap.peer) AND direction = 'in' AND type = 'bye'
          AND ssrc & 0xffffffff = \(gap.ssrc)
          AND at_ns BETWEEN \(gap.from) - 1000000000 AND \(gap.to))
      """) == 1
  }

  // MARK: Key frames

  static func findMissingKeyFrames(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    keyFrameWaits(facts).filter { Double($0.to - $0.from) >= limits["least_s"] * 1e9 }.map {
      detection("no-key-frame", $0)
    }
  }

  /// Finds key frames that came late after a request; they are not a problem in themselves, but
  /// explain freezes.
  static func findLateKeyFrames(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    keyFrameWaits(facts).filter {
      let seconds = Double($0.to -| $0.from) / 1e9
      return seconds >= limits["least_s"] && seconds < limits["most_s"]
    }.map { detection("key-frame-late", $0) }
  }

  private struct KeyFrameWait {
    var peer: Int64
    var ssrc: Int64
    var track: Int64?
    var from: Int64
    var to: Int64
    var requests: Int
    var isAnswered: Bool
  }

  private static func detection(_ rule: String, _ wait: KeyFrameWait) -> Detection {
    let seconds = Double(wait.to -| wait.from) / 1e9
    let (times, since) =
      wait.requests == 1 ? ("once", "that") : ("\(wait.requests) times", "the first time")
    return Detection(
      rule, peer: wait.peer, from: wait.from, to: wait.to,
      "its receiver requested a key frame (a whole picture) \(times) and "
        + (wait.isAnswered
          ? "showed one \(decimal(seconds)) s after \(since)"
          : "showed none in \(decimal(seconds)) s"),
      ssrc: wait.ssrc, track: wait.track, direction: .inbound, kind: "video",
      impact: FindingImpact(count: Int64(wait.requests)))
  }

  private static func keyFrameWaits(_ facts: CallFacts) -> [KeyFrameWait] {
    var waits: [KeyFrameWait] = []
    var open: [Int: Int] = [:]
    for demand in facts.demands where demand.direction == .outbound && demand.kind != .nack {
      let number = facts.stream(demand.peer, .inbound, demand.ssrc)?.track
      let place = facts.tracks.firstIndex {
        $0.peer == demand.peer && $0.direction == .inbound && $0.kind == "video"
          && ($0.sources.contains(demand.ssrc) || $0.track == number)
      }
      let answer = place.flatMap { facts.tracks[$0].keyFrame(after: demand.at) }
      let name = place ?? -1
      if let known = open[name], waits[known].ssrc == demand.ssrc,
        waits[known].peer == demand.peer, waits[known].to == answer ?? facts.end
      {
        waits[known].requests +|= 1
        continue
      }
      open[name] = waits.count
      waits.append(
        KeyFrameWait(
          peer: demand.peer, ssrc: demand.ssrc, track: place.map { facts.tracks[$0].track },
          from: demand.at, to: answer ?? facts.end, requests: 1, isAnswered: answer != nil))
    }
    return waits
  }

  /// Finds received video whose first frame was late.
  ///
  /// The time is measured from the connection or the first packet, whichever is later. Streams that
  /// may have begun before the recording are left out.
  static func findLateFirstFrames(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    // If the call began before the take, the first frame in the take is not the stream's first.
    let beganBefore =
      try connection.integer(
        "SELECT 1 FROM coverage WHERE what = 'late-start' AND peer IS NULL LIMIT 1") != nil
    let announced = try connection.prepare(
      """
      SELECT DISTINCT peer, ssrc & 0xffffffff, track FROM track
      WHERE kind = 'video' AND direction = 'in' AND ssrc IS NOT NULL
        AND codec NOT IN ('rtx', 'red', 'ulpfec', 'flexfec', 'flexfec-03', '')
      ORDER BY peer, track LIMIT 10000
      """)
    while try announced.step() {
      let (peer, ssrc, track) = announced.values(Int64.self, Int64.self, Int64.self)
      guard let connected = facts.connected(peer), let stream = facts.stream(peer, .inbound, ssrc)
      else { continue }
      guard !beganBefore || stream.first > 2_000_000_000 else { continue }
      let shown = facts.track(peer, track, .inbound)?.pictures.first(where: \.isGood)
      let from = max(connected, stream.first)
      let to = shown?.at ?? stream.last
      let seconds = Double(to &- from) / 1e9
      // The take has an inbound track only if media of the peer was decrypted.
      let isOpened = facts.tracks.contains { $0.peer == peer && $0.direction == .inbound }
      guard seconds > limits["least_s"],
        shown != nil || isOpened && Double(stream.packets) >= 5 * seconds
      else { continue }
      let text =
        shown == nil
        ? "no picture was shown in \(decimal(seconds)) s"
        : "shown after \(decimal(seconds)) s"
      found.append(
        Detection(
          "late-first-frame", peer: peer, from: from, to: to,
          text + ", although its packets arrived",
          ssrc: ssrc, track: track, direction: .inbound, kind: "video",
          impact: FindingImpact(withoutMedia: seconds)))
    }
    return found
  }
}

extension CallFacts {
  /// Returns when a peer was first connected; nil if it never was.
  fileprivate func connected(_ peer: Int64) -> Int64? {
    let own = states.filter { $0.peer == peer }
    let hasOwn = own.contains { $0.machine == "connection" && $0.to != "closed" }
    let machine = hasOwn ? "connection" : "ice-connection"
    return own.first { $0.machine == machine && ["connected", "completed"].contains($0.to) }?.at
  }
}

extension CallFacts.Track {
  /// Returns when the next key frame after a time was displayed; nil if none was.
  fileprivate func keyFrame(after at: Int64) -> Int64? {
    var (low, high) = (0, keys.count)
    while low < high {
      let middle = (low +| high) / 2
      if keys[middle] <= at { low = middle +| 1 } else { high = middle }
    }
    return low < keys.count ? keys[low] : nil
  }
}

// MARK: - AudioDetectors

// Rules about audio.

extension FindingRule {
  /// Finds runs of seconds in which one second's concealment, or the run's total, reaches the
  /// rule's limit.
  ///
  /// Concealment counts only if packets were lost, late or refused.
  static func findConcealment(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    var refusing: Set<Int64> = []
    let refusals = try connection.prepare(
      "SELECT DISTINCT peer FROM event WHERE type = 'refused' AND detail ->> '$.layer' = 'srtp'")
    while try refusals.step() { refusing.insert(refusals.integer(0)) }
    for track in facts.tracks where track.direction == .inbound && track.kind == "audio" {
      func share(_ voice: CallFacts.Voice, _ limit: String = "low_share") -> Bool {
        let concealed = voice.concealed -| voice.spared
        return Double(voice.blocks) >= limits["least_blocks"] && voice.concealed < voice.blocks
          && Double(concealed) * 100 >= limits[limit] * Double(voice.blocks)
      }
      var second = 0
      while second < track.voices.count {
        guard share(track.voices[second]) else {
          second +|= 1
          continue
        }
        var (last, blocks, concealed, isBad) = (second, Int64(0), Int64(0), false)
        while last < track.voices.count, share(track.voices[last]) {
          blocks +|= Int64(track.voices[last].blocks)
          concealed +|= Int64(track.voices[last].concealed -| track.voices[last].spared)
          // With DTX, a second has few blocks, so a few concealed blocks are already a large share.
          let part = Int64(track.voices[last].concealed -| track.voices[last].spared)
          let isLong =
            Double(part *| blockNanoseconds) * 100 >= limits["least_share"] * 1_000_000_000
          isBad = isBad || isLong && share(track.voices[last], "least_share")
          last +|= 1
        }
        if isBad || Double(concealed) >= limits["least_concealed"] {
          found.append(
            concealment(
              track, second..<last, (concealed, blocks), severity: isBad ? nil : .low,
              reason: refusing.contains(track.peer) ? "refused, lost or late" : "lost or late"))
        }
        second = last
      }
    }
    return found
  }

  /// Returns a detection of the concealment in some seconds of a track.
  ///
  /// If these seconds contain nearly all of the track's blocks, the detection states the track's
  /// totals, so that it agrees with the summary.
  private static func concealment(
    _ track: CallFacts.Track, _ time: Range<Int>, _ counts: (concealed: Int64, blocks: Int64),
    severity: FindingSeverity?, reason: String
  ) -> Detection {
    let all = track.voices.reduce(Int64(0)) { $0 +| Int64($1.blocks) }
    let allConcealed = track.voices.reduce(Int64(0)) { $0 +| Int64($1.concealed -| $1.spared) }
    let isWhole = counts.blocks *| 10 >= all *| 9
    let (concealed, blocks) = isWhole ? (allConcealed, all) : counts
    func words(_ concealed: Int64, _ blocks: Int64) -> String {
      "\(seconds(concealed)) of \(seconds(blocks)) s"
    }
    return Detection(
      "concealed-audio", peer: track.peer, from: track.voices[time.lowerBound].firstConcealed,
      to: track.voices[time.upperBound -| 1].lastConcealed +| blockNanoseconds,
      "\(words(concealed, blocks)) of it (\(percent(concealed, of: blocks))) were concealed, "
        + "because packets were \(reason)"
        + (isWhole
          ? ""
          : "; over the whole call \(words(allConcealed, all)) "
            + "(\(percent(allConcealed, of: all)))"),
      track: track.track, direction: .inbound,
      kind: "audio",
      impact: FindingImpact(
        concealed: Double(concealed) * Double(blockNanoseconds) / 1e9,
        share: Double(concealed) / Double(max(blocks, 1)), count: concealed),
      severity: severity)
  }

  /// The usual length of a block.
  private static let blockNanoseconds: Int64 = 20_000_000

  /// Formats the length of a number of blocks of 20 ms in seconds, with two decimals.
  private static func seconds(_ blocks: Int64) -> String {
    let hundredths = blocks *| (blockNanoseconds / 10_000_000)
    let rest = hundredths % 100
    return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
  }

  static func findSilence(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for silence in facts.voices.silences {
      let track = facts.tracks[silence.place]
      let isDead = facts.voices.loud[silence.place] == 0
      let length = silence.to -| silence.from
      let spoken =
        isDead
        ? 0
        : try connection.integer(
          """
          SELECT sum(min(to_ns, \(silence.to)) - max(from_ns, \(silence.from))) FROM speaker
          WHERE peer = \(track.peer)
            AND (track <> \(track.track) OR direction <> '\(track.direction.rawValue)')
            AND from_ns < \(silence.to) AND to_ns > \(silence.from)
          """) ?? 0
      guard isDead || Double(length - spoken) >= limits["least_unspoken_s"] * 1e9 else { continue }
      found.append(
        Detection(
          "silent-audio", peer: track.peer, from: silence.from, to: silence.to,
          "\(silence.blocks) blocks in a row were digital silence"
            + (isDead ? ": it never produced a sound" : ""), track: track.track,
          direction: track.direction, kind: "audio", impact: FindingImpact(count: silence.blocks)))
    }
    return found
  }
}
