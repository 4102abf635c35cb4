import Testing

@testable import Wire

struct ChaCha20Tests {
  /// The block of RFC 8439 section 2.3.2.
  @Test func theBlockMatchesTheStandard() {
    var key: [8 of UInt32] = .init(repeating: 0)
    for index in 0..<8 { key[index] = 0x0302_0100 + UInt32(index) * 0x0404_0404 }
    var cipher = ChaCha20(key: key, counter: 1, nonce: [0x0900_0000, 0x4a00_0000, 0])
    #expect(
      text(cipher.next()) == """
        10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e\
        d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e
        """)
  }

  /// RFC 8439 appendix A.1, test vectors 1 and 2: the counter continues from block to block.
  @Test func consecutiveBlocksMatchTheAppendix() {
    var cipher = ChaCha20(key: .init(repeating: 0), nonce: .init(repeating: 0))
    #expect(
      text(cipher.next()) == """
        76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7\
        da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586
        """)
    #expect(
      text(cipher.next()) == """
        9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed\
        29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f
        """)
  }

  private func text(_ block: [16 of UInt32]) -> String {
    hexadecimal(
      block.indices.flatMap { index in
        (0..<4).map { UInt8(truncatingIfNeeded: block[index] >> UInt32(8 * $0)) }
      })
  }
}
