import Foundation
import Lab
import Media
import Peer
import Queries
import Tape
import Testing
import Wire

@testable import Replay

struct ReplayTests {
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

  /// The encoders' output is recovered from the sent packets.
  @Test(arguments: [0, 80]) func aTakeWithoutMediaCanSkipItsCodecsToo(lossPerMille: Int) throws {
    var link = LinkSettings()
    link.lossPerMille = UInt64(lossPerMille)
    link.jitter = .milliseconds(Int64(lossPerMille) / 2)
    let call = try RecordedCall(seed: 6, link: link, seconds: 3, keepsMedia: false)
    #expect(isIdentical(try replay(call.path)))
    var options = Replayer.Options()
    options.skipsCodecs = true
    let report = try replay(call.path, options)
    #expect(isIdentical(report), "\(report)")
    // Only frames waiting in the pacer at the call's end were not sent.
    #expect(report.framesNotSent < 5, "\(report)")
  }

  @Test func aTakeWithoutMediaAndKeysCannotSkipItsCodecs() throws {
    let call = try RecordedCall(seed: 6, seconds: 1, keepsMedia: false)
    let bare = call.path + ".bare"
    try FileManager.default.copyItem(atPath: call.path, toPath: bare)
    defer { try? FileManager.default.removeItem(atPath: bare) }
    try SQLiteConnection(path: bare, mode: .readWrite).execute(
      "DELETE FROM event WHERE type = 'keylog'")
    var options = Replayer.Options()
    options.skipsCodecs = true
    let error = #expect(throws: TapeError.self) { try replay(bare, options) }
    #expect(error?.reason.contains("without its media and without the keys") == true)
  }

  /// The frames recovered from a call's packets equal the frames that a take with media stores;
  /// unsent frames become zeros.
  @Test func packetsGiveTheFramesThatWereSent() throws {
    let kept = try RecordedCall(seed: 6, seconds: 2)
    let bare = try RecordedCall(seed: 6, seconds: 2, keepsMedia: false)
    let sent = try SentFrames(path: bare.path)
    let frames = try TakeFile.open(kept.path).prepare(
      """
      SELECT peer, ssrc, rtp_time, size, at_ns, bytes FROM frame WHERE outcome = 'encoded'
      ORDER BY row
      """)
    var count = 0
    while try frames.step() {
      let (peer, ssrc, time, size, at, bytes) = frames.values(
        UInt32.self, UInt32.self, UInt32.self, Int.self, Instant.self, [UInt8].self)
      var wanted = SentFrames.Wanted(peer: peer, ssrc: ssrc, rtpTime: time, size: size, at: at)
      let found = sent.bytes(of: wanted)
      #expect(found.isWhole && found.bytes == bytes)
      wanted.rtpTime += 1
      let none = sent.bytes(of: wanted)
      #expect(!none.isWhole && none.bytes == [UInt8](repeating: 0, count: size))
      count += 1
    }
    #expect(count > 100)
  }

  @Test func framesThatWereNotSentAreReported() throws {
    let call = try RecordedCall(seed: 6, seconds: 1)
    var report = try replay(call.path)
    report.framesNotSent = 2
    report.firstFrameNotSent = 12
    #expect(report.description.contains("2 frames were never sent completely (step 12 and later)"))
    #expect(report.json.contains("\"framesNotSent\" : 2"))
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
