import Foundation
import Media
import Peer
import Replay
import Tape
import Testing

struct MinimiserTests {
  @Test func onlyThePeerThatDiffersAndItsStepsUpToThereAreLeft() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    let output = folder.file("short.take")
    let summary = try Minimiser.run(path: path, output: output, makePeer: OtherPeer.blind)
    #expect(summary.divergence.layer == "media")
    #expect(summary.steps < summary.recordedSteps / 2)
    #expect(summary.bytes < summary.recordedBytes)
    // The real stack replays the minimised take, whose last step is the step that differed.
    let report = try Replayer(
      path: output, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) }
    ).run()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(report.steps == summary.steps)
    #expect(report.peers.count == 1)
    #expect(try TapeAudit.run(path: output).alteration == nil)
  }

  @Test func nothingIsMadeOfATakeThatDoesNotFail() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 200)
    #expect(throws: Minimiser.Refusal.identical) {
      _ = try Minimiser.run(path: path, output: folder.file("short.take"))
    }
    try SQLiteConnection(path: path, mode: .readWrite).execute("UPDATE peer SET label = 'x'")
    let refusal = #expect(throws: Minimiser.Refusal.self) {
      _ = try Minimiser.run(path: path, output: folder.file("short.take"))
    }
    guard case .altered? = refusal else {
      Issue.record("\(String(describing: refusal))")
      return
    }
    #expect(!FileManager.default.fileExists(atPath: folder.file("short.take")))
  }
}
