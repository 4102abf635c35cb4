import Media
import Peer
import Replay
import Tape
import Testing
import Wire

struct RedriveTests {
  private func redrive(
    _ path: String, to output: String, skipsCodecs: Bool = false,
    peer: @escaping (any CodecFactory) -> any ReplayedPeer = { PeerMachine(codecs: $0) }
  ) throws -> Redrive.Summary {
    var options = Redrive.Options()
    options.skipsCodecs = skipsCodecs
    return try Redrive(
      path: path, output: output, options: options, codecs: { LibraryCodecs() }, peer: peer
    ).run()
  }

  @Test func theSameStackGivesTheSameTakeAgain() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", lossPerMille: 50)
    let summary = try redrive(path, to: folder.file("again.take"))
    #expect(summary.firstDifference == nil)
    #expect(summary.timersLeftOut == 0 && summary.timersAdded == 0)
    #expect(summary.steps == summary.recordedSteps && summary.steps > 200)
    #expect(try digest(of: folder.file("again.take")) == digest(of: path))
  }

  @Test func withoutCodecsAllButTheDigestsOfDecodedMediaIsTheSame() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    let summary = try redrive(path, to: folder.file("again.take"), skipsCodecs: true)
    #expect(summary.firstDifference == nil)
    #expect(try digest(of: folder.file("again.take")) != digest(of: path))
    #expect(try Measures(path: folder.file("again.take")) == Measures(path: path))
  }

  @Test func anotherStackContinuesToTheEndWithItsOwnTimers() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    let summary = try redrive(path, to: folder.file("late.take")) {
      LatePeer($0, delay: .milliseconds(3))
    }
    #expect(summary.firstDifference != nil)
    #expect(summary.timersLeftOut > 20 && summary.timersAdded > 20)
    // The result is a normal take, which this stack replays unchanged.
    let replayer = try Replayer(
      path: folder.file("late.take"), codecs: { LibraryCodecs() },
      peer: { LatePeer($0, delay: .milliseconds(3)) })
    let report = try replayer.run()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(report.steps == summary.steps)
  }

  @Test func thePacketsOfATakeWithoutMediaStandInForCodecs() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 400, keepsMedia: false)
    let summary = try redrive(path, to: folder.file("again.take"), skipsCodecs: true)
    #expect(summary.firstDifference == nil)
  }

  @Test func anExistingFileIsNotOverwritten() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 100)
    let error = #expect(throws: TapeError.self) { _ = try redrive(path, to: path) }
    #expect(error?.reason.contains("exists") == true)
  }
}
