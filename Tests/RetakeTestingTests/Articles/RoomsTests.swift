import Foundation
import Retake
import Testing

/// The code in the article "Rooms".
@Suite(.timeLimit(.minutes(10))) struct RoomsTests {
  private final class Listener: RoomDelegate {}

  private func takePart(
    _ url: String, _ session: Session, _ delegate: any RoomDelegate, _ options: LocalMediaOptions,
    _ view: RenderView
  ) async throws {
    let room = Room(.janus(url), session: session, delegate: delegate)
    let updates = room.updates
    try await room.publish(LocalMedia(options: options))
    try await room.connect(roomId: "1234")
    for await update in updates {
      if case .remoteVideoPublished(_, let video) = update {
        video.attach(view)
        try await room.subscribe(videoId: video.id)
      }
    }
  }

  @Test func aMissingServerIsAnErrorAndTheTakeReplays() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/room-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var options = Session.Options()
    options.takePath = folder + "/room.take"
    let session = try Session(options)
    var media = LocalMediaOptions()
    media.source = .bypass
    // The discard protocol's port has no listener.
    await #expect(throws: RoomError.self) {
      try await takePart(
        "ws://127.0.0.1:9/", session, Listener(), media, RenderView(DigestRenderer()))
    }
    try await session.finish()
    let take = try Take.open(folder + "/room.take")
    #expect(try await take.replay().isIdentical)
    let ends = try take.query(
      "SELECT count(*) FROM event WHERE type = 'disconnected'", as: Int.self
    ).all()
    #expect(ends == [1])
  }
}
