import Testing

@testable import Queries
@testable import Tape

/// Tests rules about pictures and voices on rows alone: on rows for which a rule fires, and on
/// similar rows for which it does not.
struct RowRuleTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let rule: String
    /// SQL statements, in which `$X` stands for the bad value or for the good value.
    let rows: String
    let bad: String
    let good: String
    var testDescription: String { rule }

    init(_ rule: String, bad: String, good: String, _ rows: String) {
      (self.rule, self.rows, self.bad, self.good) = (rule, rows, bad, good)
    }
  }

  /// Returns the start of a statement that selects from `n`, with the numbers below a limit as `i`.
  private static func numbers(_ limit: Int) -> String {
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < \(limit - 1))"
  }

  /// Returns a statement that inserts a frame format.
  private static func format(
    _ number: Int, _ direction: String, _ outcome: String, kind: String = "video", ssrc: Int = 7,
    key: Int = 0, size: Int = 360
  ) -> String {
    """
    INSERT INTO format (format, row, peer, track, kind, direction, codec, ssrc, outcome, key, voice,
      width, height)
      VALUES (\(number), 786432, 1, 2, '\(kind)', '\(direction)',
        '\(kind == "video" ? "vp8" : "opus")', \(ssrc), '\(outcome)', \(key), 0, \(size * 16 / 9),
        \(size));
    """
  }

  /// Returns a statement that inserts video frames with the numbers `i` below a limit, by default
  /// 30 per second.
  private static func frames(
    _ limit: Int, format: String = "1", at: String = "i * 33333333", size: String = "1000",
    quantiser: String = "40", where holds: String = "1"
  ) -> String {
    """
    \(numbers(limit))
    INSERT INTO frame_store
      (row, at_ns, format, rtp_time, size, quantiser, audio_level, peak, energy)
      SELECT (1000 + i) << 16, \(at), \(format), i * 3000, \(size), \(quantiser), NULL, 0, 0 FROM n
      WHERE \(holds);
    """
  }

  private static let way = """
    INSERT INTO path VALUES (1, 131072, 1, 'in', '192.0.2.1:1', '192.0.2.2:2');
    """

  static let cases: [Case] = [
    Case(
      "picture-coarse", bad: "110", good: "80",
      format(1, "out", "encoded") + frames(300, quantiser: "$X")),
    // Bad: small frames of about the same size; good: sizes that vary as they do with movement.
    Case(
      "picture-still", bad: "40", good: "700",
      format(1, "in", "decoded") + frames(300, size: "1000 + i * 37 % $X", quantiser: "2")),
    // Video at 48 kbit/s; bad: coarsely quantised; good: finely quantised.
    Case(
      "video-held-down", bad: "20", good: "4",
      format(1, "in", "decoded") + frames(300, size: "180 + i * 7 % 40", quantiser: "$X")),
    // Bad: four seconds of digital silence; good: one and a half seconds.
    Case(
      "audio-muted", bad: "40", good: "15",
      """
      \(numbers(300))
      INSERT INTO level (row, peer, at_ns, track, direction, energy, samples, peak, meter,
        sender_level, voice)
        SELECT (1000 + i) << 16, 1, i * 100000000, 2, 'in',
          iif(i BETWEEN 100 AND 99 + $X, 0, 4800 * 250000), 4800, 2000, 2000, NULL, 1 FROM n;
      """),
    // Bad: the size changes eight times; good: four times.
    Case(
      "resolution-hunts", bad: "240", good: "150",
      format(1, "in", "decoded") + format(2, "in", "decoded", size: 180)
        + frames(300, format: "iif(i < $X, 1 + i / 30 % 2, 1)")),
    // In every other second, a share of the frames is missing; bad: two thirds; good: a tenth.
    Case(
      "frame-rate-unsteady", bad: "i % 3 = 0", good: "i % 10 <> 0",
      format(1, "in", "decoded") + frames(720, where: "i / 30 % 2 = 0 OR $X")),
    Case(
      "key-frame-storm", bad: "2", good: "10",
      """
      \(numbers(12))
      INSERT INTO rtcp (row, peer, at_ns, direction, type, ssrc, fields)
        SELECT (1000 + i) << 16, 1, i * $X000000000, 'out', 'pli', 7, '{}' FROM n;
      """),
    // A key frame is shown after it was requested; bad: 0.8 s later; good: 0.2 s later.
    Case(
      "key-frame-late", bad: "1800000000", good: "1200000000",
      """
      INSERT INTO rtcp (row, peer, at_ns, direction, type, ssrc, fields)
        VALUES (655360, 1, 1000000000, 'out', 'pli', 7, '{}');
      """ + format(1, "in", "decoded", key: 1) + frames(1, at: "$X")),
    // Bad: two interruptions of 0.6 and 0.8 s; good: only the first of them.
    Case(
      "audio-interrupted", bad: "1", good: "0",
      way + format(1, "in", "decoded", kind: "audio")
        + format(2, "in", "concealed", kind: "audio", ssrc: 0)
          + """
          \(numbers(500))
          INSERT INTO frame_store
            (row, at_ns, format, rtp_time, size, quantiser, audio_level, peak, energy)
            SELECT ((1000 + i) << 16) + 2, i * 20000000,
              iif(i BETWEEN 100 AND 129 OR $X AND i BETWEEN 250 AND 289, 2, 1), i * 960, 9, 0, NULL,
              9, 99 FROM n;
          \(numbers(500))
          INSERT INTO packet_store
            SELECT (1000 + i) << 16, i * 20000000, 1, 7, 111, i, i * 960, NULL, 9, 0, NULL FROM n
            WHERE NOT (i BETWEEN 100 AND 129 OR $X AND i BETWEEN 250 AND 289);
          """),
    Case(
      "dtmf", bad: "126", good: "111",
      way + """
        INSERT INTO signaling VALUES (131072, 1, 0, 'in', 'test', 'answer',
          'v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111 126\r\na=rtpmap:111 opus/48000/2\r\n'
          || 'a=rtpmap:126 telephone-event/8000\r\n');
        \(numbers(9))
        INSERT INTO packet_store
          SELECT (1000 + i) << 16, i * 20000000, 1, 7, $X, i, 960, NULL, 9, 0, NULL FROM n;
        """),
    // Bad: the level stays the same for 70 s; good: it swings by a fifth.
    Case(
      "microphone-constant", bad: "0", good: "200",
      """
      \(numbers(700))
      INSERT INTO level (row, peer, at_ns, track, direction, energy, samples, peak, meter,
        sender_level, voice)
        SELECT (1000 + i) << 16, 1, i * 100000000, 2, 'out',
          4800 * (1000 + i % 2 * $X) * (1000 + i % 2 * $X), 4800, 2000, 2000, NULL, 1 FROM n;
      """),
    // The rate falls from thirty frames a second; bad: to ten; good: to twenty.
    Case(
      "camera-slow", bad: "10", good: "20",
      """
      \(numbers(16))
      INSERT INTO stat (row, peer, at_ns, call, id, type, timestamp_ms, members)
        SELECT (20 + i) << 16, 1, i * 1000000000, i, 's', 'media-source', i, json_object(
          'kind', 'video', 'framesPerSecond', iif(i < 10, 30, $X)) FROM n;
      """),
    // Key frames of ten packets each; bad: the packets are 40 ms apart; good: 10 ms apart.
    Case(
      "key-frame-too-large", bad: "40000000", good: "10000000",
      way + format(1, "in", "decoded") + format(2, "in", "decoded", key: 1)
        + frames(
          150, format: "iif(i IN (40, 90), 2, 1)", size: "iif(i IN (40, 90), 10000, 1000)",
          where: "i NOT BETWEEN 41 AND 52 AND i NOT BETWEEN 91 AND 102")
          + """
          \(numbers(150)),
            part AS (
              SELECT i, 0 AS place FROM n
              WHERE i NOT BETWEEN 41 AND 52 AND i NOT BETWEEN 91 AND 102
              UNION ALL SELECT big.i, n.i FROM n JOIN (SELECT 40 AS i UNION ALL SELECT 90) AS big
              WHERE n.i BETWEEN 1 AND 9
            ),
            placed AS (
              SELECT *, i * 33333333 + place * $X AS at_ns,
                row_number() OVER (ORDER BY i, place) AS number FROM part
            )
          INSERT INTO packet_store
            SELECT (1000 + number) << 16, at_ns, 1, 7, 96, number, i * 3000, NULL, 1000, 0, NULL
            FROM placed;
          """),
    // From the sixth second on, after a late packet, frames are shown later; bad: by 200 ms; good:
    // by 40 ms.
    Case(
      "late-repair-delay", bad: "200", good: "40",
      way + format(1, "in", "decoded")
        + frames(400, at: "i * 33333333 + 50000000 + iif(i >= 180, $X000000, 0)")
          + """
          \(numbers(400)),
            placed AS (
              SELECT *, i * 33333333 + iif(i = 178, 150000000, 0) AS at_ns FROM n
            ),
            sorted AS (SELECT *, row_number() OVER (ORDER BY at_ns) AS number FROM placed)
          INSERT INTO packet_store
            SELECT (1000 + number) << 16, at_ns, 1, 7, 96, i, i * 3000, NULL, 1000, 0, NULL
            FROM sorted;
          """),
  ]

  /// Makes a take with only the given rows, and returns a rule's detections in it.
  private func found(_ rule: String, in rows: String) throws -> [Detection] {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    try folder.alter(
      path,
      """
      DELETE FROM packet_store; DELETE FROM path; DELETE FROM ending; DELETE FROM state;
      DELETE FROM format; DELETE FROM frame_store; DELETE FROM stat; DELETE FROM rtcp;
      DELETE FROM level; DELETE FROM track; DELETE FROM signaling; DELETE FROM call_request;
      INSERT INTO ending VALUES (1, 100000000000, x'');
      """ + rows)
    return try TakeFindings(path: path).detections.filter { $0.rule == rule }
  }

  @Test(arguments: cases) func aRuleFiresOnOneTakeAndNotOnANearlyEqualOne(one: Case) throws {
    let bad = try found(one.rule, in: one.rows.replacing("$X", with: one.bad))
    #expect(!bad.isEmpty && bad.allSatisfy { $0.peer == 1 }, "\(bad)")
    #expect(try found(one.rule, in: one.rows.replacing("$X", with: one.good)) == [])
  }

  /// Two changes at the start of a call, and nine more after more than a minute.
  @Test func changesOfTheSizeAreCountedInTheStatedTime() throws {
    let rows =
      Self.format(1, "in", "decoded") + Self.format(2, "in", "decoded", size: 180)
      + Self.frames(
        900, format: "iif(i BETWEEN 10 AND 19 OR i >= 800, 1 + i / 10 % 2, 1)",
        at: "i * 100000000")
    let found = try found("resolution-hunts", in: rows)
    #expect(found.map(\.evidence) == ["9 changes of its size within 8.0 s"])
    #expect(found.map(\.impact.count) == [9])
  }

  /// After ten seconds, media comes from a new address.
  ///
  /// In the next two seconds, a quarter of the media sent still goes to the old address.
  @Test func onlyPacketsToTheOldAddressStillWentThere() throws {
    let found = try found(
      "address-changed",
      in: """
        INSERT INTO path VALUES (1, 131072, 1, 'in', '192.0.2.1:1', '192.0.2.2:2'),
          (2, 131073, 1, 'out', '192.0.2.1:1', '192.0.2.2:2'),
          (3, 131074, 1, 'in', '192.0.2.1:1', '192.0.2.3:3'),
          (4, 131075, 1, 'out', '192.0.2.1:1', '192.0.2.3:3');
        \(Self.numbers(2000))
        INSERT INTO packet_store
          SELECT (1000 + i) << 16, i * 10000000,
            iif(i % 2 = 0, iif(i < 1000, 1, 3), iif(i < 1000 OR i < 1204 AND i % 8 = 1, 2, 4)),
            1 + i % 2, 111, i / 2, i / 2 * 960, NULL, 9, 0, NULL FROM n;
        """)
    #expect(found.map(\.impact.count) == [27])
    let words = "27 packets still went to the old address, for 2.0 s"
    #expect(found.first?.evidence.hasSuffix(words) == true, "\(found)")
  }

  /// Peer 1 sends audio and video to peer 2, which hears nothing from 20 s on.
  @Test func onlyAMutedMicrophoneMayBeSilent() throws {
    func found(_ calls: (at: Int, track: Int, isEnabled: Bool)...) throws -> [Detection] {
      let requests = calls.enumerated().map { place, call in
        """
        INSERT INTO call_request VALUES (\((100 + place) << 16), 1, \(call.at)000000000,
          \(9000 + place), 'setEnabled',
          '{"isEnabled":\(call.isEnabled),"isInbound":false,"transceiver":\(call.track)}');
        """
      }
      return try self.found(
        "microphone-without-signal",
        in: """
          INSERT INTO peer (row, peer, at_ns, label, role, seed, wall_clock_ns, configuration)
            VALUES (131074, 2, 0, 'b', '', x'', 0, '{}');
          INSERT INTO path VALUES (1, 131072, 1, 'out', '192.0.2.1:1', '192.0.2.2:2'),
            (2, 131073, 2, 'in', '192.0.2.2:2', '192.0.2.1:1');
          INSERT INTO format
            (format, row, peer, track, kind, direction, codec, ssrc, outcome, key, voice) VALUES
            (1, 786432, 1, 1, 'audio', 'out', 'opus', 7, 'encoded', 1, 0),
            (2, 786433, 1, 2, 'video', 'out', 'vp8', 8, 'encoded', 1, 0),
            (3, 786434, 2, 1, 'audio', 'in', 'opus', 7, 'decoded', 1, 0);
          \(Self.numbers(600))
          INSERT INTO level (row, peer, at_ns, track, direction, energy, samples, peak, meter,
            sender_level, voice)
            SELECT (1000 + i) << 16, 2, i * 100000000, 1, 'in', iif(i < 200, 4800 * 250000, 0),
              4800, 2000, 2000, NULL, 1 FROM n;
          """ + requests.joined())
    }
    #expect(try found().map(\.peer) == [2])
    #expect(try found((15, 1, false)) == [])
    // Only the camera is off, or the microphone was muted earlier and is on again.
    #expect(try found((1, 2, false)).map(\.peer) == [2])
    #expect(try found((1, 1, false), (5, 1, true)).map(\.peer) == [2])
  }
}
