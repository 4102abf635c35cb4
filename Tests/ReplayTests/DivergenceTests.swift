import Media
import Peer
import Tape
import Testing
import Wire

@testable import Replay

struct DivergenceTests {
  /// Changes the shared call's first step that has a matching output row; returns the divergence
  /// that the replay reports.
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

  /// Changes one byte of a step's first datagram whose first byte is in a range (RFC 7983).
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

  /// The fields of both messages are decoded, and the field that differs locates the change.
  @Test(arguments: [
    (24, 0..<4, "STUN USERNAME"), (74, 0..<4, "STUN MESSAGE-INTEGRITY"),
    (60, 20..<23, "record 1 body"), (50, 128..<192, "SRTP payload and tag"),
    (16, 128..<192, "extension 4"), (4, 128..<192, "timestamp"),
  ])
  func theFieldThatDiffersIsMarked(_ offset: Int, _ kind: Range<Int>, _ name: String) throws {
    let types = [0: "stun", 20: "dtls", 128: "rtp"]
    let type = try #require(types[kind.lowerBound])
    let bytes = UInt8(kind.lowerBound)..<UInt8(kind.upperBound)
    let found = try divergence(
      where: "packet WHERE protocol = '\(type)' AND direction = 'out' AND size > 70"
    ) { flipping(offset, of: bytes, at: $0) }
    #expect(found.fields.filter { !$0.isEqual }.map(\.name).contains(name), "\(found)")
    #expect(found.what.contains(" to 10.0.0."))
    // The number of outputs is unchanged.
    #expect(found.inside.allSatisfy { $0.name != "outputs" || $0.isEqual })
  }

  @Test func mediaThroughATURNServerIsDecoded() {
    // A Send indication with XOR-PEER-ADDRESS, LIFETIME and a Binding request in DATA.
    let inner: [UInt8] = [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: 7, count: 12)
    let head: [UInt8] = [0, 0x16, 0, 48, 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: 5, count: 12)
    let address: [UInt8] = [0, 1, 0x33, 0x26, 0xe1, 0x12, 0xa6, 0x4b]
    var attributes: [UInt8] = [0, 0x12, 0, 8]
    attributes += address
    attributes += [0, 0x0d, 0, 4, 0, 0, 2, 88, 0, 0x13, 0, 20]
    attributes += inner
    let fields = PacketFields.of(head + attributes)
    let values = fields.map { "\($0.name): \($0.value)" }
    #expect(values.contains("STUN XOR-PEER-ADDRESS: 192.0.2.9:4660"))
    #expect(values.contains("STUN LIFETIME: 600"))
    #expect(values.contains("message: STUN Send indication"))
    #expect(values.contains("message: STUN Binding request"))
    let channel = PacketFields.of([0x40, 0, 0, 20] + inner).map { "\($0.name): \($0.value)" }
    #expect(channel.contains("TURN channel: 16384"))
    #expect(channel.contains("message: STUN Binding request"))
  }

  @Test func anRTPHeaderIsNamedByItsColumn() throws {
    let found = try divergence(
      where: "packet WHERE protocol = 'rtp' AND direction = 'out' AND sequence > 0"
    ) { flipping(3, of: 128..<192, at: $0) }
    #expect(found.layer == "rtp")
    #expect(found.what.contains("ssrc"))
    #expect(found.field == "sequence")
  }

  @Test func aProtectedByteIsNamedAsProtected() throws {
    let found = try divergence(
      where: "packet WHERE protocol = 'rtp' AND direction = 'out' AND size > 60"
    ) { flipping(50, of: 128..<192, at: $0) }
    #expect(found.field == "SRTP payload or authentication tag, byte 50")
  }

  @Test func aMissingOutputIsReportedAsMissing() throws {
    let found = try divergence(where: "packet WHERE protocol = 'dtls' AND direction = 'out'") {
      Bend(step: $0) { _ in [] }
    }
    #expect(found.replayed == "nothing")
    #expect(found.notes.isEmpty)
  }

  @Test func anAddedOutputIsReportedAsSuch() throws {
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

  /// A document is split into its members, whatever their names; an empty one has none.
  @Test func documentsAreSplitIntoTheirMembers() {
    #expect(DocumentFields(#"{"value":3}"#)?.all.map(\.name) == ["value"])
    #expect(DocumentFields(#"{"a":{"value":3},"b":[1]}"#)?.all.map(\.name) == ["a.value", "b[0]"])
    #expect(DocumentFields("{}") == nil && DocumentFields("[]") == nil)
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
      _ = PacketFields.of(bytes)
      _ = PacketText.field(of: bytes, at: Int(entropy.integer(below: 70)))
    }
  }
}
