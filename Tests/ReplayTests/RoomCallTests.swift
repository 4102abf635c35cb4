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

/// A participant of one of Retake's own rooms with its connections, in virtual time.
@Suite struct RoomCallTests {
  /// Records a meeting in which one participant joins late and leaves again.
  private func meet(_ path: String) throws -> [RoomEvent] {
    var link = LinkSettings()
    link.delay = .milliseconds(20)
    link.lossPerMille = 30
    let room = try VirtualRoomCall(
      path: path, seed: 5, links: [link, link], configuration: PeerConfiguration(),
      signalingDelay: .milliseconds(20), label: "meeting", tags: ["site": "lima"])
    let ben = VirtualRoomCall.Guest(
      id: "ben", name: "Ben",
      media: [RoomMedia(number: 40, kind: .audio), RoomMedia(number: 41, kind: .video)])
    let carl = VirtualRoomCall.Guest(
      id: "carl", name: "Carl", media: [RoomMedia(number: 50, kind: .audio)])
    room.call(.publish([LocalMediaInfo(id: LocalMediaID(1), kind: .audio)]))
    room.join("Anna", with: [ben])
    room.at(.milliseconds(600)) { room in
      let videos = room.snapshot.participants.flatMap(\.media).filter { $0.kind == .video }
      for video in videos { room.call(.subscribe(video.id)) }
    }
    room.at(.milliseconds(1_000)) { $0.enter(carl) }
    room.at(.milliseconds(2_000)) { $0.leave("carl", .timedOut) }
    room.run(until: .zero + .milliseconds(2_500))
    _ = try room.finish()
    return room.events
  }

  @Test func aMeetingIsRecordedAndReplaysIdentical() throws {
    let folder = try MachineFolder()
    let path = folder.file("room.take")
    let events = try meet(path).map(\.name)
    for name in ["connected", "localMediaPublished", "participantEntered", "participantLeft"] {
      #expect(events.contains(name), "\(events)")
    }
    #expect(!events.contains("failed") && events.last == "disconnected", "\(events)")
    let report = try Replayer(
      path: path, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) }
    ).run()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(report.peers == ["room up 1", "room down 2", "room"] && report.isComplete)

    let take = try TakeFile.openForQueries(path)
    let tracks = try take.prepare(
      """
      SELECT id, direction, kind, count(DISTINCT track) FROM participant_track
      GROUP BY id, direction, kind ORDER BY id, kind
      """)
    var found: [String] = []
    while try tracks.step() {
      found.append((0..<3).map { tracks.text($0) ?? "" }.joined(separator: " "))
    }
    #expect(found == ["ben in audio", "ben in video", "carl in audio", "me out audio"])
    let frames = "SELECT count(*) FROM frame WHERE direction"
    #expect(try take.integer("\(frames) = 'in' AND kind = 'audio'") ?? 0 > 100)
    #expect(try take.integer("\(frames) = 'in' AND kind = 'video'") ?? 0 > 10)
    #expect(try take.integer("\(frames) = 'out' AND kind = 'audio'") ?? 0 > 80)
    #expect(try take.integer("SELECT count(*) FROM lost_packet") ?? 0 > 0)
  }
}
