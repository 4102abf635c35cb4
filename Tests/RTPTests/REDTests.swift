import Testing
import Wire

@testable import RTP

struct REDTests {
  private func primary(_ bytes: [UInt8], from start: Int = 0) -> RED.Primary? {
    RED.primary(bytes.span.bytes, in: start..<bytes.count)
  }

  @Test func videoIsOneBlock() {
    let found = primary([0xff, 120, 0x90, 1, 2], from: 1)
    #expect(found == RED.Primary(payloadType: 120, payload: 2..<5, redundantBlocks: 0))
  }

  /// Two older audio packets of 3 and 2 bytes precede one of 4 (RFC 2198 section 5).
  @Test func redundantPayloadsPrecedeThePrimary() {
    let bytes: [UInt8] =
      [0x80 | 111, 0, 0x04, 3, 0x80 | 111, 0, 0x08, 2, 111] + [1, 1, 1, 2, 2] + [3, 3, 3, 3]
    let found = primary(bytes)
    #expect(found == RED.Primary(payloadType: 111, payload: 14..<18, redundantBlocks: 2))
  }

  @Test func aBlockMayBeEmpty() {
    #expect(primary([120]) == RED.Primary(payloadType: 120, payload: 1..<1, redundantBlocks: 0))
  }

  @Test(
    arguments: [
      [], [0x80 | 111], [0x80 | 111, 0, 0, 0], [0x80 | 111, 0, 3, 0xff, 111, 1],
      [0x80 | 111, 0, 0, 2, 111, 1], Array(repeating: 0xff, count: 9),
    ] as [[UInt8]])
  func malformedPayloadsHaveNoPrimary(_ bytes: [UInt8]) { #expect(primary(bytes) == nil) }

  @Test func aRangeBeyondThePacketHasNoPrimary() {
    let bytes: [UInt8] = [120, 1]
    #expect(RED.primary(bytes.span.bytes, in: 0..<9) == nil)
  }
}
