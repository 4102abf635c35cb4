import Debug
import Foundation
import Lab
import Media
import Peer
import Queries
import Replay
import Room
import Tape
import Testing
import Wire

/// Records a room in virtual time, replays its take, and queries the take by participant.
@Suite struct RoomReplayTests {
  private static let kinds = {
    var kinds = MachineKinds()
    kinds.add(RecordedRoom.self, deadline: .deadline) { RecordedRoom(ScriptedSignaling.protocols) }
    return kinds
  }()

  private struct Scenario {
    let folder = try? MachineFolder()
    let path: String

    init(_ body: (VirtualRoom) -> Void) throws {
      let writer = try #require(folder).writer("room.take")
      body(VirtualRoom(writer: writer))
      _ = try writer.finish()
      path = try #require(folder).file("room.take")
    }

    func replay() throws -> ReplayReport {
      try Replayer(
        path: path, kinds: RoomReplayTests.kinds, codecs: { LibraryCodecs() },
        peer: { PeerMachine(codecs: $0) }
      ).run()
    }
  }

  /// Runs a meeting with every input that a room accepts.
  private func meeting(_ room: VirtualRoom) {
    let camera = LocalMediaInfo(id: LocalMediaID(1), kind: .video)
    room.call(.publish([camera]))
    room.call(.connect(RoomJoin(room: "room-1", displayName: "Me")))
    room.open()
    let anna = PublishedMedia(id: MediaID(1), owner: "anna", kind: .video, profiles: [.low, .high])
    let voice = PublishedMedia(id: MediaID(2), owner: "anna", kind: .audio)
    room.serve(
      .joined(
        JoinedRoom(
          participant: "me",
          participants: [ParticipantInfo(id: "anna", displayName: "Anna", media: [anna, voice])])))
    room.serve(.open(.up, ICEServers()), .makeOffer(iceRestart: false), of: 1)
    room.serve(.localPublished(camera.id, MediaID(9)))
    room.confirm()
    room.wait(.milliseconds(300))
    room.call(.subscribe(MediaID(1)))
    room.confirm()
    room.serve(.open(.down, ICEServers()), of: 2)
    room.serve(.assigned(MediaID(1), ConnectionID(2), mid: "0"))
    room.report(.receiving(mid: "0", transceiver: 1), of: 2)
    room.report(.report(.candidate(nil)), of: 2)
    room.report(.report(.channelMessage(label: "signaling", .binary([1, 2, 255]))), of: 2)
    room.call(.setProfile(MediaID(1), .low))
    room.confirm()
    room.call(.sendMessage(UserMessage(targets: ["anna"], text: "hello \"you\"")))
    room.transport(.frame(.binary([0, 1, 254])))
    room.step(
      .response(
        RequestID(3),
        .answered(status: 201, fields: [HTTPField("Location", "/r/1")], body: [0xff, 0xfe])))
    room.step(.response(RequestID(4), .failed("nobody is there")))
    room.report(.report(.state(.failed)), of: 2)
    room.wait(.seconds(30))
    room.call(.requestScreenShare)
    room.report(.crashed(code: 9))
    room.call(.disconnect)
    room.serve(.ended(RoomEnding(.disconnected)))
  }

  @Test func aRoomReplaysIdentical() throws {
    let scenario = try Scenario(meeting)
    let report = try scenario.replay()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(report.peers == ["room"] && report.isComplete && report.steps > 40)
    let take = try TakeFile.openForQueries(scenario.path)
    #expect(try take.integer("SELECT count(*) FROM actor WHERE kind = 'room'") == 1)
  }

  @Test func theTimelineListsWhatHappened() throws {
    let scenario = try Scenario(meeting)
    let timeline = try Timeline(path: scenario.path)
    let told = timeline.entries.map(\.text)
    for line in [
      "room: connecting -> connected", #"connected {"participants":"me anna"}"#,
      "<- binary over websocket 1, 6 characters", "<- 201 over http 3, 82 characters",
      #"restartingICE {"connection":2,"attempt":1}"#,
      #"remoteSubscribed {"media":1,"connection":2,"track":1}"#,
      #"disconnected {"reason":"disconnected"}"#,
    ] {
      #expect(told.contains(line), "\(line)")
    }
  }

  @Test func aParticipantHasOneNumberOverAllConnections() throws {
    let scenario = try Scenario(meeting)
    let take = try TakeFile.openForQueries(scenario.path)
    let people = try take.prepare(
      "SELECT participant, id, name, local, left_ns IS NOT NULL FROM participant")
    var found: [String] = []
    while try people.step() {
      found.append(
        "\(people.integer(0)) \(people.text(1) ?? "") \(people.text(2) ?? "") \(people.integer(3)) "
          + "\(people.integer(4))")
    }
    #expect(found == ["1 me Me 1 1", "2 anna Anna 0 1"])
    let tracks = try take.prepare(
      "SELECT participant, peer, track, direction, kind, to_ns > from_ns FROM participant_track")
    found = []
    while try tracks.step() {
      found.append(
        "\(tracks.integer(0)) \(tracks.integer(1)) \(tracks.integer(2)) \(tracks.text(3) ?? "") "
          + "\(tracks.text(4) ?? "") \(tracks.integer(5))")
    }
    #expect(found == ["1 1 1 out video 1", "2 2 1 in video 1"])
  }

  @Test func aRoomThatDoesSomethingElseIsFoundAtItsFirstDifference() throws {
    let scenario = try Scenario(meeting)
    // Without any protocols, the room returns different outputs for the same inputs.
    var kinds = MachineKinds()
    kinds.add(RecordedRoom.self, deadline: .deadline) { RecordedRoom(SignalingProtocols()) }
    let report = try Replayer(
      path: scenario.path, kinds: kinds, codecs: { LibraryCodecs() },
      peer: { PeerMachine(codecs: $0) }
    ).run()
    guard case .diverged(let divergence) = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(divergence.peerLabel == "room" && divergence.input.contains("connect"))
  }

  @Test(arguments: [
    "UPDATE presence SET name = 'Eve' WHERE participant = 2 AND present",
    "UPDATE carriage SET participant = 1", "DELETE FROM carriage",
    "UPDATE signaling SET message = message || ' ' WHERE direction = 'in'",
  ])
  func alterationsAreFound(sql: String) throws {
    let scenario = try Scenario(meeting)
    try SQLiteConnection(path: scenario.path, mode: .readWrite).execute(sql)
    guard case .altered = try scenario.replay().verdict else {
      Issue.record("\(sql)")
      return
    }
  }

  @Test func aRoomIsSteppedThrough() throws {
    let scenario = try Scenario(meeting)
    let walk = try TapeWalk(
      path: scenario.path, skipsCodecs: false, kinds: Self.kinds, codecs: { LibraryCodecs() })
    let condition = try StepCondition("event connected")
    var isThere = false
    while let step = try walk.advance() {
      #expect(!step.lines.isEmpty)
      guard walk.meets(condition) else { continue }
      isThere = true
      let snapshot = try #require(
        walk.states.first { $0.snapshot is RoomSnapshot }?.snapshot as? RoomSnapshot)
      #expect(snapshot.state == .connected && snapshot.participants.map(\.id) == ["me", "anna"])
      #expect(snapshot.signaling.contains { $0.name == "open" && $0.value == "true" })
    }
    #expect(isThere && walk.divergence == nil)
  }
}
