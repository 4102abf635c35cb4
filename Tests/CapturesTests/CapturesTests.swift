import Foundation
import Media
import Peer
import Replay
import Tape
import Testing

/// Every captured session is a regression test: the stack must do again what it did.
@Suite struct CapturesTests {
  static let folder = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Captures")

  static var takes: [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return names.filter { $0.hasSuffix(".take") }.sorted()
  }

  @Test func thereAreCaptures() { #expect(CapturesTests.takes.count >= 6) }

  @Test(arguments: takes)
  func aCaptureReplaysIdentically(name: String) throws {
    let path = CapturesTests.folder.appendingPathComponent(name).path
    let toolchain = try Toolchain.current(for: path)
    var options = Replayer.Options()
    options.toolchain = toolchain
    let header = try TapeReader(path: path).header
    let differences = toolchain.differences(from: header.toolchain).map(\.part)

    if !differences.isEmpty {
      // What depends on another toolchain cannot be compared here, and the test says so.
      let isSameEngine = !differences.contains("openssl") && !differences.contains("srtp")
      print("\(name): made with other \(differences.joined(separator: ", "))")
      guard isSameEngine, header.keepsMedia else {
        print("\(name): only the file's own digests are checked")
        let audit = try TapeAudit.run(path: path)
        #expect(audit.alteration == nil)
        #expect(audit.isComplete)
        return
      }
      print("\(name): decoded media is not compared")
      options.skipsCodecs = true
    }
    let replayer = try Replayer(
      path: path, options: options, codecs: { LibraryCodecs() },
      peer: { PeerMachine(codecs: $0) })
    let report = try replayer.run()
    #expect(report.isComplete)
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(report.steps > 100)
  }
}
