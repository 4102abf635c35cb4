import Testing

@testable import Queries
@testable import Tape

/// Tests connections of which only reports exist: events state times to the millisecond, but
/// statistics only to the interval between two samples.
struct ReportedTimeTests {
  private func found(
    samples: [Int], states: [(at: Int, machine: String, from: String, to: String)]
  ) throws -> [Detection] {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    var row = 1 << 40
    func next() -> Int {
      row += 65_536
      return row
    }
    let stats = samples.map {
      "(\(next()), 1, \($0)000000, \($0), 'T', 'transport', 0, '{}')"
    }
    let states = states.map {
      "(\(next()), 1, \($0.at)000000, '\($0.machine)', '\($0.from)', '\($0.to)')"
    }
    try folder.alter(
      path,
      """
      DELETE FROM state; DELETE FROM stat; DELETE FROM packet_store; DELETE FROM path;
      DELETE FROM ending;
      UPDATE peer SET role = 'reported';
      INSERT INTO ending VALUES (1, 100000000000, x'');
      INSERT INTO stat (row, peer, at_ns, call, id, type, timestamp_ms, members)
        VALUES \(stats.joined(separator: ","));
      INSERT INTO state (row, peer, at_ns, machine, from_state, to_state)
        VALUES \(states.joined(separator: ","));
      """)
    return try TakeFindings(path: path).detections
  }

  private func handshake(until connected: Int, samples: [Int], event: Int? = nil) throws
    -> [Detection]
  {
    var states = [
      (1_000, "ice-connection", "new", "checking"),
      (1_100, "ice-connection", "checking", "connected"), (1_200, "dtls", "new", "connecting"),
      (connected, "dtls", "connecting", "connected"),
    ]
    if let event { states.append((event, "connection", "connecting", "connected")) }
    return try found(samples: samples, states: states.map { ($0.0, $0.1, $0.2, $0.3) })
      .filter { $0.rule == "slow-handshake" }
  }

  @Test func aHandshakeIsNotSlowBecauseTheNextSampleIsLate() throws {
    // Samples every ten seconds: the handshake may have taken anything up to ten seconds.
    #expect(try handshake(until: 11_200, samples: [1_200, 11_200]) == [])
    #expect(try handshake(until: 11_200, samples: [1_200, 11_200], event: 1_700) == [])
    // With samples every second, the handshake is known to take at least five seconds.
    let slow = try handshake(
      until: 7_200, samples: [1_200, 2_200, 3_200, 4_200, 5_200, 6_200, 7_200])
    #expect(
      slow.map(\.evidence) == [
        "the handshake took between 5.0 and 6.0 s, by samples of its statistics"
      ])
    #expect(slow.first?.severity == .medium)
  }

  /// The counts before the first sample may cover a minute or an hour.
  @Test func ratesComeFromWhatWasCountedBetweenSamples() throws {
    func summarized(_ samples: ClosedRange<Int>) throws -> TakeSummary {
      let folder = try TakeFolder()
      let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
      try folder.alter(
        path,
        """
        DELETE FROM stat; DELETE FROM packet_store; DELETE FROM path;
        UPDATE peer SET role = 'reported';
        WITH RECURSIVE n (i) AS (
          SELECT \(samples.lowerBound)
          UNION ALL SELECT i + 1 FROM n WHERE i < \(samples.upperBound))
        INSERT INTO stat (row, peer, at_ns, call, id, type, timestamp_ms, members)
          SELECT (1 << 40) + (i << 16), 1, i * 1000000000, i, 'v', 'inbound-rtp', i, json_object(
            'ssrc', 7, 'kind', 'video', 'packetsReceived', 5000 + 50 * i,
            'bytesReceived', 5000000 + 50000 * i, 'framesDecoded', 3000 + 20 * i,
            'frameWidth', 640, 'frameHeight', 480) FROM n;
        """)
      return try TakeSummary(path: path, findings: TakeFindings(path: path))
    }
    let media = try #require(try summarized(1...3).media.first)
    #expect(media.bitsPerSecond == 400_000)
    #expect(media.framesPerSecond == 20)
    let once = try summarized(1...1)
    #expect(try #require(once.media.first).bitsPerSecond == nil)
    #expect(!once.json.contains("bits_per_second"))
  }

  // MARK: Directions

  /// Returns the evidence of `one-way-media` for one inbound and two outbound streams over 30 s.
  ///
  /// `first` and `second` are SQL expressions for the packets sent by second `i`.
  private func oneWay(_ first: String, _ second: String) throws -> [String] {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    let streams = [
      ("inbound-rtp", "audio", "packetsReceived", "50 + 50 * i"),
      ("outbound-rtp", "audio", "packetsSent", first),
      ("outbound-rtp", "video", "packetsSent", second),
    ]
    let stats = streams.enumerated().map { place, stream in
      """
      WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
      INSERT INTO stat (row, peer, at_ns, call, id, type, timestamp_ms, members)
        SELECT (1 << 40) + ((i * 10 + \(place)) << 16), 1, i * 1000000000, i, 's\(place)',
          '\(stream.0)', i, json_object('ssrc', \(place + 1), 'kind', '\(stream.1)',
          '\(stream.2)', \(stream.3)) FROM n;
      """
    }
    try folder.alter(
      path,
      """
      DELETE FROM state; DELETE FROM stat; DELETE FROM packet_store; DELETE FROM path;
      DELETE FROM ending; DELETE FROM track;
      UPDATE peer SET role = 'reported';
      INSERT INTO ending VALUES (1, 30000000000, x'');
      INSERT INTO state (row, peer, at_ns, machine, from_state, to_state)
        VALUES (131072, 1, 0, 'connection', 'connecting', 'connected');
      INSERT INTO track VALUES (196608, 1, 0, 1, '', 'audio', 'in', 1, 'opus', 111, 48000, 0),
        (196609, 1, 0, 1, '', 'audio', 'out', 2, 'opus', 111, 48000, 0),
        (196610, 1, 0, 2, '', 'video', 'out', 3, 'vp8', 96, 90000, 0);
      """ + stats.joined())
    return try TakeFindings(path: path).detections.filter { $0.rule == "one-way-media" }
      .map(\.evidence)
  }

  @Test func aDirectionIsSilentOnlyIfAllOfItsStreamsAre() throws {
    let flowing = "50 + 50 * i"
    let paused = "50 + 50 * iif(i <= 10, i, max(10, i - 8))"
    #expect(try oneWay(paused, flowing) == [])
    #expect(try oneWay(flowing, paused) == [])
    #expect(
      try oneWay(paused, paused) == [
        "no media was sent for 8.1 s while 400 packets arrived in the other direction"
      ])
  }

  @Test func packetsAreJudgedOnceBesideAReportedPeer() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    try folder.alter(
      path,
      """
      DELETE FROM state; DELETE FROM packet_store; DELETE FROM path; DELETE FROM ending;
      DELETE FROM track;
      UPDATE peer SET role = 'reported' WHERE peer = 2;
      INSERT INTO ending VALUES (1, 20000000000, x'');
      INSERT INTO path VALUES (1, 131072, 1, 'in', '192.0.2.1:1', '192.0.2.2:2'),
        (2, 131073, 1, 'out', '192.0.2.1:1', '192.0.2.2:2');
      INSERT INTO state (row, peer, at_ns, machine, from_state, to_state)
        VALUES (131072, 1, 0, 'connection', 'connecting', 'connected');
      INSERT INTO track VALUES (196608, 1, 0, 1, '', 'audio', 'in', 1, 'opus', 111, 48000, 0),
        (196609, 1, 0, 1, '', 'audio', 'out', 2, 'opus', 111, 48000, 0);
      -- Audio both ways for ten seconds, and then in one direction.
      WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999)
      INSERT INTO packet_store
        SELECT (1000 + i) << 16, i * 10000000, 1 + i % 2, 1 + i % 2, 111, i / 2, i / 2 * 960, NULL,
          9, 0, NULL FROM n WHERE i % 2 = 0 OR i < 1000;
      """)
    let found = try TakeFindings(path: path).detections.filter { $0.rule == "one-way-media" }
    #expect(
      found.map(\.evidence) == [
        "no media was sent for 10.0 s while 500 packets arrived in the other direction"
      ])
  }

  @Test func aConnectionThatIsDisconnectedAndFailsIsLostOnce() throws {
    let lost = try found(
      samples: [1_000],
      states: [
        (1_000, "ice-connection", "new", "checking"), (1_000, "connection", "new", "connecting"),
        (1_100, "ice-connection", "checking", "connected"),
        (1_500, "connection", "connecting", "connected"),
        (10_000, "ice-connection", "connected", "disconnected"),
        (40_000, "ice-connection", "disconnected", "failed"),
        (60_000, "connection", "connected", "closed"),
      ]
    ).filter { $0.rule == "disconnected" }
    #expect(
      lost.map(\.evidence) == [
        "ICE was disconnected, failed after 30.0 s, and did not recover for 50.0 s"
      ])
  }

  @Test func aConnectionThatFailsIsLostAndEndsThere() throws {
    let lost = try found(
      samples: [1_000],
      states: [
        (1_000, "ice-connection", "new", "checking"), (1_000, "connection", "new", "connecting"),
        (1_100, "ice-connection", "checking", "connected"),
        (1_500, "connection", "connecting", "connected"),
        (40_000, "connection", "connected", "failed"), (60_000, "connection", "failed", "closed"),
      ])
    #expect(
      lost.filter { $0.rule == "disconnected" }.map(\.evidence)
        == ["its state was failed for 20.0 s, while ICE stayed connected"])
    // The application closed the connection, so nothing is wrong.
    let closed = try found(
      samples: [1_000],
      states: [
        (1_000, "ice-connection", "new", "checking"), (1_000, "connection", "new", "connecting"),
        (1_100, "ice-connection", "checking", "connected"),
        (1_500, "connection", "connecting", "connected"),
        (40_000, "connection", "connected", "closed"),
      ])
    #expect(!closed.contains { $0.rule == "disconnected" })
  }

  /// Older browsers report all ICE states, but only the connection state `closed`.
  @Test func aConnectionReportedOnlyAsClosedHadBeenThere() throws {
    let found = try found(
      samples: [1_000],
      states: [
        (1_000, "ice-connection", "new", "checking"),
        (1_100, "ice-connection", "checking", "completed"),
        (40_000, "connection", "new", "closed"), (40_100, "ice-connection", "completed", "closed"),
      ])
    #expect(!found.contains { $0.rule == "never-connected" }, "\(found)")
  }

  @Test func noMediaIsMissingAfterTheConnectionIsAbandoned() throws {
    let states: [(Int, String, String, String)] = [
      (1_000, "ice-connection", "new", "checking"), (1_000, "connection", "new", "connecting"),
      (16_000, "ice-connection", "checking", "disconnected"),
      (16_000, "connection", "connecting", "failed"),
    ]
    func seconds(_ more: [(Int, String, String, String)]) throws -> [Double] {
      try found(samples: [1_000], states: (states + more).map { ($0.0, $0.1, $0.2, $0.3) })
        .filter { $0.rule == "never-connected" }.map(\.impact.withoutMediaSeconds)
    }
    #expect(try seconds([]) == [15])
    #expect(try seconds([(70_000, "connection", "failed", "closed")]) == [15])
    // Retried, and finally closed.
    #expect(
      try seconds([
        (20_000, "connection", "failed", "connecting"),
        (30_000, "connection", "connecting", "closed"),
      ]) == [29])
  }
}
