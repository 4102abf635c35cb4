import Crypto
import Testing
import Wire

struct XXH3Tests {
  /// Digests as the reference tool prints them for the same bytes.
  @Test(arguments: [
    (0, "99aa06d3014798d86001c324468d497f"),
    (16, "72950631827607e2842812cc870dcae2"),
    (345_600, "8e74d20f6eda834e7dc3b4c7904d75c6"),
  ])
  func digestsMatchTheReferenceTool(_ count: Int, _ digest: String) {
    let message = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    let computed = XXH3.hash(message.span.bytes)
    #expect(hexadecimal(computed) == digest)
  }

  @Test func everyByteCounts() {
    let message = [UInt8](repeating: 5, count: 345_600)
    let digest = XXH3.hash(message.span.bytes)
    for place in [0, 1, 172_800, 345_599] {
      var changed = message
      changed[place] ^= 1
      #expect(XXH3.hash(changed.span.bytes) != digest)
    }
    let shorter = [UInt8](message.dropLast())
    #expect(XXH3.hash(shorter.span.bytes) != digest)
  }
}
