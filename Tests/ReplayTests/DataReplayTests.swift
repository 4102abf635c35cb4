import Foundation
import Lab
import Media
import Peer
import SCTP
import Tape
import Testing
import Wire

@testable import Replay

struct DataReplayTests {
  /// Records a call with data channels over a lossy path; returns the take's path.
  private func record(keepsMedia: Bool, in folder: String) throws -> String {
    let path = folder + "/data.take"
    var link = LinkSettings()
    link.lossPerMille = 50
    link.jitter = .milliseconds(10)
    let recording = try RecordedVirtualCall(
      path: path, seed: 7, links: [link, link], labels: ["caller", "callee"],
      keepsMedia: keepsMedia)
    let call = recording.call
    call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    call.call(
      0, .createDataChannel(DataChannelInit(label: "fast", ordered: false, maxRetransmits: 0)))
    _ = call.negotiate()
    recording.run(for: .seconds(3))
    for number in 0..<60 {
      let message = DataMessage(
        channel: UInt32(number % 2), isBinary: number % 3 == 0,
        bytes: [UInt8](repeating: UInt8(number) + 32, count: number * 200))
      call.send(number / 2 % 2, message)
    }
    recording.run(for: .seconds(5))
    call.call(1, .closeDataChannel(0))
    // This message is rejected, but recorded nevertheless.
    call.send(1, DataMessage(channel: 0, isBinary: true, bytes: [1]))
    recording.run(for: .seconds(2))
    _ = try recording.finish()
    return path
  }

  private func inFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
    let folder = FileManager.default.temporaryDirectory.path + "/data-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    return try body(folder)
  }

  @Test func aDivergenceNamesTheContentOfADataRecord() throws {
    try inFolder { folder in
      let path = try record(keepsMedia: true, in: folder)
      let step = try #require(
        try TakeFile.open(path).integer(
          """
          SELECT step FROM packet WHERE direction = 'out' AND protocol = 'dtls'
            AND bytes >= x'17' AND bytes < x'18' ORDER BY step LIMIT 1
          """))
      let bend = Bend(
        step: Int(step),
        outputs: { outputs in
          outputs.map { output in
            guard case .datagram(var datagram) = output, datagram.bytes[0] == 23 else {
              return output
            }
            datagram.bytes[40] ^= 1
            return .datagram(datagram)
          }
        })
      guard case .diverged(let found) = try replay(path, bend: bend).verdict else {
        Issue.record("nothing was noticed")
        return
      }
      let carried = try #require(found.fields.first { $0.name == "carries" })
      #expect(carried.recorded == "SCTP INIT")
      #expect(carried.replayed == "not decrypted by the recorded keys")
    }
  }

  @Test(arguments: [true, false])
  func dataChannelsReplayBitForBit(keepsMedia: Bool) throws {
    try inFolder { folder in
      let path = try record(keepsMedia: keepsMedia, in: folder)
      let report = try replay(path)
      guard case .identical = report.verdict else {
        Issue.record("\(report)")
        return
      }
      let connection = try TakeFile.open(path)
      func count(_ what: String) throws -> Int64 { try connection.integer(what) ?? 0 }
      #expect(try count("SELECT count(*) FROM message WHERE direction = 'out'") == 61)
      #expect(try count("SELECT count(*) FROM message WHERE error IS NOT NULL") == 1)
      #expect(try count("SELECT count(*) FROM message WHERE direction = 'in'") > 45)
      #expect(try count("SELECT count(*) FROM channel WHERE state = 'closed'") == 4)
      #expect(try count("SELECT count(*) FROM state WHERE machine = 'sctp'") == 6)
    }
  }

  @Test func aMessageThatDiffersIsNamed() throws {
    try inFolder { folder in
      let path = try record(keepsMedia: true, in: folder)
      let connection = try TakeFile.open(path)
      let step = try connection.integer(
        "SELECT step FROM message WHERE direction = 'in' AND size > 0 ORDER BY row LIMIT 1")
      let bend = Bend(
        step: Int(try #require(step)),
        outputs: { outputs in
          outputs.map { output in
            guard case .event(.message(var message)) = output else { return output }
            message.bytes[0] ^= 1
            return .event(.message(message))
          }
        })
      let report = try replay(path, bend: bend)
      guard case .diverged = report.verdict else {
        Issue.record("\(report)")
        return
      }
      #expect(report.description.contains("message in on data channel"))
      #expect(report.description.contains("sctp"))
    }
  }
}
