import Testing
import Wire

@testable import Observer

/// The fast search finds the same byte as a byte-by-byte search.
struct ByteSearchTests {
  @Test func theFirstOccurrenceIsFoundAnywhere() {
    for length in 0..<27 {
      // Few values, so that a word contains the wanted byte never, once or several times; 0x7f and
      // 0x80 differ in all bits.
      let bytes = (0..<length).map {
        [0x7f, 0x80, 0x00, 0xff, 0x81][($0 * $0 + length) % 5] as UInt8
      }
      for byte: UInt8 in [0x00, 0x01, 0x7f, 0x80, 0x81, 0xff] {
        for begin in 0...length {
          for end in begin...length {
            let found = bytes.span.bytes.place(of: byte, from: begin, to: end)
            let expected = bytes[begin..<end].firstIndex(of: byte)
            if found != expected {
              Issue.record("\(byte) in \(bytes[begin..<end]): \(found as Int?)")
            }
          }
        }
      }
    }
  }

  @Test func theLowestMarkedOfEightBytesIsTheMatch() {
    for place in 0..<8 {
      var bytes = [UInt8](repeating: 0x90, count: 8)
      bytes[place] = 0x80
      let marks = bytes.span.bytes.eight(from: 0, holding: 0x80)
      #expect(marks.trailingZeroBitCount == 8 * place + 7)
    }
    let none = [UInt8](repeating: 0x81, count: 8)
    #expect(none.span.bytes.eight(from: 0, holding: 0x80) == 0)
  }
}
