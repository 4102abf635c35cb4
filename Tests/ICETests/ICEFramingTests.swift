import ICE
import Testing
import Wire

struct ICEFramingTests {
  private let messages: [[UInt8]] = [
    [], [0], [1, 2, 3], [UInt8](repeating: 0x16, count: 1200), [UInt8](repeating: 7, count: 65_535),
  ]

  @Test(arguments: [1, 2, 3, 7, 1000, 100_000])
  func messagesAreReassembledFromAnySegmentation(size: Int) throws {
    let stream = messages.flatMap(ICEFraming.framed)
    var cutter = StreamCutter(ICEFraming.self)
    var found: [[UInt8]] = []
    for start in stride(from: 0, to: stream.count, by: size) {
      cutter.append(stream[start..<min(start + size, stream.count)])
      while let message = try cutter.next() { found.append(message) }
    }
    #expect(found == messages)
  }

  @Test func messagesArePrefixedWithBigEndianLengths() {
    #expect(ICEFraming.framed([9, 8, 7]) == [0, 3, 9, 8, 7])
    #expect(ICEFraming.framed([UInt8](repeating: 0, count: 258)).prefix(2) == [1, 2])
    #expect(ICEFraming.framed([UInt8](repeating: 0, count: 65_536)).isEmpty)
  }
}
