import Testing
import Wire

@testable import Queries
@testable import Tape

/// Tests rules on statistics: of two peers with similar samples, a rule names only the peer above
/// the threshold.
struct StatRuleTests {
  /// A sample's members: increments per second, and constant values; text is quoted.
  private struct Samples {
    var type = "inbound-rtp"
    var kind = "video"
    var growing: [String: Double] = [:]
    var constant: [String: String] = [:]
  }

  private struct Case {
    var rule: String
    var bad: Samples
    var good: Samples
    /// Other samples, the same for both peers, with which the rule compares these samples.
    var beside: Samples?
  }

  private static func inbound(
    _ kind: String, _ growing: [String: Double], _ constant: [String: String] = [:]
  ) -> Samples {
    Samples(kind: kind, growing: growing, constant: constant)
  }

  private static func outbound(
    _ growing: [String: Double], _ constant: [String: String] = [:]
  ) -> Samples {
    Samples(type: "outbound-rtp", growing: growing, constant: constant)
  }

  private static func stretched(_ samples: Double) -> Samples {
    inbound(
      "audio",
      [
        "totalSamplesReceived": 48_000, "insertedSamplesForDeceleration": samples / 2,
        "removedSamplesForAcceleration": samples / 2,
      ])
  }

  private static func buffered(_ seconds: Double) -> Samples {
    inbound(
      "audio", ["jitterBufferDelay": seconds * 48_000, "jitterBufferEmittedCount": 48_000])
  }

  private static func played(_ samples: Double) -> Samples {
    inbound("audio", ["packetsReceived": 50, "jitterBufferEmittedCount": samples])
  }

  private static func decoded(_ frames: Double, dropped: Double = 0, lost: Double = 0) -> Samples {
    inbound(
      "video",
      [
        "framesDecoded": frames, "framesDropped": dropped, "bytesReceived": 40_000,
        "packetsReceived": 60, "packetsLost": lost,
      ])
  }

  private static func encoded(_ rate: Int) -> Samples {
    outbound([:], ["framesPerSecond": "\(rate)", "active": "1"])
  }

  private static let cases = [
    Case(rule: "audio-stretched", bad: stretched(8_000), good: stretched(3_000)),
    Case(rule: "audio-late", bad: buffered(0.5), good: buffered(0.3)),
    Case(
      rule: "jitter-buffer-flushed", bad: inbound("audio", ["jitterBufferFlushes": 1]),
      good: inbound("audio", ["jitterBufferFlushes": 0.2])),
    Case(rule: "audio-not-played", bad: played(0), good: played(48_000)),
    Case(
      rule: "playout-starved",
      bad: Samples(
        type: "media-playout", kind: "audio", growing: ["synthesizedSamplesDuration": 0.05]),
      good: Samples(
        type: "media-playout", kind: "audio", growing: ["synthesizedSamplesDuration": 0.01])),
    Case(
      rule: "encoder-limited-by-processor",
      bad: outbound([:], ["qualityLimitationReason": "'cpu'"]),
      good: outbound([:], ["qualityLimitationReason": "'none'"])),
    Case(
      rule: "encoder-slow", bad: outbound(["totalEncodeTime": 0.9, "framesEncoded": 20]),
      good: outbound(["totalEncodeTime": 0.5, "framesEncoded": 20])),
    Case(
      rule: "decoder-slow", bad: inbound("video", ["totalDecodeTime": 0.9, "framesDecoded": 20]),
      good: inbound("video", ["totalDecodeTime": 0.5, "framesDecoded": 20])),
    Case(
      rule: "encoder-behind-source", bad: encoded(12), good: encoded(24),
      beside: Samples(type: "media-source", constant: ["framesPerSecond": "25"])),
    Case(rule: "frames-dropped", bad: decoded(20, dropped: 5), good: decoded(20, dropped: 1)),
    // On a lossy path, the same numbers are not blamed on the decoder.
    Case(
      rule: "frames-dropped", bad: decoded(20, dropped: 5),
      good: decoded(20, dropped: 5, lost: 6)),
    Case(rule: "decoder-stuck", bad: decoded(0), good: decoded(1)),
    Case(
      rule: "decoder-missing",
      bad: inbound(
        "video", ["framesReceived": 10],
        ["framesDecoded": "0", "decoderImplementation": "'NullVideoDecoder'"]),
      good: inbound(
        "video", ["framesReceived": 10, "framesDecoded": 10],
        ["decoderImplementation": "'libvpx'"])),
    Case(
      rule: "picture-corrupt",
      bad: inbound("video", ["totalCorruptionProbability": 3, "corruptionMeasurements": 4]),
      good: inbound("video", ["totalCorruptionProbability": 1, "corruptionMeasurements": 4])),
  ]

  private func insert(_ samples: Samples, peer: Int, ssrc: Int, _ row: inout Int64) -> String {
    (0..<8).map { (second: Int) -> String in
      row += 65_536
      var members = ["'ssrc', \(ssrc)", "'kind', '\(samples.kind)'"]
      members += samples.growing.sorted { $0.key < $1.key }
        .map { "'\($0.key)', \($0.value * Double(second))" }
      members += samples.constant.sorted { $0.key < $1.key }.map { "'\($0.key)', \($0.value)" }
      return """
        INSERT INTO stat (row, peer, at_ns, call, id, type, timestamp_ms, members)
        VALUES (\(row), \(peer), \(second * 1_000_000_000), \(second), 'S\(ssrc)',
          '\(samples.type)', 0, json_object(\(members.joined(separator: ", "))));
        """
    }.joined()
  }

  @Test func onlySamplesOverTheThresholdAreNamed() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    for one in Self.cases {
      var row: Int64 = 1 << 40
      var sql = "DELETE FROM stat;"
      for (peer, samples) in [(1, one.bad), (2, one.good)] {
        sql += insert(samples, peer: peer, ssrc: 900 + peer, &row)
        if let beside = one.beside { sql += insert(beside, peer: peer, ssrc: 800 + peer, &row) }
      }
      try folder.alter(path, sql)
      let found = try TakeFindings(path: path).detections.filter { $0.rule == one.rule }
      #expect(!found.isEmpty && found.allSatisfy { $0.peer == 1 }, "\(one.rule): \(found)")
    }
  }

  @Test func aDecoderThatWaitsForAKeyFrameAfterALossIsNotStuck() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    // Both decode for three seconds; peer 2 loses a packet then.
    func samples(of peer: Int) -> String {
      (0..<9).map { second in
        """
        INSERT INTO stat (row, peer, at_ns, call, id, type, timestamp_ms, members)
        VALUES (\((1 << 40) + (peer * 100 + second) * 65_536), \(peer), \(second)000000000,
          \(second), 'S\(peer)', 'inbound-rtp', 0, json_object('ssrc', \(900 + peer),
          'kind', 'video', 'framesDecoded', \(20 * min(second, 3)), 'bytesReceived',
          \(40_000 * second), 'packetsReceived', \(60 * second), 'packetsLost',
          \(peer == 2 && second >= 3 ? 1 : 0)));
        """
      }.joined()
    }
    try folder.alter(path, "DELETE FROM stat;" + samples(of: 1) + samples(of: 2))
    let found = try TakeFindings(path: path).detections.filter { $0.rule == "decoder-stuck" }
    #expect(found.map(\.peer) == [1], "\(found)")
  }
}
