import Lab
import Media
import Peer
import Testing
import Wire

@testable import Queries
@testable import Tape

struct FindingTests {
  private func names(_ detections: [Detection], peer: Int64) -> Set<String> {
    Set(detections.filter { $0.peer == peer }.map(\.rule))
  }

  private func rows(_ path: String, _ sql: String) throws -> [[String]] {
    var text = ""
    try SQLConsole.run(path: path, sql: sql, format: .csv) { text += $0 }
    return text.split(separator: "\r\n").dropFirst()
      .map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
  }

  @Test func aGoodCallHasNoProblems() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 2)
    call.run(4000)
    try call.finish()
    let found = try TakeFindings(path: call.path)
    #expect(found.detections == [])
    #expect(found.findings.isEmpty)
    #expect(found.text().hasPrefix("Nothing seems wrong. Looked at: 2 peers, 4 streams of media, "))
    #expect(found.json(take: "a.take").contains("\"findings\":[],\"looked_at\":\"2 peers"))
    #expect(try rows(call.path, "SELECT * FROM freeze") == [])

    // In an uneventful call, the views contain no changes.
    let sizes = try rows(
      call.path, "SELECT peer, direction, from_width, width, height FROM resolution_change")
    #expect(sizes.map { Array($0[2...]) } == Array(repeating: ["", "96", "64"], count: 4))
    let rates = try rows(
      call.path, "SELECT DISTINCT frames FROM frame_rate WHERE second BETWEEN 1 AND 2")
    #expect(rates.flatMap { $0 }.allSatisfy { ["14", "15", "16"].contains($0) })
    #expect(
      try rows(
        call.path,
        """
        SELECT peer, count(*), max(to_ns) = (SELECT at_ns FROM ending) FROM selected_pair
        GROUP BY peer
        """)
        == [["1", "1", "1"], ["2", "1", "1"]])
    #expect(
      try rows(
        call.path,
        """
        SELECT DISTINCT peer, round(seconds) FROM state_time
        WHERE machine = 'connection' AND state = 'connected'
        """) == [["1", "4.0"], ["2", "4.0"]])
  }

  @Test func aGapIsABurstAndAFreezeForItsReceiver() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 3)
    call.run(2000)
    call.run(600, losing: [0])
    call.run(2400)
    try call.finish()
    let found = try TakeFindings(path: call.path)
    #expect(names(found.detections, peer: 2).isSuperset(of: ["loss-burst", "freeze"]))
    #expect(!names(found.detections, peer: 1).contains("loss-burst"))
    #expect(!names(found.detections, peer: 1).contains("freeze"))
    let burst = try #require(found.detections.first { $0.rule == "loss-burst" })
    #expect((1_900_000_000...2_100_000_000).contains(burst.fromNanoseconds))
    #expect(burst.evidence.contains(" packets in a row lost within "))

    let counted = try rows(
      call.path,
      """
      SELECT max(members ->> '$.freezeCount') FROM stat
      WHERE type = 'inbound-rtp' AND peer = 2 AND members ->> '$.kind' = 'video'
      """)
    #expect(try rows(call.path, "SELECT count(*) FROM freeze WHERE peer = 2") == counted)
    #expect(
      try !rows(call.path, "SELECT * FROM retransmission WHERE peer = 2 AND direction = 'in'")
        .isEmpty)
  }

  @Test func oneWayMediaIsReported() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 4)
    call.run(1500)
    call.run(4000, losing: [1])
    // The following reports say that the other direction's packets arrived.
    call.run(3000)
    try call.finish()
    let found = try TakeFindings(path: call.path)
    let oneWay = found.detections.filter { $0.rule == "one-way-media" }
    #expect(oneWay.map(\.peer) == [1])
    #expect(oneWay.first?.evidence.hasPrefix("no media arrived for ") == true)
    #expect(found.json(take: "a.take").contains("\"sql\":\"WITH"))
    #expect(found.text(showsQueries: true).contains("-- one-way-media\n"))
  }

  @Test func aDeadPathIsNotOneWay() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 4)
    call.run(1500)
    call.run(3500, losing: [0, 1])
    call.run(4000)
    try call.finish()
    let found = try TakeFindings(path: call.path).detections
    #expect(!found.contains { $0.rule == "one-way-media" })
    // No stream's packets arrived for three seconds.
    for peer: Int64 in 1...2 {
      let gaps = found.filter { $0.rule == "stream-gap" && $0.peer == peer }
      #expect(gaps.count == 2, "\(gaps)")
      #expect(gaps.allSatisfy { $0.evidence.contains("packets of it are missing") })
    }
  }

  @Test func aPartOfATakeHasThePacketsOfThatPart() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 8)
    call.run(3000)
    call.call.network.links[0].lossPerMille = 200
    call.run(3000)
    call.call.network.links[0].lossPerMille = 0
    call.run(3000)
    try call.finish()
    func expected(_ from: Int64, _ to: Int64) throws -> [Int] {
      var selection = TakeSelection()
      (selection.fromNanoseconds, selection.toNanoseconds) = (from, to)
      return try TakeFindings(path: call.path, selection: selection).detections
        .filter { $0.rule == "loss" }
        .compactMap { Int($0.evidence.split(separator: " ")[2]) }.sorted()
    }
    #expect(try expected(0, 2_900_000_000) == [])
    let part = try expected(3_000_000_000, 6_000_000_000)
    #expect(part.count == 2)
    // 150 blocks of audio; 45 frames of video, some retransmitted.
    #expect(part.allSatisfy { $0 < 160 }, "\(part)")
    // All packets are lost within these three seconds, so the whole call has about the same loss.
    let whole = try expected(.min, .max)
    #expect(
      whole.count == 2 && zip(whole, part).allSatisfy { abs($0 - $1) <= 60 }, "\(whole) \(part)")
  }

  @Test func aSilentPathIsADisconnection() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 5, hasVideo: false)
    call.run(1000)
    call.run(12_000, losing: [0, 1])
    try call.finish()
    let found = try TakeFindings(path: call.path).detections
    for peer: Int64 in 1...2 { #expect(names(found, peer: peer).contains("disconnected")) }
  }

  @Test func aLongWayIsReportedAndPausesAreNot() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(
      folder, seed: 6, audio: .tone(hertz: 440, pauseSeconds: 1), delay: .milliseconds(200),
      hasVideo: false)
    call.run(6000)
    try call.finish()
    let found = try TakeFindings(path: call.path)
    for peer: Int64 in 1...2 {
      #expect(names(found.detections, peer: peer) == ["high-round-trip"])
    }
  }

  @Test func aPathThatBecomesLongIsReported() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 12)
    call.run(3000)
    for peer in 0..<2 { call.call.network.links[peer].delay = .milliseconds(250) }
    call.run(12_000)
    try call.finish()
    let found = try TakeFindings(path: call.path).detections.filter { $0.rule == "high-round-trip" }
    #expect(found.map(\.peer).sorted() == [1, 2])
    #expect(found.allSatisfy { $0.fromNanoseconds > 3_000_000_000 })

    // Each check is in the view once: those that chose the pair, and those for consent.
    let answered = try rows(
      call.path,
      """
      SELECT peer, max(members ->> '$.responsesReceived') FROM stat
      WHERE type = 'candidate-pair' GROUP BY peer
      """)
    #expect(
      try rows(call.path, "SELECT peer, sum(checks) FROM round_trip GROUP BY peer") == answered)
    let late = try rows(
      call.path,
      """
      SELECT peer, count(*) > 1, round(min(round_trip_ms)), round(max(round_trip_ms))
      FROM round_trip WHERE at_ns > 4000000000 GROUP BY peer
      """)
    #expect(late == [["1", "1", "500.0", "500.0"], ["2", "1", "500.0", "500.0"]])
  }

  @Test func viewsInTheFileAreNotRun() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 14)
    call.run(2000)
    try call.finish()
    let query = "SELECT peer, checks, round_trip_ms FROM round_trip"
    let before = try rows(call.path, query)
    #expect(!before.isEmpty)
    try folder.alter(
      call.path,
      """
      DROP VIEW round_trip;
      CREATE VIEW round_trip AS SELECT 1 AS peer, 0 AS at_ns, 1 AS checks, 9e9 AS round_trip_ms;
      """)
    #expect(try rows(call.path, query) == before)
    #expect(try TakeFindings(path: call.path).detections == [])
  }

  @Test func aCallThatNeverConnectsIsReported() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 7, hasVideo: false)
    call.run(3000, losing: [0, 1])
    try call.finish()
    #expect(
      try TakeFindings(path: call.path).detections.filter { $0.rule == "never-connected" }.map(
        \.peer)
        == [1, 2])
  }

  @Test func aMissingKeyFrameIsReported() throws {
    let folder = try TakeFolder()
    // Two requests a second apart, and a key frame four seconds after the first.
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    try folder.alter(
      path,
      """
      INSERT INTO rtcp (row, peer, at_ns, direction, type, ssrc, fields) VALUES
        (655360, 1, 1000000000, 'out', 'pli', 7, '{}'),
        (720896, 1, 2000000000, 'out', 'pli', 7, '{}');
      INSERT INTO format
        (format, row, peer, track, kind, direction, codec, ssrc, outcome, key, voice)
        VALUES (1, 786432, 1, 2, 'video', 'in', 'vp8', 7, 'decoded', 1, 0);
      INSERT INTO frame_store (row, at_ns, format, rtp_time, size, quantiser, peak, energy)
        VALUES (786432, 5000000000, 1, 0, 9, 9, 0, 0);
      """)
    let found = try TakeFindings(path: path).detections.filter { $0.rule == "no-key-frame" }
    #expect(
      found.map(\.evidence) == [
        "its receiver requested a key frame (a whole picture) 2 times and showed one 4.0 s after "
          + "the first time"
      ])
    #expect(found.first?.fromNanoseconds == 1_000_000_000)
  }

  @Test func aRelayInUseAndAPairThatFlapsAreReported() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    // Two pairs that alternate every second, one of them over a relay.
    var rows: [String] = []
    for turn in 0..<6 {
      for pair in 1...2 {
        let row = (10 + turn) * 65_536 + pair
        let isSelected = turn % 2 + 1 == pair
        rows.append(
          """
          (\(row), 1, \(turn + 1)000000000, \(pair), '10.0.0.1:1',
            '\(pair == 1 ? "relay" : "host")', '10.0.0.2:2', 'host', '10.0.0.1:1', 'succeeded', 1,
            \(isSelected ? 1 : 0), 1, 0, 0, 0, 0, 0, NULL, 0)
          """)
      }
    }
    try folder.alter(path, "INSERT INTO candidate_pair VALUES \(rows.joined(separator: ","))")
    let found = try TakeFindings(path: path).detections
    let relays = found.filter { $0.rule == "relay-in-use" }
    #expect(relays.first?.evidence == "10.0.0.1:1 (relay) to 10.0.0.2:2 (host)")
    #expect(relays.first?.fromNanoseconds == 1_000_000_000)
    #expect(relays.count == 3)
    #expect(
      found.filter { $0.rule == "ice-flapping" }.map(\.evidence)
        == ["5 changes of the selected pair within 10 s"])
    // An ICE restart is expected to select a new pair, so that change does not count as flapping.
    try folder.alter(
      path,
      """
      INSERT INTO candidate (row, peer, at_ns, type, candidate_type, foundation, component,
        protocol, priority, address, port, username_fragment, extensions)
        SELECT row - 3, 1, at_ns - 1000, 'local-candidate', 'host', '1', 1, 'udp', 1, '10.0.0.1', 1,
          'u' || row, '' FROM candidate_pair WHERE selected = 1
      """)
    #expect(try !TakeFindings(path: path).detections.contains { $0.rule == "ice-flapping" })
  }

  @Test func lossAndItsShareAreReported() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 8)
    call.call.network.links[0].lossPerMille = 100
    call.run(6000)
    try call.finish()
    let found = try TakeFindings(path: call.path).detections.filter { $0.rule == "loss" }
    #expect(Set(found.map(\.peer)) == [2])
    #expect(found.allSatisfy { $0.evidence.contains(" packets lost (") })
    // The sending side learns of the loss from reports.
    let reported = try TakeFindings(path: call.path).detections.filter { $0.rule == "loss-at-peer" }
    #expect(Set(reported.map(\.peer)) == [1])
  }

  @Test func concealedAudioIsReported() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 11)
    call.run(3000)
    call.call.network.links[0].lossPerMille = 500
    call.run(3000)
    call.call.network.links[0].lossPerMille = 0
    call.run(2000)
    try call.finish()
    let found = try TakeFindings(path: call.path).detections.filter { $0.rule == "concealed-audio" }
    #expect(found.map(\.peer) == [2])
    let begin = try #require(found.first?.fromNanoseconds)
    #expect((2_000_000_000...4_000_000_000).contains(begin))
  }

  @Test func anEncoderThatLacksBitsIsReported() throws {
    let folder = try TakeFolder()
    let path = folder.file("call.take")
    var configuration = PeerConfiguration()
    configuration.videoBitrateStart = 50_000
    configuration.videoBitrateMaximum = 50_000
    let recorded = try RecordedVirtualCall(
      path: path, seed: 9, links: [LinkSettings(), LinkSettings()], labels: ["caller", "callee"],
      configurations: [configuration, configuration])
    recorded.call.call(
      0,
      .addTrack(
        kind: .video, streamIDs: ["s"],
        source: .pattern(width: 640, height: 480, framesPerSecond: 30)))
    recorded.call.negotiate()
    recorded.run(for: .seconds(4))
    _ = try recorded.finish()
    let found = try TakeFindings(path: path).detections.filter { $0.rule == "encoder-limited" }
    #expect(found.map(\.peer) == [1])
    #expect(found.first?.evidence.hasSuffix("limited by bandwidth") == true)
  }

  @Test func speechThatIsNotHeardIsReported() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 10, audio: .application, hasVideo: false)
    call.talk(3000, speaker: 0)
    try call.finish()
    func told() throws -> [Detection] {
      try TakeFindings(path: call.path).detections.filter { $0.rule == "silent-while-speaking" }
    }
    #expect(try told().isEmpty)
    // The same call with a decoder that outputs silence.
    try folder.alter(call.path, "UPDATE level SET energy = 0 WHERE peer = 2 AND direction = 'in'")
    let found = try told()
    #expect(found.map(\.peer) == [2])
    let length = try #require(found.first.map { $0.toNanoseconds - $0.fromNanoseconds })
    #expect((2_500_000_000...3_200_000_000).contains(length))
  }

  @Test(arguments: [PeerNotice.all, nil])
  func speechIntoADisabledTrackIsReported(notices: [PeerNotice]?) throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(
      folder, seed: 11, audio: .application, hasVideo: false, notices: notices)
    let mute = PeerCall.setEnabled(transceiver: 1, isInbound: false, isEnabled: false)
    call.talk(1_000, speaker: 0)
    #expect(call.call.call(0, mute).error == nil)
    call.talk(1_000, speaker: nil)
    call.talk(2_000, speaker: 0)
    call.talk(2_000, speaker: nil)
    try call.finish()
    let found = try TakeFindings(path: call.path).detections.filter {
      $0.rule == "speech-while-muted"
    }
    // The detection begins after 0.3 s of voice and ends a second after the voice.
    #expect(found.map(\.peer) == (notices == nil ? [] : [1]))
    for problem in found {
      let length = problem.toNanoseconds - problem.fromNanoseconds
      #expect((2_600_000_000...2_800_000_000).contains(length))
      #expect(problem.evidence.hasSuffix("into a microphone whose track was disabled"))
    }
  }

  @Test func everyRuleIsOneQueryThatAnyoneCanRun() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    for rule in FindingRule.all {
      var text = ""
      try SQLConsole.run(path: path, sql: rule.sql, format: .csv) { text += $0 }
      guard rule.detector == nil else { continue }
      #expect(text.hasPrefix("peer,from_ns,to_ns,evidence"), "\(rule.id)")
    }
    #expect(Set(FindingRule.all.map(\.id)).count == FindingRule.all.count)
  }

  /// A threshold may have any value in the range that a rule file allows.
  @Test(
    arguments: [0, 1, FindingRuleFile.most],
    ["virtual-heavy-loss", "observed-firefox", "relayed-janus", "janus-room"])
  func anyThresholdsAreUsable(value: Double, name: String) throws {
    let folder = try TakeFolder()
    let path = try folder.copy(name)
    var rules = FindingRule.all
    for place in rules.indices {
      for threshold in rules[place].thresholds {
        rules[place].moved[threshold.name] = threshold.value < 0 ? -value : value
      }
    }
    let found = try TakeFindings(path: path, rules: rules)
    #expect(value > 1 || !found.detections.isEmpty)
    #expect(found.text().contains("\n"))
  }
}
