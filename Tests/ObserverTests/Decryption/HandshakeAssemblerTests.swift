import Testing
import Wire

@testable import Observer

struct HandshakeAssemblerTests {
  private func fragment(
    _ sequence: Int, length: Int, at begin: Int, _ bytes: [UInt8]
  ) -> [UInt8] {
    func big(_ value: Int, _ width: Int) -> [UInt8] {
      (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * (width - 1 - $0))) }
    }
    return [11] + big(length, 3) + big(sequence, 2) + big(begin, 3) + big(bytes.count, 3) + bytes
  }

  @Test func fragmentsAreJoinedInAnyOrderAndWhenRepeated() throws {
    var assembler = HandshakeAssembler()
    let body = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
    for begin in stride(from: 800, through: 200, by: -200) + [600, 400] {
      let part = fragment(3, length: 1000, at: begin, Array(body[begin..<begin + 200]))
      #expect(assembler.add(part.span.bytes).isEmpty)
    }
    let last = assembler.add(fragment(3, length: 1000, at: 0, Array(body[..<200])).span.bytes)
    #expect(last.map(\.body) == [body] && assembler.heldBytes == 0)
  }

  /// One byte of a long message only uses the memory of one byte.
  @Test func lostFragmentsUseNoMemory() {
    var assembler = HandshakeAssembler()
    for sequence in 0..<64 {
      let part = fragment(sequence, length: 65_535, at: 65_534, [1])
      #expect(assembler.add(part.span.bytes).isEmpty)
    }
    #expect(assembler.heldBytes < 64 * 100)
  }

  @Test func smallFragmentsAreLimited() {
    var assembler = HandshakeAssembler()
    for place in 0..<30_000 {
      _ = assembler.add(fragment(1, length: 65_535, at: 2 * place, [1]).span.bytes)
    }
    #expect(assembler.heldBytes <= 262_144)
  }
}

private func + (left: StrideThrough<Int>, right: [Int]) -> [Int] { Array(left) + right }
