import Tape
import Wire

// Conclusions from received media about the sender's devices, encoder and process, for takes
// without the sender's own rows.

extension FindingRule {
  static let receiverRules: [FindingRule] = [
    stillPicture, videoHeldDown, neverCame, mutedAudio,
  ]

  /// Returns whether the take has no endpoint that sends to this peer.
  private static func lacksSender(_ facts: CallFacts, of peer: Int64) -> Bool {
    guard let peer = facts.peer(peer) else { return false }
    return peer.other == nil || peer.isObserved
  }

  // MARK: Pictures

  /// The frames of a track in one second, excluding key frames.
  private struct PictureSecond {
    var second: Int64
    var sizes: [Int64] = []
    var quantisers: [Int64] = []
    var pixels: Int64 = 0

    /// Returns a percentile of sorted values.
    private static func value(_ values: [Int64], _ share: Int) -> Int64 {
      values.isEmpty ? 0 : values[(values.count - 1) * share / 100]
    }
    var size: Int64 { Self.value(sizes, 50) }
    var quantiser: Int64 { Self.value(quantisers, 50) }
    var bits: Int64 { sizes.reduce(0, +|) *| 8 }
    var bitsPerPixel: Double { Double(size) * 8 / Double(max(pixels, 1)) }
    /// The 90th percentile of frame sizes divided by the 10th.
    var spread: Double { Double(Self.value(sizes, 90)) / Double(max(Self.value(sizes, 10), 1)) }
    var quantiserSpread: Int64 { (quantisers.last ?? 0) -| (quantisers.first ?? 0) }
  }

  /// Returns the seconds of a track with at least this many decoded frames.
  private static func seconds(
    of track: CallFacts.Track, least frames: Double
  ) -> [PictureSecond] {
    var seconds: [PictureSecond] = []
    for picture in track.pictures where picture.isGood && !picture.isKey && picture.quantiser > 0 {
      let second = picture.at / 1_000_000_000
      if seconds.last?.second != second { seconds.append(PictureSecond(second: second)) }
      let last = seconds.count - 1
      seconds[last].sizes.append(Int64(picture.size))
      seconds[last].quantisers.append(Int64(picture.quantiser))
      seconds[last].pixels = Int64(picture.width) *| Int64(picture.height)
    }
    for place in seconds.indices {
      seconds[place].sizes.sort()
      seconds[place].quantisers.sort()
    }
    return seconds.filter { Double($0.sizes.count) >= frames }
  }

  /// Returns a codec's coarsest quantiser, the upper end of its scale.
  static func quantiserScale(_ codec: String) -> Double {
    ["vp8": 127, "vp9": 255, "av1": 255, "h264": 51][codec] ?? 255
  }

  /// Finds received video in which hardly anything changes, at the usual frame rate.
  ///
  /// An encoder that is not limited by its bit rate keeps its quantiser, so frame sizes show how
  /// much has changed: a moving person makes them vary. A camera that repeats a picture cannot be
  /// distinguished from a camera in a quiet room: the encoder removes noise, and refines repeated
  /// pictures as well.
  static let stillPicture = FindingRule(
    id: "picture-still", severity: .low, title: "Picture that hardly changes", scope: .stream,
    thresholds: [
      Threshold("least_still", 5, "s", "a listener sits still for less; our choice"),
      Threshold("least_rate", 4, "frames/s", "a screen that repeats itself does so once a second"),
      Threshold(
        "most_spread", 1.15, "",
        "of large frames to small ones; still pictures of Chromium and Firefox have 1.01 to 1.1, "
          + "their test pictures, which move, 1.4 to 2"),
      Threshold("most_bits", 0.15, "bits/pixel", "of a frame; still pictures have 0.01 to 0.1"),
      Threshold(
        "most_swing", 0.02, "", "of the quantiser's scale; more, and a limit makes sizes equal"),
      Threshold("most_size", 0.2, "", "of the usual frame, where what moved is next to nothing"),
    ],
    silentUnder: [
      "camera-repeats", "camera-black", "encoder-capped", "video-held-down", "standing-queue",
    ],
    sql: """
      SELECT peer, track, at_ns / 1000000000 AS second, count(*) AS frames, min(size) AS least,
        max(size) AS most, min(quantiser) AS least_quantiser, max(quantiser) AS most_quantiser
      FROM frame WHERE kind = 'video' AND direction = 'in' AND key = 0
      GROUP BY peer, track, second
      """, detector: findStillPictures)

  @Sendable private static func findStillPictures(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for track in facts.tracks
    where track.kind == "video" && track.direction == .inbound
      && lacksSender(facts, of: track.peer)
    {
      let first = track.pictures.first?.at ?? 0
      var runs = steadyRuns(of: track, limits)
      for run in smallRuns(of: track, limits)
      where !runs.contains(where: { $0.overlaps(run) })
        && !facts.perception.isMeant(track.peer, at: run.lowerBound)
      {
        runs.append(run)
      }
      for run in runs.sorted(by: { $0.lowerBound < $1.lowerBound })
      where !isScreen(facts, track.peer, track.track, .inbound, before: run.upperBound) {
        let frames = track.pictures.count { run.contains($0.at) }
        // An encoder needs several seconds at the start before its picture is sharp.
        let isAll = run.lowerBound -| first <= 4_000_000_000
        found.append(
          Detection(
            "picture-still", peer: track.peer, from: run.lowerBound, to: run.upperBound,
            "almost no change in \(counted(Int64(frames), "frame")) for "
              + "\(tenths(run.upperBound - run.lowerBound)) s: a still scene, a camera that is "
              + "switched off (black), or one that repeats a picture; the frames do not show which",
            track: track.track, direction: .inbound, kind: "video", severity: isAll ? .info : nil))
      }
    }
    return found
  }

  /// Returns the periods with small frames of nearly equal size and a constant quantiser.
  private static func steadyRuns(
    of track: CallFacts.Track, _ limits: Limits
  ) -> [ClosedRange<Int64>] {
    let swing = max(1, Int64(saturating: limits["most_swing"] * quantiserScale(track.codec)))
    let seconds = seconds(of: track, least: limits["least_rate"]).filter {
      $0.quantiserSpread <= swing && $0.spread <= limits["most_spread"]
        && $0.bitsPerPixel <= limits["most_bits"]
    }
    let runs = seconds.runs { before, after in
      let (small, large) = (min(before.size, after.size), max(before.size, after.size))
      return after.second -| before.second == 1
        && Double(large) <= limits["most_spread"] * Double(max(small, 1))
    }
    return runs.compactMap { run in
      guard let first = run.first, let last = run.last,
        Double(last.second -| first.second +| 1) >= limits["least_still"]
      else { return nil }
      let from = first.second *| 1_000_000_000
      return from...max(from, (last.second +| 1) *| 1_000_000_000)
    }
  }

  /// Returns the periods in which a track's frames were almost empty.
  private static func smallRuns(
    of track: CallFacts.Track, _ limits: Limits
  ) -> [ClosedRange<Int64>] {
    let pictures = track.pictures.filter { $0.isGood && !$0.isKey }
    guard pictures.count >= 60 else { return [] }
    let swing = max(1, Int64(saturating: limits["most_swing"] * quantiserScale(track.codec)))
    var runs: [ClosedRange<Int64>] = []
    var place = 30
    while place < pictures.count {
      let before = pictures[max(0, place -| 60)..<place]
      let usual = median(before.map { Int64($0.size) })
      let most = Int32(saturating: limits["most_size"] * Double(usual))
      guard pictures[place].size <= most, usual >= 400 else {
        place +|= 1
        continue
      }
      var end = place
      var larger = 0
      // Up to one frame in twenty may be larger.
      while end < pictures.count {
        if pictures[end].size > most { larger +|= 1 }
        if larger *| 20 > end -| place +| 20 { break }
        end +|= 1
      }
      let (from, to) = (pictures[place].at, pictures[end -| 1].at)
      let seconds = Double(to -| from) / 1e9
      // A coarser quantiser makes frames small, too.
      let isFine =
        median(pictures[place..<end].map { Int64($0.quantiser) })
        <= median(before.map { Int64($0.quantiser) }) +| swing
      if isFine, seconds >= limits["least_still"],
        Double(end - place) >= limits["least_rate"] * seconds
      {
        runs.append(from...max(from, to))
        // The next run is not compared with frames of this run.
        place = end +| 60
      } else {
        place +|= 1
      }
    }
    return runs
  }

  static func median(_ values: [Int64]) -> Int64 {
    guard !values.isEmpty else { return 0 }
    return values.sorted()[values.count / 2]
  }

  /// Finds received video with a low, constant bit rate and a coarse quantiser, although nothing is
  /// lost or queued: something other than the path limits the encoder.
  ///
  /// Peers that receive several videos are skipped, because a server or an application may choose
  /// small videos.
  static let videoHeldDown = FindingRule(
    id: "video-held-down", severity: .low, title: "Video limited at its sender", scope: .stream,
    thresholds: [
      Threshold("most_rate", 250_000, "bit/s", "as `encoder-capped`"),
      Threshold("least_time", 6, "s", "below that it may be the start of the estimate"),
      Threshold("least_rate", 4, "frames/s", "less is a screen"),
      Threshold("least_quantiser", 0.05, "", "of the scale; libwebrtc's finest has 0.02"),
      Threshold("most_deviation", 0.2, "", "of the median of a second's bits; our choice"),
    ],
    causes: ["encoder-capped", "encoder-limited", "encoder-limited-by-processor"],
    silentUnder: [
      "loss", "loss-burst", "standing-queue", "high-jitter", "path-dead", "rtcp-silence",
      "repairs-missing", "no-repair", "srtp-refused",
    ],
    sql: """
      SELECT peer, track, at_ns / 1000000000 AS second, sum(size) * 8 AS bits,
        avg(quantiser) AS quantiser
      FROM frame WHERE kind = 'video' AND direction = 'in' AND key = 0
      GROUP BY peer, track, second
      """, detector: findHeldDown)

  @Sendable private static func findHeldDown(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    let videos = facts.tracks.filter { $0.kind == "video" && $0.direction == .inbound }
    for track in videos
    where lacksSender(facts, of: track.peer)
      && !videos.contains(where: { $0.peer == track.peer && $0.track != track.track })
    {
      let seconds = seconds(of: track, least: limits["least_rate"])
      // OpenH264 and x264 use coarser quantisers in calls even without a limit.
      let least =
        (track.codec == "h264" ? 0.4 : limits["least_quantiser"]) * quantiserScale(track.codec)
      let runs = seconds.filter {
        Double($0.quantiser) >= least && Double($0.bits) <= limits["most_rate"]
      }.runs { $1.second -| $0.second == 1 }
      for run in runs {
        guard let first = run.first, let last = run.last,
          Double(last.second -| first.second) >= limits["least_time"],
          isSteady(run, limits["most_deviation"])
        else { continue }
        let (from, to) = (first.second *| 1_000_000_000, last.second *| 1_000_000_000)
        let before = median(
          seconds.filter { $0.second < first.second -| 1 && Double($0.quantiser) < least }
            .map(\.bits))
        var words = "\(median(run.map(\.bits)) / 1000) kbit/s"
        if before > 0 { words += ", while \(before / 1000) were usual," }
        words += " for \(tenths(to - from)) s, with a quantiser of "
        words += "\(median(run.map(\.quantiser))) of \(whole(quantiserScale(track.codec))), though "
        words += "nothing was lost or queued: "
        if let line = facts.perception.receiveLines.last(where: {
          $0.peer == track.peer && $0.at <= to
        }), Double(line.limit) <= limits["most_rate"] {
          words += "b= of its own description allows \(line.limit / 1000)"
        } else {
          words += "only the sender knows what limits its encoder"
        }
        found.append(
          Detection(
            "video-held-down", peer: track.peer, from: from, to: to, words, track: track.track,
            direction: .inbound, kind: "video"))
      }
    }
    return found
  }

  /// Returns whether the bit rate is steady, that is, the median of its deviations is at most
  /// `most` times the median rate.
  private static func isSteady(_ run: [PictureSecond], _ most: Double) -> Bool {
    let middle = median(run.map(\.bits))
    let deviation = median(run.map { Int64(clamping: ($0.bits -| middle).magnitude) })
    return Double(deviation) <= most * Double(middle)
  }

  // MARK: Media

  /// Finds media that the remote peer agreed to send although no packet of it arrived.
  ///
  /// This may be intended, because a track without a source sends nothing either.
  static let neverCame = FindingRule(
    id: "media-never-came", severity: .low, title: "Negotiated media that never arrived",
    scope: .connection,
    thresholds: [
      Threshold("least_time", 5, "s", "of connection; a source may start late; our choice")
    ],
    causes: ["direction-refused", "section-rejected", "one-way-media", "path-dead"],
    silentUnder: ["payload-type-unknown", "media-without-transceiver"],
    sql: """
      SELECT peer, at_ns, direction, type, message FROM signaling
      WHERE type IN ('offer', 'answer')
      """, detector: findNeverCame)

  @Sendable private static func findNeverCame(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers where peer.other == nil && !peer.isObserved && !peer.isReported {
      let inbound = facts.streams.filter { $0.peer == peer.number && $0.direction == .inbound }
      guard let live = peer.live, let exchange = facts.network.exchanges(of: peer.number).last,
        !inbound.isEmpty, !inbound.contains(where: { $0.kind.isEmpty && $0.role == .media })
      else { continue }
      let (own, others) =
        exchange.offer.isLocal
        ? (exchange.offer, exchange.answer) : (exchange.answer, exchange.offer)
      let from = max(live.lowerBound, exchange.answer.at)
      guard Double(live.upperBound -| from) / 1e9 >= limits["least_time"] else { continue }
      for kind in ["audio", "video"] where !inbound.contains(where: { $0.kind == kind }) {
        let agreed = zip(own.sections, others.sections).contains { mine, theirs in
          theirs.kind == kind && theirs.sends && theirs.hasSource && mine.receives
            && !theirs.isRejected && !mine.isRejected
        }
        guard agreed else { continue }
        let packets = inbound.reduce(0) { $0 +| $1.packets }
        found.append(
          Detection(
            "media-never-came", peer: peer.number, from: from, to: live.upperBound,
            "the remote peer's \(kind) was negotiated, but no packet of it arrived in "
              + "\(tenths(live.upperBound - from)) s, while \(packets) of other media did: it has "
              + "no source, or its sender understood another direction",
            direction: .inbound, kind: kind))
      }
    }
    return found
  }

  /// Finds periods of digital silence in received audio that otherwise has sound: its sender muted
  /// it, or its device had no signal.
  ///
  /// The receiver cannot know whether anybody spoke meanwhile.
  static let mutedAudio = FindingRule(
    id: "audio-muted", severity: .info, title: "Audio muted at its sender", scope: .stream,
    thresholds: [
      Threshold("least_silence", 2.5, "s", "voices pause for less; our choice"),
      Threshold("most_level", 1, "", "of 32,768: less than the noise of any microphone"),
    ],
    causes: ["microphone-without-signal"], silentUnder: ["silent-audio", "microphone-gaps"],
    sql: """
      SELECT peer, track, min(at_ns) AS from_ns, max(at_ns) AS to_ns, count(*) / 10.0 AS seconds
      FROM level WHERE direction = 'in' AND energy <= samples GROUP BY peer, track
      """, detector: findMutedAudio)

  @Sendable private static func findMutedAudio(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for track in facts.tracks
    where track.kind == "audio" && track.direction == .inbound
      && lacksSender(facts, of: track.peer)
      // The track has sound of at least -50 dBov at some time.
      && track.levels.contains(where: { $0.rms > 100 })
    {
      let isSilent: (CallFacts.Level) -> Bool = {
        Double($0.rms) <= limits["most_level"] || $0.senderDecibels == -127
      }
      for run in track.levels.runs(where: { isSilent($0) == isSilent($1) }) {
        guard let first = run.first, let last = run.last, isSilent(first) else { continue }
        let (from, to) = (first.at -| 100_000_000, last.at)
        let seconds = Double(to -| from) / 1e9
        // With DTX, a sender sends only occasional packets during silence.
        guard seconds >= limits["least_silence"], Double(run.count) >= 5 * seconds,
          !facts.perception.isOff(track.peer, track.track, .inbound, from: from, to: to)
        else { continue }
        found.append(
          Detection(
            "audio-muted", peer: track.peer, from: from, to: to,
            "digital silence for \(tenths(to - from)) s, and sound at other times: muted, or a "
              + "device without a signal; only the sender knows whether somebody spoke",
            track: track.track, direction: .inbound, kind: "audio"))
      }
    }
    return found
  }
}
