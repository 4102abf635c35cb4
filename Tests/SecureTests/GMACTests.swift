import Digests
import Testing
import Wire

@Suite struct GMACTests {
  /// The tags of messages with a key and nonce of zeros: the first is
  /// test case 1 of the GCM specification.
  @Test(arguments: [
    ([], "58e2fccefa7e3061367f1d57a4e7455a"), GMACTests.counted(16), GMACTests.counted(1_000),
  ])
  func tagsAreThoseOfTheSpecification(_ message: [UInt8], _ tag: String) {
    var code = GMAC()
    for _ in 0..<2 {
      let made = code.tag(message.span.bytes)
      #expect(made.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() == tag)
    }
  }

  @Test func everyByteCounts() {
    var code = GMAC()
    let message = [UInt8](repeating: 5, count: 345_600)
    let tag = code.tag(message.span.bytes)
    for place in [0, 1, 172_800, 345_599] {
      var changed = message
      changed[place] ^= 1
      #expect(code.tag(changed.span.bytes) != tag)
    }
    let shorter = [UInt8](message.dropLast())
    #expect(code.tag(shorter.span.bytes) != tag)
  }

  private static func counted(_ count: Int) -> ([UInt8], String) {
    let tags = [16: "8a44ec70da3a66ff6d07c57b3f607245", 1_000: "96c93038fb218fc06737fe2bdd1e29d5"]
    return ((0..<count).map { UInt8(truncatingIfNeeded: $0) }, tags[count] ?? "")
  }
}
