import Media
import Peer
import Tape
import Testing
import Wire

@testable import Replay

@Suite struct DivergenceTests {
  /// The first step of the shared call whose output row fits, and its divergence when it is bent.
  private func divergence(where sql: String, _ bend: (Int) -> Bend) throws -> Divergence {
    let call = try RecordedCall.shared.get()
    let connection = try TakeFile.open(call.path)
    let step = try #require(try connection.integer("SELECT step FROM \(sql) LIMIT 1"), "\(sql)")
    let report = try replay(call.path, bend: bend(Int(step)))
    guard case .diverged(let divergence) = report.verdict else {
      throw NoDivergence(report: report.description)
    }
    #expect(divergence.step == Int(step))
    #expect(report.steps == Int(step) - 1)
    #expect(divergence.command == "retake replay \(call.path) --until step:\(step)")
    return divergence
  }

  struct NoDivergence: Error {
    var report: String
  }

  /// Changes one byte of the first datagram in a step whose first byte is in a range (RFC 7983).
  private func flipping(_ offset: Int, of kind: Range<UInt8>, at step: Int) -> Bend {
    Bend(step: step) { outputs in
      var isDone = false
      return outputs.map { output in
        guard !isDone, case .datagram(var datagram) = output, kind.contains(datagram.bytes[0])
        else { return output }
        isDone = true
        datagram.bytes[offset] ^= 1
        return .datagram(datagram)
      }
    }
  }

  @Test(arguments: [
    (0, "STUN message type"), (9, "STUN transaction ID"), (20, "STUN USERNAME header"),
    (24, "STUN USERNAME"),
  ])
  func aSTUNByteIsNamedByItsField(_ offset: Int, _ field: String) throws {
    let found = try divergence(
      where: "packet WHERE protocol = 'stun' AND direction = 'out' AND bytes < x'0002'"
    ) { flipping(offset, of: 0..<4, at: $0) }
    #expect(found.layer == "ice")
    #expect(found.what.hasPrefix("packet out STUN Binding request"))
    #expect(found.field == "\(field), byte \(offset)")
    #expect(found.recorded != found.replayed)
  }

  @Test func aDTLSByteIsNamedByItsRecord() throws {
    let found = try divergence(where: "packet WHERE protocol = 'dtls' AND direction = 'out'") {
      flipping(20, of: 20..<64, at: $0)
    }
    #expect(found.layer == "dtls")
    #expect(found.what.contains("DTLS ClientHello"))
    #expect(found.field == "DTLS ClientHello body at 7, byte 20")
  }

  @Test func anRTPHeaderIsNamedByItsColumn() throws {
    let found = try divergence(
      where: "packet WHERE protocol = 'rtp' AND direction = 'out' AND sequence > 0"
    ) { flipping(3, of: 128..<192, at: $0) }
    #expect(found.layer == "rtp")
    #expect(found.what.contains("ssrc"))
    #expect(found.field == "sequence")
  }

  @Test func aProtectedByteIsNamedAsSuch() throws {
    let found = try divergence(
      where: "packet WHERE protocol = 'rtp' AND direction = 'out' AND size > 60"
    ) { flipping(50, of: 128..<192, at: $0) }
    #expect(found.field == "SRTP payload or authentication tag, byte 50")
  }

  @Test func aMissingOutputIsToldAsMissing() throws {
    let found = try divergence(where: "packet WHERE protocol = 'dtls' AND direction = 'out'") {
      Bend(step: $0) { _ in [] }
    }
    #expect(found.replayed == "nothing")
    #expect(found.notes.isEmpty)
  }

  @Test func anAddedOutputIsToldAsSuch() throws {
    let found = try divergence(where: "packet WHERE protocol = 'rtp' AND direction = 'out'") {
      Bend(step: $0) { $0 + [.event(.refused(layer: "x", reason: "y"))] }
    }
    #expect(found.what == "an output that was not recorded")
    #expect(found.recorded == "nothing")
    #expect(found.replayed == "event refused: y")
    #expect(found.layer == "x")
  }

  @Test func anotherStateIsNamedByItsMachine() throws {
    let found = try divergence(where: "state WHERE machine = 'dtls' AND to_state = 'connected'") {
      Bend(step: $0) { outputs in
        outputs.map { output in
          guard case .event(.state(var transition)) = output, transition.machine == "dtls" else {
            return output
          }
          transition.to = "failed"
          return .event(.state(transition))
        }
      }
    }
    #expect(found.layer == "dtls")
    #expect(found.field == "to_state")
    #expect(found.recorded == "connected")
    #expect(found.replayed == "failed")
    #expect(found.previous.count == Divergence.historyLength)
    #expect(found.description.contains("inputs before it"))
    #expect(found.json.contains("\"layer\" : \"dtls\""))
  }

  @Test func anotherDeadlineIsATimerDivergence() throws {
    let found = try divergence(where: "packet WHERE protocol = 'rtp' AND direction = 'out'") {
      Bend(step: $0, deadline: { $0.map { $0 + .milliseconds(1) } })
    }
    #expect(found.layer == "timer")
    #expect(found.field == "deadline")
  }

  @Test func moreRandomnessIsAnEntropyDivergence() throws {
    let found = try divergence(where: "packet WHERE protocol = 'rtp' AND direction = 'out'") {
      Bend(step: $0, entropy: 8)
    }
    #expect(found.layer == "entropy")
    #expect(UInt64(found.replayed).map { $0 - 8 } == UInt64(found.recorded))
  }

  @Test func anyBytesHaveADescription() {
    let entropy = Entropy(seed: [4]).stream("packets")
    let starts: [[UInt8]] = [
      [0, 1, 0, 12, 0x21, 0x12, 0xa4, 0x42], [22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 1],
      [0x90, 96], [0x80, 200], [],
    ]
    for round in 0..<40_000 {
      let start = starts[round % starts.count]
      var bytes = start + entropy.bytes(Int(entropy.integer(below: 60)))
      if !bytes.isEmpty { bytes[Int(entropy.integer(below: UInt64(bytes.count)))] = entropy.byte() }
      let text = PacketText(bytes)
      #expect(!text.title.isEmpty)
      _ = PacketText.field(of: bytes, at: Int(entropy.integer(below: 70)))
    }
  }
}
