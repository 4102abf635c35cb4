import Tape
import Wire

// Rules about encoders: what limits them, and what they cannot do in time.

extension FindingRule {
  /// Finds an encoder whose target is at a configured limit: a bandwidth line in the remote
  /// description (RFC 8866 section 5.8), or an application's parameter.
  static let cappedEncoder = FindingRule(
    id: "encoder-capped", severity: .low,
    title: "Encoder limited by a maximum bit rate", scope: .stream,
    thresholds: [
      Threshold("most_limit", 250_000, "bit/s", "a camera of 640x360 is poor below 300 kbit/s"),
      Threshold(
        "least_share", 0.5, "", "of the limit is used; b=AS counts the heads of packets too"),
      Threshold("least_time", 3, "s", "below that it may be the start of the estimate"),
    ], causes: [],
    sql: """
      SELECT peer, at_ns, name, arguments FROM call_request
      WHERE name IN ('setParameters', 'limitBitrate') AND arguments LIKE '%axi%'
      UNION ALL
      SELECT peer, at_ns, type, message FROM signaling
      WHERE direction = 'in' AND (instr(message, 'b=AS:') > 0 OR instr(message, 'b=TIAS:') > 0)
      """, detector: findCappedEncoders)

  @Sendable private static func findCappedEncoders(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for series in facts.perception.series("outbound-rtp", "video") {
      guard let first = series.first, first.rid.isEmpty else { continue }
      let stream = facts.streams.first {
        $0.ssrc == first.ssrc && $0.peer == first.peer && $0.direction == .outbound
      }
      let points = series.points { before, after in
        guard let target = after[.targetBitrate], target > 0,
          let cap = cap(facts, first.peer, stream?.track, at: before.at)
        else { return 0 }
        return Double(cap.limit) <= limits["most_limit"]
          && target >= limits["least_share"] * Double(cap.limit)
          && target <= 1.1 * Double(cap.limit) ? target : 0
      }
      let least = Int64(saturating: limits["least_time"] * 1e9)
      for run in StatRun.runs(points, on: 1, off: 1, least: least) {
        guard let cap = cap(facts, first.peer, stream?.track, at: run.from) else { continue }
        found.append(
          Detection(
            "encoder-capped", peer: first.peer, from: run.from, to: run.to,
            "\(cap.by) allows \(cap.limit / 1000) kbit/s, of which it used "
              + "\(whole(run.mean / 1000)) for \(tenths(run.to - run.from)) s",
            ssrc: first.ssrc, track: stream?.track, direction: .outbound, kind: "video"))
      }
    }
    return found
  }

  /// Returns the lowest limit in force at an instant, and a phrase that names its source; nil if
  /// there is none.
  private static func cap(
    _ facts: CallFacts, _ peer: Int64, _ track: Int64?, at: Int64
  ) -> (limit: Int64, by: String)? {
    var caps: [(limit: Int64, by: String)] = []
    if let line = facts.perception.lines.last(where: { $0.peer == peer && $0.at <= at }) {
      caps.append((line.limit, "b= of the remote description"))
    }
    let own = facts.perception.changes.filter { $0.peer == peer && $0.at <= at }
    if let limit = own.last(where: {
      $0.name == "setParameters" && (track == nil || $0.track == track)
    })?.limit {
      caps.append((limit, "maxBitrate, set by the application,"))
    }
    if let limit = own.last(where: { $0.name == "limitBitrate" && $0.limit != nil })?.limit {
      caps.append((limit, "the application's limit for all video"))
    }
    return caps.min { $0.limit < $1.limit }
  }

  static let processorLimit = FindingRule(
    id: "encoder-limited-by-processor", severity: .medium,
    title: "Encoder limited by the processor", scope: .stream,
    thresholds: [
      Threshold("least_share", 0.05, "", "of the time; RKB cpulimiting"),
      Threshold("least_time", 2, "s", "in all; two samples, as in ORC"),
    ], causes: ["process-starved"],
    sql: """
      SELECT peer, at_ns, members ->> '$.ssrc' AS ssrc FROM stat
      WHERE type = 'outbound-rtp' AND members ->> '$.qualityLimitationReason' = 'cpu'
      """, detector: findProcessorLimits)

  @Sendable private static func findProcessorLimits(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.perception.series("outbound-rtp", "video").compactMap { series -> Detection? in
      let points = series.points { $1.reason == "cpu" ? $1.seconds(since: $0) : 0 }
      let sum = points.reduce(0) { $0 + min($1.value, 5) }
      let all = series.last.map { $0.seconds(since: series[0]) } ?? 0
      let hit = points.filter { $0.value > 0 }
      guard let first = hit.first, let last = hit.last, sum >= limits["least_time"],
        sum >= limits["least_share"] * all
      else { return nil }
      return Detection(
        "encoder-limited-by-processor", peer: series[0].peer, from: first.from, to: last.to,
        "for \(decimal(sum)) of \(decimal(all)) s", ssrc: series[0].ssrc, direction: .outbound,
        kind: "video", impact: FindingImpact(share: all > 0 ? sum / all : 0))
    }
  }

  static let slowEncoder = FindingRule(
    id: "encoder-slow", severity: .medium, title: "Encoder too slow", scope: .stream,
    thresholds: [
      Threshold("on_share", 0.8, "", "of the time between two frames; ORC"),
      Threshold("off_share", 0.6, "", "below it, it keeps up"),
      Threshold("least_time", 2, "s", "two samples, as in ORC"),
    ], causes: ["process-starved"], silentUnder: ["encoder-limited-by-processor"],
    sql: """
      SELECT peer, at_ns, members ->> '$.totalEncodeTime' AS seconds,
        members ->> '$.framesEncoded' AS frames
      FROM stat WHERE type = 'outbound-rtp' AND members ->> '$.kind' = 'video'
      """, detector: findSlowEncoders)

  @Sendable private static func findSlowEncoders(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    busy(
      facts, limits, "encoder-slow", "outbound-rtp", .totalEncodeTime, .framesEncoded,
      "encoding took", .outbound)
  }

  static let slowDecoder = FindingRule(
    id: "decoder-slow", severity: .medium, title: "Decoder too slow", scope: .stream,
    thresholds: [
      Threshold("on_share", 0.8, "", "of the time between two frames; ORC"),
      Threshold("off_share", 0.6, "", "below it, it keeps up"),
      Threshold("least_time", 2, "s", "two samples, as in ORC"),
    ], causes: ["process-starved"], silentUnder: ["loss", "loss-burst"],
    sql: """
      SELECT peer, at_ns, members ->> '$.totalDecodeTime' AS seconds,
        members ->> '$.framesDecoded' AS frames
      FROM stat WHERE type = 'inbound-rtp' AND members ->> '$.kind' = 'video'
      """, detector: findSlowDecoders)

  @Sendable private static func findSlowDecoders(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    busy(
      facts, limits, "decoder-slow", "inbound-rtp", .totalDecodeTime, .framesDecoded,
      "decoding took", .inbound)
  }

  /// Finds periods in which an encoder or decoder is busy nearly all the time.
  private static func busy(
    _ facts: CallFacts, _ limits: Limits, _ rule: String, _ type: String,
    _ time: StatSample.Member, _ frames: StatSample.Member, _ words: String,
    _ direction: WireDirection
  ) -> [Detection] {
    facts.perception.series(type, "video").flatMap { series in
      let points = series.points { before, after in
        guard let seconds = after.growth(time, since: before),
          let count = after.growth(frames, since: before), count >= 5
        else { return nil }
        return seconds / max(after.seconds(since: before), 0.001)
      }
      return StatRun.runs(
        points, on: limits["on_share"], off: limits["off_share"],
        least: Int64(saturating: limits["least_time"] * 1e9)
      ).map { run in
        Detection(
          rule, peer: series[0].peer, from: run.from, to: run.to,
          "\(words) \(shareText(run.mean)) of the time", ssrc: series[0].ssrc,
          direction: direction, kind: "video", impact: FindingImpact(share: min(run.peak, 1)))
      }
    }
  }

  /// Finds an encoder that encodes far fewer frames than its source delivers.
  static let encoderBehind = FindingRule(
    id: "encoder-behind-source", severity: .low, title: "Frames dropped before the encoder",
    scope: .stream,
    thresholds: [
      Threshold("most_share", 0.7, "", "of the source's frames are encoded; ORC"),
      Threshold("least_rate", 5, "frames/s", "of the source; ORC"),
      Threshold("least_time", 3, "s", "two samples in ORC"),
    ],
    causes: [
      "process-starved", "encoder-limited-by-processor", "encoder-capped", "encoder-limited",
      "standing-queue",
    ],
    sql: """
      SELECT peer, at_ns, type, members ->> '$.framesPerSecond' AS rate FROM stat
      WHERE type IN ('media-source', 'outbound-rtp') AND members ->> '$.kind' = 'video'
      """, detector: findEncodersBehind)

  @Sendable private static func findEncodersBehind(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let cameras = CameraRates(facts)
    return facts.perception.series("outbound-rtp", "video").flatMap { series -> [Detection] in
      let peer = series[0].peer
      // With several cameras, it is unknown which one's frames are encoded, and a simulcast layer
      // may have fewer frames on purpose.
      guard cameras.hasOne(peer), series[0].rid.isEmpty else { return [] }
      let points = series.points { _, after in
        guard let source = cameras.rate(peer, after.call), source >= limits["least_rate"],
          let own = after[.framesPerSecond], after[.active] != 0
        else { return nil }
        return own >= limits["most_share"] * source ? 0 : 1 - own / source
      }
      return StatRun.runs(
        points, on: 0.01, off: 0.01, least: Int64(saturating: limits["least_time"] * 1e9)
      ).map { run in
        Detection(
          "encoder-behind-source", peer: peer, from: run.from, to: run.to,
          "\(shareText(run.mean)) of the source's frames were dropped", ssrc: series[0].ssrc,
          direction: .outbound, kind: "video", impact: FindingImpact(share: run.mean))
      }
    }
  }

  /// Finds a simulcast layer that is no longer sent while other layers are: its receivers fall back
  /// to a smaller layer.
  static let layerEnded = FindingRule(
    id: "simulcast-layer-ended", severity: .low, title: "Simulcast layer ended",
    scope: .stream,
    thresholds: [
      Threshold("least_pause", 2, "s", "in which nothing of it is sent while another one is")
    ], causes: ["standing-queue", "loss", "encoder-capped"],
    sql: """
      SELECT peer, track, ssrc, width, height, max(frame_store.at_ns) AS last_ns
      FROM frame_store JOIN format USING (format)
      WHERE kind = 'video' AND direction = 'out' GROUP BY peer, track, ssrc
      """, detector: findEndedLayers)

  @Sendable private static func findEndedLayers(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let least = Int64(saturating: limits["least_pause"] * 1e9)
    var found: [Detection] = []
    // If the take lacks the sender, a receiver of several layers is examined instead.
    let layers = facts.streams.filter { stream in
      stream.role == .media && stream.kind == "video" && stream.track != nil
        && (stream.direction == .outbound || facts.peer(stream.peer)?.other == nil)
    }
    for layer in layers {
      let others = layers.filter {
        $0.peer == layer.peer && $0.track == layer.track && $0.ssrc != layer.ssrc
          && $0.direction == layer.direction
          // Layers of a track overlap in time; a stream that only replaced another one does not.
          && min($0.last, layer.last) -| max($0.first, layer.first) >= 1_000_000_000
      }
      guard !others.isEmpty else { continue }
      for gap in layer.gaps {
        let to = gap.to ?? others.map(\.last).max() ?? gap.from
        guard to -| gap.from >= least, gap.missing == 0,
          others.contains(where: {
            facts.sum(of: $0, from: gap.from +| 200_000_000, to: to).packets >= 10
          })
        else { continue }
        let width = facts.perception.samples.last {
          $0.ssrc == layer.ssrc && $0.type == "outbound-rtp" && $0.at <= gap.from + 1_000_000_000
        }
        let isMeant = facts.perception.changes.contains {
          $0.peer == layer.peer && $0.name == "setParameters"
            && abs($0.at -| gap.from) <= 1_000_000_000
        }
        let name = width.map { $0.rid.isEmpty ? "" : " \($0.rid)" } ?? ""
        let size =
          width.flatMap { sample in sample[.frameWidth].map { ", \(whole($0)) pixels wide," } }
          ?? ""
        found.append(
          Detection(
            "simulcast-layer-ended", peer: layer.peer, from: gap.from, to: to,
            "layer\(name)\(size) was not sent for \(tenths(to - gap.from)) s"
              + (isMeant ? "; the application had set parameters" : ""),
            ssrc: layer.ssrc, track: layer.track, direction: layer.direction, kind: "video"))
      }
    }
    return found
  }

  /// Finds quantizers near the end of their scale, which is 127 for VP8, 255 for VP9 and AV1, and
  /// 51 for H.264.
  static let poorPicture = FindingRule(
    id: "picture-coarse", severity: .low, title: "Coarse picture", scope: .stream,
    thresholds: [
      Threshold(
        "most_quantiser", 0.75, "", "of the scale; libwebrtc makes VP8 smaller at 95 of 127"),
      Threshold("least_time", 5, "s", "less is a change of scene"),
    ], causes: ["encoder-capped", "encoder-limited", "standing-queue", "loss"],
    sql: """
      SELECT peer, track, codec, at_ns, quantiser FROM frame
      WHERE kind = 'video' AND direction = 'out' AND quantiser > 0
      """, detector: findPoorPictures)

  @Sendable private static func findPoorPictures(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    return facts.tracks.filter { $0.kind == "video" && $0.direction == .outbound }.flatMap {
      track in
      let scale = quantiserScale(track.codec)
      let pictures = track.pictures.filter { $0.quantiser > 0 }
      let points = zip(pictures, pictures.dropFirst()).map {
        StatPoint(from: $0.at, to: $1.at, value: Double($1.quantiser) / scale)
      }
      return StatRun.runs(
        points, on: limits["most_quantiser"], off: limits["most_quantiser"] * 0.9,
        least: Int64(saturating: limits["least_time"] * 1e9)
      ).map { run in
        Detection(
          "picture-coarse", peer: track.peer, from: run.from, to: run.to,
          "a mean quantiser of \(whole(run.mean * scale)) of \(whole(scale)) for "
            + "\(tenths(run.to - run.from)) s",
          track: track.track, direction: .outbound, kind: "video")
      }
    }
  }

  static let huntingResolution = FindingRule(
    id: "resolution-hunts", severity: .low, title: "Unstable resolution", scope: .stream,
    thresholds: [
      Threshold("least_changes", 6, "changes", "within a minute; RF and ORC count them")
    ], causes: ["standing-queue", "loss", "encoder-limited", "encoder-limited-by-processor"],
    silentUnder: ["renegotiation-storm"],
    sql: """
      SELECT peer, track, at_ns, direction, width, height FROM resolution_change
      WHERE from_width IS NOT NULL
      """, detector: findHunts)

  @Sendable private static func findHunts(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let least = limits.count("least_changes")
    return facts.tracks.compactMap { track -> Detection? in
      // Frames of simultaneous layers alternate between sizes.
      let layers = facts.streams.count {
        $0.peer == track.peer && $0.track == track.track && $0.direction == track.direction
          && $0.role == .media
      }
      guard track.kind == "video", layers <= 1 || track.direction == .inbound else { return nil }
      let changes = zip(track.pictures, track.pictures.dropFirst())
        .filter { $0.width != $1.width || $0.height != $1.height }.map { $1.at }
      guard changes.count >= least else { return nil }
      for place in 0...(changes.count -| least)
      where changes[place +| least -| 1] -| changes[place] <= 60_000_000_000 {
        let count = changes.count -| place
        return Detection(
          "resolution-hunts", peer: track.peer, from: changes[place],
          to: changes[changes.count - 1],
          "\(count) changes of its size within "
            + "\(tenths(changes[changes.count - 1] - changes[place])) s",
          track: track.track, direction: track.direction, kind: "video",
          impact: FindingImpact(count: Int64(count)))
      }
      return nil
    }
  }
}

/// Cameras' frame rates, by peer and getStats call.
struct CameraRates {
  private var rates: [Int64: [Int64: Double]] = [:]
  private var cameras: [Int64: Int] = [:]

  init(_ facts: CallFacts) {
    for series in facts.perception.series("media-source", "video") {
      cameras[series[0].peer, default: 0] +|= 1
      for sample in series {
        rates[sample.peer, default: [:]][sample.call] = sample[.framesPerSecond]
      }
    }
  }

  /// Returns whether a peer has exactly one camera; with several it is unknown whose frames are
  /// encoded.
  func hasOne(_ peer: Int64) -> Bool { cameras[peer] == 1 }

  func rate(_ peer: Int64, _ call: Int64) -> Double? { rates[peer]?[call] }
}
