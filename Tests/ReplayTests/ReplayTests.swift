import Foundation
import Lab
import Media
import Peer
import Queries
import Tape
import Testing
import Wire

@testable import Replay

@Suite struct ReplayTests {
  private func isIdentical(_ report: ReplayReport) -> Bool {
    if case .identical = report.verdict { return true }
    return false
  }

  @Test(arguments: [false, true])
  func aCallReplaysBitForBit(_ skipsCodecs: Bool) throws {
    let call = try RecordedCall.shared.get()
    var options = Replayer.Options()
    options.skipsCodecs = skipsCodecs
    let report = try replay(call.path, options)
    #expect(isIdentical(report), "\(report)")
    #expect(report.steps == Int(try TakeInfo(path: call.path).steps))
    #expect(report.peers == ["caller", "callee"])
    #expect(report.isComplete)
    #expect(report.description.contains("identical"))
    #expect(report.json.contains("\"result\" : \"identical\""))
  }

  @Test(arguments: [false, true])
  func aBadConnectionReplaysBitForBit(_ skipsCodecs: Bool) throws {
    var link = LinkSettings()
    link.lossPerMille = 80
    link.jitter = .milliseconds(40)
    link.duplicatesPerMille = 20
    let call = try RecordedCall(seed: 9, link: link, seconds: 4)
    var options = Replayer.Options()
    options.skipsCodecs = skipsCodecs
    let report = try replay(call.path, options)
    #expect(isIdentical(report), "\(report)")
  }

  @Test func aTakeWithoutMediaReplaysAndCannotSkipItsCodecs() throws {
    let call = try RecordedCall(seed: 6, seconds: 1, keepsMedia: false)
    #expect(isIdentical(try replay(call.path)))
    var options = Replayer.Options()
    options.skipsCodecs = true
    let error = #expect(throws: TapeError.self) { try replay(call.path, options) }
    #expect(error?.reason.contains("without its media") == true)
  }

  @Test func aReplayStopsJustBeforeTheStepOrTime() throws {
    let call = try RecordedCall.shared.get()
    var options = Replayer.Options()
    options.until = .step(100)
    var report = try replay(call.path, options)
    #expect(report.steps == 99)
    #expect(report.stoppedEarly)
    #expect(report.description.contains("stopped before step 100"))
    options.until = .time(.zero + .milliseconds(500))
    report = try replay(call.path, options)
    #expect(report.durationNanoseconds <= 500_000_000)
    #expect(report.durationNanoseconds > 400_000_000)
  }

  @Test func aTakeThatWasCutShortReplaysToItsEnd() throws {
    let call = try RecordedCall.shared.get()
    let path = try call.copy("cut")
    let connection = try SQLiteConnection(path: path, mode: .readWrite)
    try connection.execute("DELETE FROM ending")
    let report = try replay(path)
    #expect(isIdentical(report))
    #expect(!report.isComplete)
    #expect(report.description.contains("cut short"))
  }

  @Test func anotherToolchainIsReportedBeforeTheReplay() throws {
    let call = try RecordedCall.shared.get()
    var options = Replayer.Options()
    options.toolchain = Toolchain(openssl: "3.5", cpu: "here")
    let replayer = try Replayer(
      path: call.path, options: options, codecs: { LibraryCodecs() },
      peer: { PeerMachine(codecs: $0) })
    #expect(
      replayer.toolchainDifferences == [
        ToolchainDifference(part: "openssl", recorded: "3.0", present: "3.5")
      ])
  }

  @Test func anAlteredFileIsNotBlamedOnTheStack() throws {
    let call = try RecordedCall.shared.get()
    let path = try call.copy("altered")
    let connection = try SQLiteConnection(path: path, mode: .readWrite)
    let row = try #require(
      try connection.integer(
        "SELECT row FROM packet WHERE direction = 'out' AND protocol = 'rtp' LIMIT 1 OFFSET 20"))
    try connection.execute(
      "UPDATE packet_store SET sequence = (sequence + 1) % 32768 WHERE row = \(row)")
    let report = try replay(path)
    guard case .altered(let alteration) = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(alteration.step == Int(row >> 16))
    #expect(report.steps == alteration.step - 1)
    #expect(alteration.expectation?.contains("sequence: the file has") == true)
    #expect(report.json.contains("\"result\" : \"altered\""))
  }
}
