import Testing

@testable import Queries
@testable import Tape

/// Tests which evidence findings need: each take here contains only the rows that its rule reads.
struct FindingEvidenceTests {
  /// Returns the start of a statement that selects from `n`, with a range's numbers as `i`.
  private func numbers(_ range: ClosedRange<Int>) -> String {
    "WITH RECURSIVE n(i) AS (SELECT \(range.lowerBound) UNION ALL SELECT i + 1 FROM n "
      + "WHERE i < \(range.upperBound))"
  }

  @Test func aPictureStopsOnlyWhileItsCallGoesOn() throws {
    let folder = try TakeFolder()
    // Both ends end the call, and eight seconds later the relay ends the take.
    let path = try folder.copy("relayed-chromium")
    func stops() throws -> [Detection] {
      try TakeFindings(path: path).detections.filter { $0.rule == "video-stopped" }
    }
    #expect(try stops() == [])
    // If checks continue after both ends stop, the call has not ended.
    try folder.alter(
      path,
      """
      \(numbers(1...12))
      INSERT INTO packet_store (row, at_ns, path, size, position)
        SELECT (SELECT max(row) FROM packet_store) + i * 65536, 6200000000 + i * 600000000,
          (SELECT min(path) FROM path_end WHERE peer = 10001), 100, 0
        FROM n;
      """)
    let found = try stops()
    #expect(!found.isEmpty && found.allSatisfy { $0.length > 5_000_000_000 }, "\(found)")
  }

  @Test func undecodedAudioIsNotSilent() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    func found(
      _ outcome: String, level: String, blocks: Int = 600, milliseconds: Int = 20
    ) throws -> [String] {
      try folder.alter(
        path,
        """
        DELETE FROM format; DELETE FROM frame_store;
        INSERT INTO format
          (format, row, peer, track, kind, direction, codec, ssrc, outcome, key, voice)
          VALUES (1, 786432, 1, 2, 'audio', 'in', 'opus', 7, '\(outcome)', 1, 0);
        \(numbers(1...blocks))
        INSERT INTO frame_store
          (row, at_ns, format, rtp_time, size, quantiser, audio_level, peak, energy)
          SELECT (20 + i) << 16, i * \(milliseconds)000000, 1, i * 960, 9, 0, \(level), 0, 0 FROM n;
        """)
      return try TakeFindings(path: path).detections.map(\.rule).filter { $0 == "silent-audio" }
    }
    #expect(try found("not decoded", level: "NULL") == [])
    #expect(try found("decoded", level: "NULL") == ["silent-audio"])
    // The sender's own level shows that its audio is silent, whether or not the audio is decoded.
    #expect(try found("not decoded", level: "127") == ["silent-audio"])
    // A participant who spoke before may listen for half a minute.
    #expect(try found("decoded", level: "iif(i < 50, 40, 127)") == [])
    #expect(try found("decoded", level: "iif(i < 50, 40, 127)", blocks: 1_600) == ["silent-audio"])
    // Packets only every 400 ms mean that the sender does not transmit silence (DTX).
    #expect(try found("decoded", level: "127", blocks: 100, milliseconds: 400) == [])
    // A track that the receiver muted is not reported.
    try folder.alter(
      path,
      """
      INSERT INTO call_request VALUES (720896, 1, 0, 9999, 'setEnabled',
        '{"isEnabled":false,"isInbound":true,"transceiver":2}')
      """)
    #expect(try found("decoded", level: "127") == [])
  }

  /// Tests an observed end, which has no connection state, with audio whose sender pauses.
  @Test func pausesOfTheSenderAreNotConcealment() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    func found(sequenceStep: Int) throws -> [String] {
      try folder.alter(
        path,
        """
        DELETE FROM format; DELETE FROM frame_store; DELETE FROM packet_store; DELETE FROM path;
        INSERT INTO path VALUES (1, 131072, 1, 'in', '192.0.2.1:1', '192.0.2.2:2');
        -- Concealed blocks are of no stream.
        INSERT INTO format
          (format, row, peer, track, kind, direction, codec, ssrc, outcome, key, voice) VALUES
          (1, 786432, 1, 2, 'audio', 'in', 'opus', 7, 'decoded', 1, 0),
          (2, 786433, 1, 2, 'audio', 'in', 'opus', 0, 'concealed', 1, 0);
        -- One second of speech, then a packet each 400 ms for four seconds.
        \(numbers(0...249))
        INSERT INTO frame_store
          (row, at_ns, format, rtp_time, size, quantiser, audio_level, peak, energy)
          SELECT (20 + i) << 16, i * 20000000, iif(i < 50 OR i % 20 = 0, 1, 2), i * 960, 9, 0,
            NULL, 9, 99 FROM n;
        \(numbers(0...249))
        INSERT INTO packet_store
          SELECT ((20 + i) << 16) + 1, i * 20000000, 1, 7, 111,
            iif(i < 50, i, 50 + \(sequenceStep) * (i / 20)), i * 960, NULL, 9, 0, NULL
          FROM n WHERE i < 50 OR i % 20 = 0;
        """)
      return try TakeFindings(path: path).detections.map(\.rule)
        .filter { $0 == "concealed-audio" }
    }
    #expect(try found(sequenceStep: 1) == [])
    #expect(try found(sequenceStep: 20) == ["concealed-audio"])
  }

  @Test func anEndThatWasOnlySeenNeverConnects() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    func found(_ states: String, hasMedia: Bool) throws -> [String] {
      try folder.alter(
        path,
        """
        DELETE FROM state; DELETE FROM packet_store; DELETE FROM path;
        INSERT INTO path VALUES (1, 131072, 1, 'in', '192.0.2.1:1', '192.0.2.2:2');
        INSERT INTO state (row, peer, at_ns, machine, from_state, to_state) VALUES \(states);
        INSERT INTO packet_store
          SELECT 1000000, 10, 1, 7, 111, 1, 1, NULL, 9, 0, NULL WHERE \(hasMedia ? 1 : 0);
        """)
      return try TakeFindings(path: path).detections.map(\.rule).filter { $0 == "never-connected" }
    }
    let checking = "(131072, 1, 5, 'ice-connection', 'new', 'checking')"
    let connected = "\(checking), (196608, 1, 6, 'ice-connection', 'checking', 'connected')"
    #expect(try found(checking, hasMedia: false) == ["never-connected"])
    #expect(try found(checking, hasMedia: true) == [])
    #expect(try found(connected, hasMedia: false) == [])
  }

  /// Makes a take of received video with 30 frames per second, one packet each.
  ///
  /// - Parameters:
  ///   - frames: an SQL condition on a frame's number `i`: whether it was shown.
  ///   - packets: an SQL expression for the packet's sequence number; NULL if it was lost.
  private func video(_ folder: TakeFolder, frames: String, packets: String) throws -> String {
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0), as: "video.take")
    try folder.alter(
      path,
      """
      DELETE FROM packet_store; DELETE FROM path; DELETE FROM ending; DELETE FROM state;
      INSERT INTO path VALUES (1, 131072, 1, 'in', '192.0.2.1:1', '192.0.2.2:2');
      INSERT INTO format
        (format, row, peer, track, kind, direction, codec, ssrc, outcome, key, voice)
        VALUES (1, 786432, 1, 2, 'video', 'in', 'vp8', 7, 'decoded', 0, 0);
      INSERT INTO ending VALUES (1, 16000000000, x'');
      \(numbers(0...479))
      INSERT INTO frame_store
        (row, at_ns, format, rtp_time, size, quantiser, audio_level, peak, energy)
        SELECT ((1001 + i) << 16) + 2, i * 33000000 + 50000000, 1, i * 3000, 9, 9, NULL, 0, 0
        FROM n WHERE \(frames);
      \(numbers(0...479))
      INSERT INTO packet_store
        SELECT ((1000 + i) << 16) + 1, i * 33000000, 1, 7, 96, \(packets), i * 3000, NULL, 9, 0,
          NULL
        FROM n WHERE \(packets) IS NOT NULL;
      """)
    return path
  }

  private func video(_ frames: String, _ packets: String) throws -> [String] {
    let folder = try TakeFolder()
    return try TakeFindings(path: video(folder, frames: frames, packets: packets)).detections
      .filter { ["freeze", "video-stopped"].contains($0.rule) }.map { "\($0.rule): \($0.evidence)" }
  }

  @Test func anUnchangingScreenIsNoFreeze() throws {
    // The sender sends a frame every 1.5 s, and each is shown.
    let seldom = "i < 30 OR i % 45 = 0"
    #expect(try video(seldom, "iif(\(seldom), iif(i < 30, i, 29 + i / 45), NULL)") == [])
    // The frames between those shown were sent, but lost.
    #expect(
      try video(seldom, "iif(\(seldom), i, NULL)").allSatisfy { $0.hasPrefix("freeze: ") })
    #expect(try !video(seldom, "iif(\(seldom), i, NULL)").isEmpty)
    // All frames arrived, and most were not shown.
    #expect(try !video(seldom, "i").isEmpty)
  }

  @Test func videoThatDiesIsReportedWithWhoLetItDie() throws {
    let here = try video("i < 300", "i")
    #expect(
      here == [
        "video-stopped: no frame was shown for 6.1 s, to the end: "
          + "179 packets of it arrived meanwhile"
      ])
    let there = try video("i < 300", "iif(i < 300, i, NULL)")
    #expect(there.count == 1 && there[0].contains("its sender sent nothing, or none of it arrived"))
    // Video stops for more than five seconds and resumes: first with lost packets, then without.
    let stop = "i < 100 OR i >= 300"
    #expect(try video(stop, "iif(\(stop), i, NULL)").count == 1)
    #expect(try video(stop, "iif(\(stop), iif(i < 100, i, i - 200), NULL)") == [])
  }

  @Test func unobservedMediaIsReportedWithTheAnswer() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    try folder.alter(
      path,
      """
      DELETE FROM state;
      INSERT INTO coverage (row, actor, at_ns, peer, from_ns, to_ns, what, reason) VALUES
        (131070, 1, 0, NULL, 0, 1, 'no-keys', '1'), (131072, 1, 0, NULL, 0, 1, 'no-keys', '17'),
        (131073, 1, 0, NULL, 0, 1, 'ignored', '4');
      """)
    let text = try TakeFindings(path: path).text()
    #expect(
      text.hasPrefix("Nothing seems wrong in what could be seen. Looked at: ")
        && text.hasSuffix("Not seen: 17 packets not decrypted, without a key\n"))
  }

  /// Makes one end of an observed call, from second 0 to 10.
  ///
  /// Each direction has a packet every 20 ms. `coming` is an SQL condition on the number `i` of an
  /// incoming packet: whether the packet arrives. `more` is further SQL.
  private func seen(coming: String, more: String) throws -> [Detection] {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0), as: "seen.take")
    try folder.alter(
      path,
      """
      DELETE FROM packet_store; DELETE FROM path; DELETE FROM ending; DELETE FROM state;
      DELETE FROM track; DELETE FROM signaling; DELETE FROM rtcp;
      UPDATE peer SET role = 'observed';
      INSERT INTO path VALUES (1, 131072, 1, 'in', '192.0.2.1:1', '192.0.2.2:2'),
        (2, 131073, 1, 'out', '192.0.2.1:1', '192.0.2.2:2');
      INSERT INTO track VALUES (196608, 1, 0, 1, '', 'audio', 'in', 7, 'opus', 111, 48000, 0);
      INSERT INTO track VALUES (196609, 1, 0, 2, '', 'audio', 'out', 8, 'opus', 111, 48000, 0);
      INSERT INTO ending VALUES (1, 10000000000, x'');
      \(numbers(0...500))
      INSERT INTO packet_store
        SELECT (1000 + i) << 16, i * 20000000, 1, 7, 111, i, i * 960, NULL, 9, 0, NULL
        FROM n WHERE \(coming);
      \(numbers(0...500))
      INSERT INTO packet_store
        SELECT ((1000 + i) << 16) + 1, i * 20000000 + 1, 2, 8, 111, i, i * 960, NULL, 9, 0, NULL
        FROM n;
      -- A check for consent each second.
      \(numbers(0...10))
      INSERT INTO packet_store
        SELECT ((1000 + i * 50) << 16) + 2, i * 1000000000 + 2, 1, NULL, NULL, NULL, NULL, NULL, 9,
          0, NULL FROM n;
      \(more)
      """)
    let found = try TakeFindings(path: path)
    let names: Set = ["one-way-media", "stream-gap", "audio-paused"]
    return found.detections.filter { names.contains($0.rule) }
  }

  /// Makes sender reports for the seconds 0 to 10; `packets` and `highest` are SQL expressions in
  /// the second, `i`.
  private func reports(packets: String, highest: String) -> String {
    """
    \(numbers(0...10))
    INSERT INTO rtcp (row, peer, at_ns, direction, type, ssrc, fields)
      SELECT ((1000 + i * 50) << 16) + 3, 1, i * 1000000000 + 3, 'in', 'sr', 7,
        json_object('packets', \(packets), 'blocks', json_array(json_object(
          'ssrc', 8, 'lost', 0, 'highest', \(highest)))) FROM n;
    """
  }

  @Test func observedMediaIsOneWayIfItsSenderContinues() throws {
    let arriving = "i * 50"
    // The stream stops permanently while its sender continues counting.
    let dead = try seen(
      coming: "i < 250", more: reports(packets: "i * 50", highest: arriving))
    #expect(dead.map(\.rule).sorted() == ["one-way-media", "stream-gap"])
    // The sender stopped: it is muted, or on hold.
    let paused = try seen(
      coming: "i < 250", more: reports(packets: "min(i, 5) * 50", highest: arriving))
    #expect(paused.map(\.rule) == ["audio-paused"])
    // The stream was sent, and no packet arrived.
    let never = try seen(coming: "0", more: reports(packets: "i * 50", highest: arriving))
    #expect(never.map(\.rule) == ["one-way-media"])
    // Packets are missing for three seconds.
    let gap = try seen(
      coming: "i < 200 OR i > 350", more: reports(packets: "i * 50", highest: arriving))
    #expect(gap.map(\.rule).sorted() == ["one-way-media", "stream-gap"])
    #expect(gap.last?.evidence.contains("151 packets of it are missing") == true)
    // Everything arrives, so there is no finding.
    #expect(try seen(coming: "1", more: reports(packets: "i", highest: arriving)) == [])
    // The remote peer's reports say that this peer's packets do not arrive.
    let deaf = try seen(
      coming: "1", more: reports(packets: "i * 50", highest: "min(i, 4) * 50"))
    #expect(deaf.map(\.rule) == ["one-way-media"])
    #expect(deaf.first?.evidence.hasPrefix("nothing of it arrived at the remote peer") == true)
  }

  @Test func aLateFirstPictureIsReported() throws {
    let folder = try TakeFolder()
    let path = try video(folder, frames: "i >= 150", packets: "i")
    func found() throws -> [String] {
      try TakeFindings(path: path).detections.filter { $0.rule == "late-first-frame" }
        .map(\.evidence)
    }
    #expect(try found() == [])
    try folder.alter(
      path,
      """
      INSERT INTO state (row, peer, at_ns, machine, from_state, to_state)
        VALUES (131072, 1, 0, 'connection', 'connecting', 'connected');
      DELETE FROM track;
      INSERT INTO track VALUES (196608, 1, 0, 2, '', 'video', 'in', 7, 'vp8', 96, 90000, 0);
      """)
    #expect(
      try found() == [
        "shown after 5.0 s, although its packets arrived"
      ])
  }

  /// Whether a picture is missing is known only of media that was decrypted and that kept arriving.
  @Test func aFirstPictureIsMissingOnlyWhereMediaWasOpened() throws {
    let folder = try TakeFolder()
    func found(packets: String, opened: Bool) throws -> [String] {
      let path = try video(folder, frames: "0", packets: packets)
      defer { try? folder.remove("video.take") }
      try folder.alter(
        path,
        """
        INSERT INTO state (row, peer, at_ns, machine, from_state, to_state)
          VALUES (131072, 1, 0, 'connection', 'connecting', 'connected');
        DELETE FROM track;
        INSERT INTO track VALUES (196608, 1, 0, 2, '', 'video', 'in', 7, 'vp8', 96, 90000, 0);
        DELETE FROM format WHERE \(opened ? 0 : 1);
        """)
      return try TakeFindings(path: path).detections.filter { $0.rule == "late-first-frame" }
        .map(\.evidence)
    }
    #expect(
      try found(packets: "i", opened: true) == [
        "no picture was shown in 15.8 s, although its packets arrived"
      ])
    #expect(try found(packets: "i", opened: false) == [])
    // A packet each second keeps a mapping open, or probes the path.
    #expect(try found(packets: "iif(i % 30 = 0, i / 30, NULL)", opened: true) == [])
  }

  /// The application or the remote peer encodes video, and Retake passes it on.
  @Test func aKeyFrameThatIsPassedOnAnswersRequests() throws {
    let folder = try TakeFolder()
    func make(key: Int) throws -> String {
      let path = try folder.record(
        SampleSteps.call(packets: 0, payload: 0), as: "passed-\(key).take")
      try folder.alter(
        path,
        """
        DELETE FROM packet_store; DELETE FROM path; DELETE FROM ending; DELETE FROM state;
        INSERT INTO ending VALUES (1, 10000000000, x'');
        INSERT INTO path VALUES (1, 131072, 1, 'out', '192.0.2.1:1', '192.0.2.2:2');
        INSERT INTO format (format, row, peer, track, kind, direction, codec, ssrc, outcome, key,
          voice, width, height)
          VALUES (1, 786432, 1, 2, 'video', 'out', 'h264', 7, 'passed on', 0, 0, 640, 480),
            (2, 786433, 1, 2, 'video', 'out', 'h264', 7, 'passed on', \(key), 0, 640, 480);
        \(numbers(0...299))
        INSERT INTO frame_store
          (row, at_ns, format, rtp_time, size, quantiser, audio_level, peak, energy)
          SELECT ((1001 + i) << 16) + 2, i * 33000000, 1 + (i % 60 = 0), i * 3000, 9, 0, NULL, 0, 0
          FROM n;
        \(numbers(0...299))
        INSERT INTO packet_store
          SELECT ((1000 + i) << 16) + 1, i * 33000000, 1, 7, 96, i, i * 3000, NULL, 9, 0, NULL
          FROM n;
        \(numbers(1...8))
        INSERT INTO rtcp (row, peer, at_ns, direction, type, ssrc, fields)
          SELECT ((1000 + 30 * i) << 16) + 5, 1, i * 1000000000, 'in', 'pli', 7, '{}' FROM n;
        """)
      return path
    }
    let found = try TakeFindings(path: make(key: 1))
    #expect(!found.detections.contains { $0.rule == "key-frame-requests-unanswered" })
    let unanswered = try TakeFindings(path: make(key: 0))
    #expect(unanswered.detections.contains { $0.rule == "key-frame-requests-unanswered" })
  }

  @Test func theSummaryHasTheRateOfVideoThatIsPassedOn() throws {
    func summary(_ name: String) throws -> TakeSummary {
      let folder = try TakeFolder()
      let path = try folder.copy(name)
      return try TakeSummary(path: path, findings: TakeFindings(path: path))
    }
    let sent = try summary("chromium-retake-offers-h264-file").media
      .filter { $0.kind == "video" && $0.direction == .outbound }
    #expect(sent.map(\.width) == [320] && sent.map(\.height) == [240])
    #expect(sent.allSatisfy { $0.framesPerSecond > 10 }, "\(sent.map(\.framesPerSecond))")
    // For frames that are sent back unchanged, the rate is known although the size is not.
    #expect(try summary("chromium-retake-offers-h264").text().contains(" fps"))
  }

  /// Tests sequence numbers that restart at a lower value after eight seconds.
  @Test func aRestartOfNumbersIsNoBurstThatEndsBeforeItBegins() throws {
    let folder = try TakeFolder()
    let path = try video(folder, frames: "0", packets: "iif(i < 240, 9000 + i, i)")
    let found = try TakeFindings(path: path).detections
    #expect(found.allSatisfy { $0.fromNanoseconds <= $0.toNanoseconds })
    #expect(!found.contains { $0.rule == "loss-burst" })
  }

  @Test func aFallingTargetIsALimitWhateverTheEncoderReports() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    func found(_ target: String) throws -> [String] {
      try folder.alter(
        path,
        """
        DELETE FROM stat;
        \(numbers(1...10))
        INSERT INTO stat (row, peer, at_ns, call, id, type, timestamp_ms, members)
          SELECT (20 + i) << 16, 1, i * 1000000000, i, 'o', 'outbound-rtp', i, json_object(
            'ssrc', 7, 'kind', 'video', 'qualityLimitationReason', 'none', 'targetBitrate',
            \(target)) FROM n;
        """)
      return try TakeFindings(path: path).detections.filter { $0.rule == "encoder-limited" }
        .map(\.evidence)
    }
    #expect(try found("300000 + i * 50000") == [])
    #expect(
      try found("iif(i < 5, 984000, 55000)") == [
        "its target fell from 984 to 55 kbit/s, in 6 samples of its statistics"
      ])
  }
}
