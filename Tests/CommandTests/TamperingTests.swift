import Foundation
import Testing
import Wire

@testable import Tape

/// A tampered take is distinguished from a stack that behaves differently.
struct TamperingTests {
  private func expectAlteration(_ path: String, at step: Int64) async throws {
    let outcome = try await Tool.run("replay", path)
    #expect(outcome.status == 1)
    #expect(outcome.output.contains("altered"), "\(outcome.output)")
    #expect(outcome.output.contains("step \(step)"), "not step \(step): \(outcome.output)")
    #expect(outcome.errors.isEmpty)
    let json = try await Tool.run("replay", path, "--json", "--skip-codecs")
    #expect(json.status == 1)
    #expect(json.output.contains("\"altered\""))
  }

  @Test(arguments: ["out", "in"])
  func aByteOfADatagramIsFoundAtItsStep(direction: String) async throws {
    let made = try await Takes.copy()
    let packet = "FROM packet WHERE direction = '\(direction)' AND size > 40"
    let offset = "(SELECT count(*) / 2 \(packet))"
    let row = try Takes.number(
      made.path, "SELECT row \(packet) ORDER BY row LIMIT 1 OFFSET \(offset)")
    let position = try Takes.number(
      made.path, "SELECT position + 20 FROM packet_store WHERE row = \(row)")
    let piece = position / 8152
    var bytes = try Takes.bytes(made.path, "SELECT bytes FROM wire WHERE piece = \(piece)")
    bytes[Int(position % 8152)] ^= 1
    try Takes.alter(
      made.path, "UPDATE wire SET bytes = x'\(hexadecimal(bytes))' WHERE piece = \(piece)")
    try await expectAlteration(made.path, at: row >> 16)
  }

  /// A take without media stores only the sizes of its frames; a replay restores their bytes from
  /// the packets.
  @Test(arguments: [Int64.max, -1, 0])
  func aSizeThatNoFrameHasIsNotFilledUp(_ size: Int64) async throws {
    let copy = try await Takes.copy()
    try FileManager.default.removeItem(atPath: copy.path)
    try FileManager.default.copyItem(
      atPath: DebugTests.root.appending(path: "Captures/janus-room.take").path, toPath: copy.path)
    try Takes.alter(
      copy.path,
      """
      UPDATE frame_store SET size = \(size)
      WHERE row = (SELECT row FROM frame_store ORDER BY row LIMIT 1 OFFSET 3)
      """)
    let outcome = try await Tool.run("replay", "--skip-codecs", copy.path)
    #expect(outcome.status == 1)
    #expect(outcome.output.contains("altered"), "\(outcome.output) \(outcome.errors)")
  }

  @Test func theSeedIsFoundAtTheFirstStepOfItsPeer() async throws {
    let made = try await Takes.copy()
    try Takes.alter(made.path, "UPDATE peer SET seed = zeroblob(32) WHERE peer = 2")
    let step = try Takes.number(made.path, "SELECT step FROM peer WHERE peer = 2")
    try await expectAlteration(made.path, at: step)
  }

  @Test func aStateIsFoundAtItsStep() async throws {
    let made = try await Takes.copy()
    let step = try Takes.number(
      made.path, "SELECT step FROM state WHERE machine = 'dtls' AND to_state = 'connected'")
    try Takes.alter(made.path, "UPDATE state SET to_state = 'failed' WHERE step = \(step)")
    try await expectAlteration(made.path, at: step)
  }

  enum Field: String, CaseIterable { case time, deadline, entropy }

  @Test(arguments: Field.allCases)
  func eachRowOfTheTapeIsFoundAtItsStep(field: Field) async throws {
    let made = try await Takes.copy()
    let row = "FROM tape ORDER BY steps DESC, first_step LIMIT 1"
    let first = try Takes.number(made.path, "SELECT first_step \(row)")
    let count = try Takes.number(made.path, "SELECT steps \(row)")
    let start = try Takes.number(made.path, "SELECT at_ns \(row)")
    let body = try Takes.bytes(made.path, "SELECT body \(row)")
    let heads = try TapeBody.heads(
      body.span.bytes, first: Int(first), count: Int(count), start: start)
    // A timer's input consists of its time alone.
    let index = try #require(heads.firstIndex { $0.kind == .deadline })
    var changed = TapeBody(start: start)
    for (number, head) in heads.enumerated() {
      var head = head
      if number == index {
        switch field {
        case .time: head.at += .nanoseconds(1)
        case .deadline: head.deadline = (head.deadline ?? head.at) + .nanoseconds(1)
        case .entropy: head.entropyDrawn += 1
        }
      }
      changed.append(head)
    }
    try Takes.alter(
      made.path,
      "UPDATE tape SET body = x'\(hexadecimal(changed.bytes))' WHERE first_step = \(first)")
    try await expectAlteration(made.path, at: first + Int64(index))
  }

  @Test func aMissingEndIsFound() async throws {
    let made = try await Takes.copy()
    let last = try Takes.number(made.path, "SELECT max(first_step) FROM tape")
    try Takes.alter(made.path, "DELETE FROM tape WHERE first_step = \(last)")
    let outcome = try await Tool.run("replay", made.path)
    #expect(outcome.status == 1 && outcome.output.contains("altered"))
  }
}

extension Interval {
  fileprivate static func nanoseconds(_ count: Int64) -> Interval { Interval(nanoseconds: count) }
}
