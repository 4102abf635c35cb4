import Media
import Tape
import Testing
import Wire

@testable import Debug
@testable import Replay

struct WalkTests {
  private func walk(_ take: LabTake, skipsCodecs: Bool = true) throws -> TapeWalk {
    try TapeWalk(path: take.path, skipsCodecs: skipsCodecs, codecs: { LibraryCodecs() })
  }

  @Test(arguments: [true, false])
  func everyStepIsExecutedAndNoneDiffers(_ skipsCodecs: Bool) throws {
    let take = try LabTake.shared.get()
    let walk = try walk(take, skipsCodecs: skipsCodecs)
    var steps = 0
    while let step = try walk.advance() {
      steps += 1
      #expect(step.recorded.head.number == steps)
    }
    #expect(walk.stepCount == steps)
    #expect(walk.divergence == nil)
    #expect(walk.at == walk.end)
  }

  /// The walk stops at the first step whose rows meet a condition; SQL must find the same step.
  @Test(arguments: [
    ("state connection connected", "state WHERE machine = 'connection' AND to_state = 'connected'"),
    (
      "state dtls connected peer=2",
      "state WHERE machine = 'dtls' AND to_state = 'connected' AND peer = 2"
    ),
    ("packet in rtp", "packet WHERE direction = 'in' AND protocol = 'rtp'"),
    ("packet out dtls clienthello", "packet WHERE direction = 'out' AND protocol = 'dtls'"),
    (
      "packet stun response",
      "packet WHERE protocol = 'stun' AND bytes >= x'0101' AND bytes < x'0102'"
    ),
    ("packet rtcp sr", "rtcp WHERE type = 'sr'"),
    (
      "packet in rtp payload_type=96 marker=1",
      "packet WHERE direction = 'in' AND payload_type = 96 AND marker = 1"
    ),
    ("packet size>900", "packet WHERE size > 900"),
    ("frame in video key", "frame WHERE direction = 'in' AND kind = 'video' AND key = 1"),
    ("frame in audio concealed", "frame WHERE direction = 'in' AND outcome = 'concealed'"),
    ("event secured", "event WHERE type = 'secured'"),
    ("message answer", "signaling WHERE type = 'answer'"),
    (
      "call setRemoteDescription label=callee",
      "call_request WHERE name = 'setRemoteDescription' AND peer = 2"
    ),
    ("pair succeeded", "candidate_pair WHERE state = 'succeeded'"),
    ("track vp8 direction=in", "track WHERE codec = 'vp8' AND direction = 'in'"),
  ])
  func conditionsAgreeWithTheTables(_ text: String, _ sql: String) throws {
    let take = try LabTake.shared.get()
    let condition = try StepCondition(text)
    let walk = try walk(take)
    while try walk.advance() != nil, !walk.meets(condition) {}
    let expected = try take.number("SELECT step FROM \(sql) ORDER BY row LIMIT 1")
    let end = try take.number("SELECT steps FROM ending")
    #expect(Int64(walk.number) == expected ?? end)

    // The step finder finds the same steps without a walk, searching forward and backward.
    let finder = try StepFinder(path: take.path)
    #expect(try finder.first(condition, after: 0).map { Int64($0) } == expected)
    let last = try take.number("SELECT step FROM \(sql) ORDER BY row DESC LIMIT 1")
    // SQL cannot name a message inside a DTLS record.
    if !text.contains("dtls client") {
      #expect(try finder.last(condition, before: .max >> 17).map { Int64($0) } == last)
    }
    if let first = try finder.first(condition, after: 0) {
      #expect(try finder.last(condition, before: first) == nil)
      #expect(try finder.first(condition, after: first - 1) == first)
      #expect(try finder.first(condition, after: first) != first)
    }
  }

  @Test func aStatsThresholdHoldsOnceItIsPassed() throws {
    let take = try LabTake.shared.get()
    let condition = try StepCondition("stat framesDecoded>=3 kind=video")
    let walk = try walk(take)
    while try walk.advance() != nil, !walk.meets(condition) {}
    let third = try take.number(
      """
      SELECT row >> 16 FROM (
        SELECT row, row_number() OVER (PARTITION BY peer ORDER BY row) AS number FROM frame
        WHERE kind = 'video' AND direction = 'in' AND outcome = 'decoded'
      ) WHERE number = 3 ORDER BY row LIMIT 1
      """)
    #expect(Int64(walk.number) == third)
  }

  /// The take's samples narrow the search to a range, which contains every result.
  @Test(arguments: [
    "stat framesDecoded>=3 kind=video", "stat packetsReceived>40", "stat nackCount>0",
    "stat bytesSent>20000 peer=2", "stat concealedSamples>0 kind=audio", "stat framesSent>2000",
    "stat requestsReceived>=1", "stat messagesSent>0", "stat totalAudioEnergy>0.01 peer=1",
    "stat packetsLost>2", "stat packetsLost>=20 kind=audio",
  ])
  func growthIsFoundBetweenSamples(_ text: String) throws {
    let take = try LabTake.lossy.get()
    let condition = try StepCondition(text)
    let walk = try walk(take)
    var held = walk.peersMeeting(condition)
    var places: [Int] = []
    while let step = try walk.advance() {
      let (holds, peer) = (walk.meets(condition), step.recorded.head.actor)
      if holds, held.updateValue(holds, forKey: peer) != true { places.append(walk.number) }
    }
    let finder = try StepFinder(path: take.path)
    let spans = try #require(try finder.spans(of: condition, stepCount: walk.stepCount))
    #expect(places.allSatisfy { place in spans.contains { $0.contains(place) } })
  }

  @Test func fewStepsAreLeftToLookAt() throws {
    let take = try LabTake.lossy.get()
    let finder = try StepFinder(path: take.path)
    let end = try walk(take).stepCount
    let condition = try StepCondition("stat framesDecoded>=30 kind=video peer=1")
    let spans = try #require(try finder.spans(of: condition, stepCount: end))
    #expect(spans.map(\.count).reduce(0, +) < end * 3 / 4)
  }

  @Test(arguments: ["stat jitter>0.1", "stat packetsLost<2", "stat framesDecoded=3"])
  func shrinkingMembersAreNotSearchedBySamples(_ text: String) throws {
    let take = try LabTake.lossy.get()
    let finder = try StepFinder(path: take.path)
    #expect(try finder.spans(of: try StepCondition(text), stepCount: 100) == nil)
  }

  @Test(arguments: [
    "", "nowhere", "step:0", "step:x", "step", "12s more", "-3s", "packet colour=red", "stat",
    "stat freezeCount", "frame zoom>2", "stat a b",
  ])
  func otherConditionsAreRefusedInASentence(_ text: String) {
    let error = #expect(throws: ConditionError.self) { try StepCondition(text) }
    #expect(error?.description.isEmpty == false)
  }

  @Test(arguments: ["12.3s", "12.3", "time 12.3", "at 12.3s", "step:12", "step 12"])
  func placesStopBeforeAndNotAfter(_ text: String) throws {
    #expect(try StepCondition(text).stopsBefore)
    #expect(try !StepCondition("state failed").stopsBefore)
  }

  @Test func everyLayerHasItsState() throws {
    let take = try LabTake.shared.get()
    let walk = try walk(take)
    while walk.at < .zero + .milliseconds(1500), try walk.advance() != nil {}
    let states = walk.states
    #expect(states.map(\.label) == ["caller", "callee"])
    let tree = SnapshotTree("peer", of: try #require(states.first).snapshot)
    for (path, value) in [
      ("states.connection", "connected"), ("states.dtls", "connected"),
      ("ice.connectionState", "completed"), ("ice.pairs[0].isSelected", "true"),
      ("transceivers[1].currentDirection", "sendrecv"), ("flow.isWritable", "true"),
    ] {
      #expect(tree[path]?.text == value, "\(path)")
    }
    for path in [
      "receiving[0].audio.counters.totalSamplesReceived",
      "receiving[1].video.counters.framesDecoded", "flow.sending[1].counters.packetsSent",
      "flow.receiving[1].counters.packetsReceived", "flow.congestion.target", "entropy[0].bytes",
      "deadlines[0].at", "ice.counters.malformed",
    ] {
      #expect(tree[path] != nil, "\(path)")
    }
    #expect(Double(tree["receiving[1].video.counters.framesDecoded"]?.value ?? "") ?? 0 > 3)
  }

  @Test func lookingChangesNothing() throws {
    let take = try LabTake.shared.get()
    let walk = try walk(take)
    while try walk.advance() != nil {
      _ = walk.states
      _ = walk.stats(of: 1)
    }
    #expect(walk.divergence == nil)
  }
}
