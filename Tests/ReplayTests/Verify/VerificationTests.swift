import Foundation
import FoundationXML
import Peer
import Tape
import Testing
import Wire

@testable import Replay

struct VerificationTests {
  private func pin(_ path: String, _ mode: Pin.Mode = .meaning) throws {
    try Pin(mode: mode, measures: Measures(path: path)).write(forTake: path)
  }

  @Test func aGoodTakePassesExactlyAndByMeaning() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    for mode in Pin.Mode.allCases {
      let result = TakeVerification.run(path: path, mode: mode)
      #expect(result.isPassed, "\(result.details)")
      #expect(result.mode == mode && result.steps > 200)
      #expect(result.durationNanoseconds >= 1_500_000_000)
    }
    #expect(TakeVerification.run(path: path).mode == .exact)
    try pin(path)
    #expect(TakeVerification.run(path: path).mode == .meaning)
    #expect(TakeVerification.run(path: path).isPassed)
  }

  @Test func aDifferenceThatMeansNothingFailsOnlyExactly() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    try pin(path)
    // If timers are a millisecond late, every packet's time changes, but the call means the same.
    let late: TakeVerification.MakePeer = { LatePeer($0, delay: .milliseconds(1)) }
    let exact = TakeVerification.run(path: path, mode: .exact, makePeer: late)
    #expect(exact.kind == "timer")
    #expect(exact.command == "retake replay \(path)")
    let meaning = TakeVerification.run(path: path, makePeer: late)
    #expect(meaning.isPassed, "\(meaning.details)")
  }

  @Test func anImportantDifferenceIsNamedByTheMissedResult() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    try pin(path)
    let result = TakeVerification.run(path: path, makePeer: OtherPeer.blind)
    guard case .missed(let misses) = result.outcome else {
      Issue.record("\(result.details)")
      return
    }
    let names = misses.map(\.check.name)
    #expect(names.contains("peer 1 track 2 video in: frames"))
    #expect(names.allSatisfy { $0.contains("video in") }, "\(names)")
    #expect(result.line.hasPrefix("FAILED"))
    #expect(result.summary.contains("was pinned"))
    #expect(result.kind == "meaning")
  }

  @Test func linesRemovedFromAPinAreNotChecked() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    var pin = Pin(mode: .meaning, measures: try Measures(path: path))
    pin.checks.removeAll { $0.name.contains("video in") }
    try pin.write(forTake: path)
    #expect(TakeVerification.run(path: path, makePeer: OtherPeer.blind).isPassed)
  }

  @Test func anAlteredTakeFailsInEitherMode() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 300)
    try SQLiteConnection(path: path, mode: .readWrite)
      .execute("UPDATE state SET to_state = 'x' WHERE row = (SELECT max(row) FROM state)")
    for mode in Pin.Mode.allCases {
      #expect(TakeVerification.run(path: path, mode: mode).kind == "altered")
    }
  }

  @Test func anotherToolchainIsReportedAndComparedAsFarAsItGoes() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 600)
    for part in ["vpx", "openssl", "srtp"] {
      let other = folder.file("\(part).take")
      try recast(path, as: other) { toolchain in
        switch part {
        case "vpx": toolchain.vpx = "v0"
        case "srtp": toolchain.srtp = "1.4"
        default: toolchain.openssl = "0.9"
        }
      }
      let result = TakeVerification.run(path: other)
      #expect(result.isPassed, "\(result.line)")
      #expect(result.notes.count == (part == "vpx" ? 0 : 1), "\(result.notes)")
      #expect(result.leftOut.count == 1 && !result.isWhole)
      #expect(result.leftOut.first?.contains("other \(part)") == true)
      #expect(result.line.hasPrefix("partly"))
      // Everything that can still be compared is compared.
      #expect(!TakeVerification.run(path: other, makePeer: OtherPeer.renaming).isPassed)
    }
  }

  @Test func anotherVersionOfOpenSSLThatBehavesAlikeIsTheSame() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 300)
    let other = folder.file("other.take")
    try recast(path, as: other) { toolchain in
      toolchain.openssl = "9.9" + toolchain.openssl.drop { $0 != "," }
    }
    let result = TakeVerification.run(path: other)
    #expect(result.isPassed && result.isWhole && result.notes == [], "\(result.line)")
    #expect(!TakeVerification.run(path: other, makePeer: OtherPeer.renaming).isPassed)
  }

  @Test func codecsThatGiveTheSameResultsOnAnotherProcessorAreNotSkipped() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 600)
    let other = folder.file("other.take")
    try recast(path, as: other) { $0.cpu = "x86_64 abacus" }
    let result = TakeVerification.run(path: other, isStrict: true)
    #expect(result.isPassed && result.isWhole, "\(result.line)")
    #expect(result.line.hasPrefix("passed"))
    // The codecs' output is compared.
    let changed = TakeVerification.run(path: path, makePeer: quieter)
    #expect(!changed.isPassed)
  }

  @Test func aCodecThatGivesOtherResultsOnAnotherProcessorIsNamed() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 600)
    let other = folder.file("other.take")
    try recast(path, as: other) { $0.cpu = "x86_64 abacus" }
    let result = TakeVerification.run(path: other, makePeer: quieter)
    #expect(result.isPassed && !result.isWhole, "\(result.line)")
    #expect(result.leftOut.count == 1)
    #expect(result.leftOut.first?.hasPrefix("opus gives different results") == true)
    #expect(TakeVerification.run(path: other, isStrict: true, makePeer: quieter).kind == "partial")
    // A different processor does not excuse a stack that differs.
    let renamed = TakeVerification.run(path: other, makePeer: OtherPeer.renaming)
    #expect(renamed.kind == "dtls")
  }

  /// The stack with an Opus decoder whose samples are a little quieter.
  private let quieter: TakeVerification.MakePeer = { PeerMachine(codecs: QuieterCodecs($0)) }

  @Test func partialPassesAreCountedAndFailOnRequest() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 300)
    let other = folder.file("other.take")
    try recast(path, as: other) { $0.vpx = "v0" }
    let run = VerificationRun(takes: [path, other], jobs: 1)
    #expect(run.failures.isEmpty && run.inPart.map(\.path) == [other])
    #expect(run.totals.hasPrefix("2 takes, 0 failed, 1 replayed in part, "))
    #expect(run.json.contains("\"inPart\":1"))
    #expect(run.junit.contains("skipped=\"1\""))
    #expect(run.junit.contains("<skipped message=\"made with"))
    let strict = VerificationRun(takes: [path, other], isStrict: true, jobs: 1)
    #expect(strict.failures.map(\.path) == [other])
    #expect(strict.failures.first?.kind == "partial")
    #expect(strict.failures.first?.command == "retake verify --strict \(other)")
    #expect(strict.totals.hasPrefix("2 takes, 1 failed, "))
  }

  @Test func withoutMediaOnlyTheDigestsOfAnotherCodecsTakeAreChecked() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 300, keepsMedia: false)
    let other = folder.file("other.take")
    try recast(path, as: other) { $0.vpx = "v0" }
    let result = TakeVerification.run(path: other, makePeer: OtherPeer.renaming)
    #expect(result.isPassed && result.leftOut.count == 1)
    #expect(result.leftOut.first?.contains("only its digests are checked") == true)
  }

  // MARK: Many takes

  @Test func aFolderIsRunInParallelAndReportedInOrder() throws {
    let folder = try Folder()
    try FileManager.default.createDirectory(
      atPath: folder.file("sub"), withIntermediateDirectories: true)
    let good = try folder.record("sub/b.take", milliseconds: 300)
    try FileManager.default.copyItem(atPath: good, toPath: folder.file("a.take"))
    try Data("no take <&> at all".utf8).write(to: URL(fileURLWithPath: folder.file("c & d.take")))
    let takes = try VerificationRun.takes(in: [folder.path, good])
    #expect(takes == ["a.take", "c & d.take", "sub/b.take"].map(folder.file))
    let run = VerificationRun(takes: takes, jobs: 3)
    #expect(run.results.map(\.isPassed) == [true, false, true])
    #expect(run.results.map(\.path) == takes)
    #expect(run.totals.hasPrefix("3 takes, 1 failed"))
    #expect(run.json.contains("\"failed\":1"))
    let document = try XMLCheck(run.junit)
    #expect(document.cases == ["a.take", "c & d.take", "b.take"])
    #expect(document.failed == ["c & d.take"])
    #expect(document.counts == ["tests": "3", "failures": "0", "errors": "1"])
  }

  @Test func pathsWithoutTakesAreErrors() throws {
    let folder = try Folder()
    for path in [folder.path, folder.file("none.take")] {
      let error = #expect(throws: TapeError.self) { _ = try VerificationRun.takes(in: [path]) }
      #expect(error?.kind == .missing)
    }
  }

  @Test func aReportSaysHowToReproduceItAndWhatItMeans() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 400)
    let result = TakeVerification.run(path: path, makePeer: OtherPeer.renaming)
    let report = result.report(meaning: try result.meaning())
    for words in [
      "failed", "layer dtls", "to_state", "retake replay \(path)", "retake minimise \(path)",
      "within tolerance",
    ] {
      #expect(report.contains(words), "\(words) in \(report)")
    }
  }
}

/// Parses JUnit XML the way CI servers do.
private final class XMLCheck: NSObject, XMLParserDelegate {
  var cases: [String] = []
  var failed: [String] = []
  var counts: [String: String] = [:]

  init(_ text: String) throws {
    super.init()
    let parser = XMLParser(data: Data(text.utf8))
    parser.delegate = self
    try #require(parser.parse(), "\(text)")
  }

  func parser(
    _ parser: XMLParser, didStartElement element: String, namespaceURI: String?,
    qualifiedName: String?, attributes: [String: String]
  ) {
    switch element {
    case "testcase": cases.append(attributes["name"] ?? "")
    case "failure", "error": failed.append(cases.last ?? "")
    case "testsuite":
      counts = attributes.filter { ["tests", "failures", "errors"].contains($0.key) }
    default: break
    }
  }
}
