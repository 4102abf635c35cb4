import Testing

@testable import Wire

struct EntropyTests {
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

  /// The label is the nonce, and a short seed is padded with zeros, as in `openssl enc -chacha20`.
  @Test func aStreamIsChaCha20WithTheLabelAsNonce() {
    let known = """
      348adae9a83ba173e0f4718401e024c48bdd30974d8be88db2db1992e042b017\
      998586a0201bc3c6bd371b64b4426fdcb3e2b6ec5d32e0108fdf4ec3ef7df148\
      56e5ba3ca8c3fc91
      """
    #expect(hexadecimal(Entropy(seed: []).stream("ab").bytes(72)) == known)
    let again = Entropy(seed: [UInt8](repeating: 0, count: 32)).stream("ab")
    let copy = again.copy
    #expect(hexadecimal(again.bytes(72)) == known)
    #expect(hexadecimal(copy.bytes(72)) == known, "a copy is independent")
  }

  @Test func drawsAreCounted() {
    let entropy = Entropy(seed: [])
    _ = entropy.stream("ice").integer(UInt64.self)
    _ = entropy.stream("ssrc").integer(UInt32.self)
    #expect(entropy.drawn == 12)
    #expect(entropy.ledger.map(\.label) == ["ice", "ssrc"])
  }
}
