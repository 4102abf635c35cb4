import Testing

@testable import Wire

struct StreamCutterTests {
  /// Each message is a length, as many bytes, and padding to an even size; 0xff never starts a
  /// message.
  private enum Framing: MessageFraming {
    static func first(in bytes: RawSpan) throws(FramingError) -> (message: Range<Int>, next: Int)? {
      guard !bytes.isEmpty else { return nil }
      let length = Int(bytes.byte(at: 0))
      guard length < 0xff else { throw FramingError() }
      let next = (1 + length + 1) / 2 * 2
      return bytes.byteCount < next ? nil : (1..<1 + length, next)
    }

    static func framed(_ message: [UInt8]) -> [UInt8] {
      [UInt8(message.count)] + message + (message.count % 2 == 0 ? [0xee] : [])
    }
  }

  private static let messages: [[UInt8]] = [[1], [], [2, 3], [4, 5, 6], [], [7]]
  private static let stream = messages.flatMap(Framing.framed)

  /// Each message is returned once, as soon as it is complete, for any segmentation of the bytes.
  @Test(arguments: 1...stream.count)
  func messagesAreReassembledFromAnySegmentation(size: Int) throws {
    var cutter = StreamCutter(Framing.self)
    var found: [[UInt8]] = []
    for start in stride(from: 0, to: Self.stream.count, by: size) {
      let end = min(start + size, Self.stream.count)
      cutter.append(Self.stream[start..<end])
      while let message = try cutter.next() { found.append(message) }
      var whole = 0
      var length = 0
      for message in Self.messages {
        length += Framing.framed(message).count
        whole += length <= end ? 1 : 0
      }
      #expect(found == Array(Self.messages.prefix(whole)))
    }
    #expect(found == Self.messages)
    #expect(try cutter.next() == nil)
  }

  @Test func messagesStayQueuedWhileMoreBytesArrive() throws {
    var cutter = StreamCutter(Framing.self)
    cutter.append(Framing.framed([1]) + Framing.framed([2, 3, 4]))
    #expect(try cutter.next() == [1])
    cutter.append(Framing.framed([5]))
    #expect(try cutter.next() == [2, 3, 4])
    #expect(try cutter.next() == [5])
    #expect(try cutter.next() == nil)
  }

  /// Once the message boundaries are lost, they cannot be found again.
  @Test func aFramingErrorIsPermanent() throws {
    var cutter = StreamCutter(Framing.self)
    cutter.append(Framing.framed([1]) + [0xff])
    #expect(try cutter.next() == [1])
    for _ in 0..<2 {
      #expect(throws: FramingError.self) { try cutter.next() }
      cutter.append(Framing.framed([2]))
    }
  }
}
