import Media
import MediaFiles
import Peer
import Testing
import Wire

@testable import Live

/// Sends files over a connection.
@Suite(.timeLimit(.minutes(10))) struct FileFeedTests {
  /// Media whose file is bad from the start.
  private struct Bad: TimedMedia {
    mutating func next() throws(MediaFileError) -> (
      media: MediaContent, nanoseconds: Int64
    )? {
      throw MediaFileError(path: "clip.h264", reason: "bad")
    }
  }

  @Test func aFeedThatFailsIsReportedOnce() async throws {
    let call = try LoopbackCall()
    let video = try await call.caller.addTrack(.video, source: .application)
    try await call.connect()
    let (told, continuation) = AsyncStream<MediaFileError>.makeStream()
    let feeds = FileFeeds { continuation.yield($0) }
    feeds.start(Bad(), on: video.id, of: call.caller)
    var errors = told.makeAsyncIterator()
    #expect(await errors.next() == MediaFileError(path: "clip.h264", reason: "bad"))
    #expect(feeds.errors.count == 1)
    try await call.session.finish()
  }
}
