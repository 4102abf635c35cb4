import ICE
import Testing
import Wire

struct TURNFramingTests {
  private let messages: [[UInt8]] = [
    STUNWriter(.indication, transactionID: STUNTransactionID(high: 1, low: 2)).finish(),
    ChannelData.frame([1, 2, 3, 4, 5], channel: 0x4000),
    ChannelData.frame([], channel: 0x4fff),
    ChannelData.frame([9, 8, 7, 6], channel: 0x4001),
  ]

  @Test(arguments: [1, 2, 3, 5, 19, 1000])
  func messagesAreReassembledFromAnySegmentation(size: Int) throws {
    let stream = messages.flatMap(TURNFraming.framed)
    #expect(stream.count % 4 == 0)
    var framing = StreamCutter(TURNFraming.self)
    var found: [[UInt8]] = []
    for start in stride(from: 0, to: stream.count, by: size) {
      framing.append(stream[start..<min(start + size, stream.count)])
      while let message = try framing.next() { found.append(message) }
    }
    #expect(found == messages)
  }

  @Test func unknownBytesEndTheStream() {
    for first in [0x04, 0x16, 0x50, 0x80, 0xff] as [UInt8] {
      var framing = StreamCutter(TURNFraming.self)
      framing.append([first, 0, 0, 4, 0, 0, 0, 0])
      #expect(throws: FramingError.self) { try framing.next() }
    }
    var odd = StreamCutter(TURNFraming.self)
    odd.append([0, 1, 0, 3, 0x21, 0x12, 0xa4, 0x42])
    #expect(throws: FramingError.self) { try odd.next() }
  }

  @Test func anyBytesAreFramedOrRefused() {
    let entropy = Entropy(seed: [4]).stream("mutate")
    for _ in 0..<2000 {
      var framing = StreamCutter(TURNFraming.self)
      var total = 0
      for _ in 0..<8 {
        var bytes = TURNFraming.framed(messages[Int(entropy.integer(below: 4))])
        if entropy.integer(below: 3) == 0 {
          bytes[Int(entropy.integer(below: UInt64(bytes.count)))] = entropy.byte()
        }
        total += bytes.count
        framing.append(bytes)
      }
      var framedBytes = 0
      while let message = try? framing.next() { framedBytes += message.count }
      #expect(framedBytes <= total)
    }
  }
}
