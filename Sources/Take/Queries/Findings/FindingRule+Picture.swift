import Tape
import Wire

// Rules about received video: key frame requests, decoders, dropped frames, frame rates.

extension FindingRule {
  /// Finds receivers that keep requesting a key frame that never arrives, although the sender keeps
  /// sending.
  ///
  /// Whatever was lost earlier, the missing key frame is the reason that there is no picture.
  static let unansweredRequests = FindingRule(
    id: "key-frame-requests-unanswered", severity: .high, title: "Key frame requests unanswered",
    scope: .stream,
    thresholds: [
      Threshold("least_requests", 2, "requests", "ORC video-recovery-failed"),
      Threshold("least_wait", 3, "s", "ORC waits 5 s; libwebrtc asks again after 0.2 to 1 s"),
      Threshold("least_packets", 5, "packets/s", "the sender goes on; else it is the path's fault"),
    ], causes: ["path-dead", "process-starved"],
    endsForPeople: true,
    sql: """
      SELECT peer, ssrc, count(*) AS requests, min(at_ns) AS from_ns, max(at_ns) AS to_ns
      FROM rtcp WHERE type IN ('pli', 'fir') GROUP BY peer, direction, ssrc
      """, detector: findUnansweredRequests)

  @Sendable private static func findUnansweredRequests(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for stream in facts.streams where stream.kind == "video" && stream.role == .media {
      let asks: WireDirection = stream.direction == .inbound ? .outbound : .inbound
      let requests = facts.demands.filter {
        $0.peer == stream.peer && $0.direction == asks && $0.ssrc == stream.ssrc && $0.kind != .nack
      }.map(\.at)
      guard requests.count >= limits.count("least_requests"),
        let track = stream.track.flatMap({ facts.track(stream.peer, $0, stream.direction) })
      else { continue }
      let keys = track.pictures.filter { $0.isKey && $0.isGood }.map(\.at)
      for wait in waits(requests, keys, end: min(facts.end, stream.last)) {
        let length = wait.to -| wait.from
        let packets = facts.sum(of: stream, from: wait.from, to: wait.to).packets
        guard wait.requests >= limits.count("least_requests"),
          Double(length) / 1e9 >= limits["least_wait"],
          Double(packets) >= limits["least_packets"] * Double(length) / 1e9
        else { continue }
        // Other layers of the track may be displayed meanwhile.
        let shown = track.pictures.filter { $0.isGood && $0.at > wait.from && $0.at < wait.to }
        let isShown = stream.direction == .inbound && Double(shown.count) >= Double(length) / 1e9
        found.append(
          Detection(
            "key-frame-requests-unanswered", peer: stream.peer, from: wait.from, to: wait.to,
            "\(wait.requests) requests, none answered for \(tenths(length)) s, while \(packets) "
              + "packets of it \(stream.direction == .inbound ? "arrived" : "were sent")",
            ssrc: stream.ssrc, track: stream.track, direction: stream.direction, kind: "video",
            impact: FindingImpact(
              frozen: isShown || stream.direction == .outbound ? 0 : Double(length) / 1e9,
              count: Int64(wait.requests)),
            severity: isShown ? .low : nil))
      }
    }
    return found
  }

  /// Returns the periods from a request to the next key frame, each with the number of its
  /// requests.
  private static func waits(
    _ requests: [Int64], _ keys: [Int64], end: Int64
  ) -> [(from: Int64, to: Int64, requests: Int)] {
    var waits: [(from: Int64, to: Int64, requests: Int)] = []
    var place = 0
    for request in requests {
      if let last = waits.last, request < last.to {
        waits[waits.count - 1].requests +|= 1
        continue
      }
      while place < keys.count, keys[place] <= request { place +|= 1 }
      waits.append((request, place < keys.count ? keys[place] : max(end, request), 1))
    }
    return waits
  }

  static let requestStorm = FindingRule(
    id: "key-frame-storm", severity: .medium, title: "Constant key frame requests",
    scope: .stream,
    thresholds: [
      Threshold("on_rate", 0.5, "requests/s", "over 30 s; ORC, where 0.1 is healthy"),
      Threshold("off_rate", 0.15, "requests/s", "ORC"),
      Threshold("least_requests", 8, "requests", "so that a bad start is none"),
    ],
    causes: [
      "key-frame-requests-unanswered", "simulcast-layer-ended", "loss", "loss-burst", "no-repair",
      "late-repair", "standing-queue", "payload-type-unknown",
    ],
    sql: """
      SELECT peer, ssrc, direction, count(*) AS requests, min(at_ns) AS from_ns,
        max(at_ns) AS to_ns
      FROM rtcp WHERE type IN ('pli', 'fir') GROUP BY peer, direction, ssrc
      """, detector: findRequestStorms)

  @Sendable private static func findRequestStorms(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    struct Source: Hashable {
      var peer: Int64
      var ssrc: Int64
      var isOwn: Bool
    }
    var requests: [Source: [Int64]] = [:]
    for demand in facts.demands where demand.kind != .nack {
      let source = Source(
        peer: demand.peer, ssrc: demand.ssrc, isOwn: demand.direction == .outbound)
      requests[source, default: []].append(demand.at)
    }
    let sources = requests.keys.sorted {
      ($0.peer, $0.ssrc, $0.isOwn ? 1 : 0) < ($1.peer, $1.ssrc, $1.isOwn ? 1 : 0)
    }
    let least = limits.count("least_requests")
    return sources.compactMap { source -> Detection? in
      let times = requests[source] ?? []
      guard times.count >= least else { return nil }
      var (from, to): (Int64?, Int64) = (nil, 0)
      var (first, last) = (0, 0)
      for place in times.indices {
        let window = times[max(0, place -| least +| 1)...place]
        let seconds = max(Double(times[place] -| (window.first ?? 0)) / 1e9, 1)
        guard window.count == least, Double(least) / min(max(seconds, 1), 30) >= limits["on_rate"],
          seconds <= 30
        else { continue }
        if from == nil { (from, first) = (window.first, place -| least +| 1) }
        (to, last) = (times[place], place)
      }
      guard let from else { return nil }
      return Detection(
        "key-frame-storm", peer: source.peer, from: from, to: to,
        "\(last - first + 1) requests for a key frame within \(tenths(to - from)) s",
        ssrc: source.ssrc, direction: source.isOwn ? .inbound : .outbound, kind: "video",
        impact: FindingImpact(count: Int64(last -| first +| 1)))
    }
  }

  /// Finds decoders that output nothing although video packets arrive with hardly any loss.
  static let stuckDecoder = FindingRule(
    id: "decoder-stuck", severity: .high, title: "Decoder produces no frames",
    scope: .stream,
    thresholds: [
      Threshold("least_time", 4, "s", "ORC: or fifteen round trips"),
      Threshold("least_rate", 10, "kbit/s", "that arrives meanwhile; ORC"),
      Threshold("most_loss", 0.02, "", "above it the path is to blame; ORC's guard"),
    ], causes: ["payload-type-unknown", "process-starved"],
    silentUnder: ["key-frame-requests-unanswered", "loss", "loss-burst"],
    endsForPeople: true,
    sql: """
      SELECT peer, at_ns, members ->> '$.framesDecoded' AS decoded,
        members ->> '$.bytesReceived' AS bytes
      FROM stat WHERE type = 'inbound-rtp' AND members ->> '$.kind' = 'video'
      """, detector: findStuckDecoders)

  @Sendable private static func findStuckDecoders(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.perception.series("inbound-rtp", "video").flatMap { series in
      let points = series.points { before, after in
        guard let frames = after.growth(.framesDecoded, since: before),
          let bytes = after.growth(.bytesReceived, since: before)
        else { return nil }
        let lost = after.growth(.packetsLost, since: before) ?? 0
        let packets = after.growth(.packetsReceived, since: before) ?? 0
        let seconds = max(after.seconds(since: before), 0.001)
        guard frames == 0, lost <= limits["most_loss"] * (lost + packets) else { return 0 }
        let rate = bytes * 8 / 1000 / seconds
        return rate >= limits["least_rate"] ? rate : 0
      }
      return StatRun.runs(
        points, on: limits["least_rate"], off: limits["least_rate"],
        least: Int64(saturating: limits["least_time"] * 1e9)
      ).compactMap { run -> Detection? in
        guard !waitsForKeyFrame(series, at: run.from) else { return nil }
        // A simulcast layer is not decoded while another layer is displayed.
        let shows = facts.perception.samples.contains {
          $0.peer == series[0].peer && $0.type == "inbound-rtp" && $0.kind == "video"
            && $0.mid == series[0].mid && $0.ssrc != series[0].ssrc
            && $0[.framesDecoded] ?? 0 > 0
        }
        return shows
          ? nil
          : Detection(
            "decoder-stuck", peer: series[0].peer, from: run.from, to: run.to,
            "\(whole(run.mean)) kbit/s arrived and no frame was decoded for "
              + "\(tenths(run.to - run.from)) s",
            ssrc: series[0].ssrc, direction: .inbound, kind: "video",
            impact: FindingImpact(frozen: Double(run.to -| run.from) / 1e9))
      }
    }
  }

  /// Returns whether a stream lost packets around or after its last decoded frame before a time.
  ///
  /// In that case, the decoder waits for a key frame, which other rules report.
  private static func waitsForKeyFrame(_ series: [StatSample], at time: Int64) -> Bool {
    guard let last = series.lastIndex(where: { $0.at <= time }) else { return false }
    var first = last
    while first > 0, series[first].growth(.framesDecoded, since: series[first - 1]) == 0 {
      first -= 1
    }
    let lost = series[last].growth(.packetsLost, since: series[max(0, first - 1)])
    return lost ?? 0 > 0
  }

  static let droppedFrames = FindingRule(
    id: "frames-dropped", severity: .medium, title: "Frames dropped before they were shown",
    scope: .stream,
    thresholds: [
      Threshold("on_share", 0.1, "", "of the frames; ORC, whose worse step is 0.2"),
      Threshold("off_share", 0.05, "", "below it nobody sees it"),
      Threshold("least_time", 2, "s", "two samples, as in ORC"),
      Threshold("most_loss", 0.02, "", "above it the path is to blame; ORC's guard"),
    ], causes: ["process-starved", "decoder-slow", "standing-queue", "high-jitter", "reordering"],
    silentUnder: ["loss", "loss-burst"],
    sql: """
      SELECT peer, at_ns, members ->> '$.framesDropped' AS dropped,
        members ->> '$.framesDecoded' AS decoded
      FROM stat WHERE type = 'inbound-rtp' AND members ->> '$.kind' = 'video'
      """, detector: findDroppedFrames)

  @Sendable private static func findDroppedFrames(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.perception.series("inbound-rtp", "video").flatMap { series in
      let points = series.points { before, after in
        guard let dropped = after.growth(.framesDropped, since: before),
          let decoded = after.growth(.framesDecoded, since: before), dropped + decoded >= 10
        else { return nil }
        let lost = after.growth(.packetsLost, since: before) ?? 0
        let packets = after.growth(.packetsReceived, since: before) ?? 0
        guard lost <= limits["most_loss"] * (lost + packets) else { return 0 }
        return dropped / (dropped + decoded)
      }
      return StatRun.runs(
        points, on: limits["on_share"], off: limits["off_share"],
        least: Int64(saturating: limits["least_time"] * 1e9)
      ).map { run in
        Detection(
          "frames-dropped", peer: series[0].peer, from: run.from, to: run.to,
          "\(shareText(run.mean)) of the frames for \(tenths(run.to - run.from)) s",
          ssrc: series[0].ssrc, direction: .inbound, kind: "video",
          impact: FindingImpact(share: run.peak))
      }
    }
  }

  static let nullDecoder = FindingRule(
    id: "decoder-missing", severity: .high,
    title: "No decoder for the received video", scope: .stream,
    thresholds: [
      Threshold("least_frames", 10, "frames", "were received, and none was decoded")
    ],
    sql: """
      SELECT peer, at_ns, members ->> '$.decoderImplementation' AS decoder FROM stat
      WHERE decoder IN ('NullVideoDecoder', 'unknown')
      """, detector: findNullDecoders)

  @Sendable private static func findNullDecoders(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.perception.series("inbound-rtp", "video").compactMap { series -> Detection? in
      guard let last = series.last, let first = series.first,
        ["NullVideoDecoder", "unknown"].contains(last.decoder),
        (last[.framesReceived] ?? 0) >= limits["least_frames"], (last[.framesDecoded] ?? 0) == 0
      else { return nil }
      return Detection(
        "decoder-missing", peer: last.peer, from: first.at, to: last.at,
        "\(whole(last[.framesReceived] ?? 0)) frames were received and none decoded "
          + "(\(last.decoder))",
        ssrc: last.ssrc, direction: .inbound, kind: "video")
    }
  }

  static let corruptPicture = FindingRule(
    id: "picture-corrupt", severity: .medium, title: "Corrupt pictures", scope: .stream,
    thresholds: [
      Threshold(
        "least_probability", 0.5, "", "the mean of W3C's corruption probability; ORC's score"),
      Threshold("least_measurements", 3, "measurements", "one alone is a guess"),
    ], causes: ["decoder-slow", "loss"],
    sql: """
      SELECT peer, at_ns, members ->> '$.totalCorruptionProbability' AS sum,
        members ->> '$.corruptionMeasurements' AS count
      FROM stat WHERE type = 'inbound-rtp' AND count > 0
      """, detector: findCorruption)

  @Sendable private static func findCorruption(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.perception.series("inbound-rtp", "video").flatMap { series in
      let points = series.points { before, after in
        guard let sum = after.growth(.totalCorruptionProbability, since: before),
          let count = after.growth(.corruptionMeasurements, since: before),
          count >= limits["least_measurements"]
        else { return nil }
        return sum / count
      }
      return StatRun.runs(
        points, on: limits["least_probability"], off: limits["least_probability"] * 0.6, least: 1
      ).map { run in
        Detection(
          "picture-corrupt", peer: series[0].peer, from: run.from, to: run.to,
          "corrupt with a probability of \(shareText(run.mean))", ssrc: series[0].ssrc,
          direction: .inbound, kind: "video", impact: FindingImpact(share: run.peak))
      }
    }
  }

  static let unsteadyRate = FindingRule(
    id: "frame-rate-unsteady", severity: .info, title: "Unsteady frame rate", scope: .stream,
    thresholds: [
      Threshold("least_variation", 0.2, "", "deviation over mean; ORC's worse step"),
      Threshold("least_time", 10, "s", "so that a start is none"),
      Threshold("least_rate", 8, "frames/s", "less is a screen"),
    ],
    causes: [
      "freeze", "loss", "loss-burst", "standing-queue", "process-starved", "high-jitter",
      "encoder-limited", "camera-slow", "camera-stopped", "encoder-behind-source",
    ],
    sql: """
      SELECT peer, track, second, frames FROM frame_rate WHERE direction = 'in'
      """, detector: findUnsteadyRates)

  @Sendable private static func findUnsteadyRates(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.tracks.compactMap { track -> Detection? in
      let pictures = track.pictures.filter(\.isGood)
      guard track.kind == "video", track.direction == .inbound, let first = pictures.first,
        let last = pictures.last, Double(last.at -| first.at) / 1e9 >= limits["least_time"]
      else { return nil }
      // Leaves out the first second and the incomplete last one.
      let seconds = Int((last.at -| first.at) / 1_000_000_000)
      var counts = [Double](repeating: 0, count: max(seconds, 1))
      for picture in pictures {
        let place = Int((picture.at -| first.at) / 1_000_000_000)
        if place < counts.count { counts[place] += 1 }
      }
      counts.removeFirst()
      // Other rules report pauses, including the seconds in which they begin and end. Some senders
      // repeat a picture once a second during a pause.
      counts = counts.indices.filter { place in
        counts[max(0, place -| 1)...min(counts.count - 1, place +| 1)].allSatisfy { $0 > 1 }
      }.map { counts[$0] }
      guard counts.count >= 5 else { return nil }
      let mean = counts.reduce(0, +) / Double(max(counts.count, 1))
      let variance =
        counts.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(max(counts.count, 1))
      guard mean >= limits["least_rate"],
        variance.squareRoot() >= limits["least_variation"] * mean
      else { return nil }
      return Detection(
        "frame-rate-unsteady", peer: track.peer, from: first.at, to: last.at,
        "\(whole(mean)) frames a second, give or take \(whole(variance.squareRoot()))",
        track: track.track, direction: .inbound, kind: "video")
    }
  }
}
