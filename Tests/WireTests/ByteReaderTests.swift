import Testing

@testable import Wire

struct ByteReaderTests {
  @Test func consecutiveIntegersAreBigEndian() throws {
    let bytes: [UInt8] = [
      0xfe, 0x01, 0x02, 0x81, 0x02, 0x03, 0xff, 0, 0, 4, 0x80, 0, 0, 0, 0, 0, 0, 5,
    ]
    var reader = ByteReader(bytes.span.bytes)
    #expect(try reader.uint8() == 0xfe)
    #expect(try reader.uint16() == 0x0102)
    #expect(try reader.uint24() == 0x81_0203)
    #expect(try reader.uint32() == 0xff00_0004)
    #expect(reader.offset == 10 && reader.remaining == 8 && !reader.isAtEnd)
    #expect(try reader.uint64() == 0x8000_0000_0000_0005)
    #expect(reader.offset == 18 && reader.remaining == 0 && reader.isAtEnd)
  }

  /// An incomplete value is not read, and the reader's position is unchanged.
  @Test(arguments: [(1, 0), (2, 1), (3, 2), (4, 3), (8, 7)])
  func aTruncatedValueIsAnError(width: Int, there: Int) {
    let bytes = [UInt8](repeating: 7, count: there)
    var reader = ByteReader(bytes.span.bytes)
    var thrown: ReadError?
    do {
      switch width {
      case 1: _ = try reader.uint8()
      case 2: _ = try reader.uint16()
      case 3: _ = try reader.uint24()
      case 4: _ = try reader.uint32()
      default: _ = try reader.uint64()
      }
    } catch {
      thrown = error
    }
    #expect(thrown == .truncated)
    #expect(reader.offset == 0)
  }

  @Test func spansAreTheBytesThatWereRead() throws {
    let bytes: [UInt8] = [1, 2, 3, 4, 5, 6]
    var reader = ByteReader(bytes.span.bytes)
    try reader.skip(1)
    #expect([UInt8](try reader.span(2)) == [2, 3])
    #expect([UInt8](reader.rest()) == [4, 5, 6])
    #expect(try reader.array(1) == [4])
    #expect(reader.offset == 4)
    #expect(try reader.array(0).isEmpty)
    #expect(try reader.array(2) == [5, 6])
    #expect(reader.isAtEnd && reader.rest().isEmpty)
  }

  @Test(arguments: [-1, 4, Int.max, Int.min])
  func aCountBeyondTheEndIsAnError(count: Int) {
    let bytes: [UInt8] = [1, 2, 3]
    var reader = ByteReader(bytes.span.bytes)
    var errors: [ReadError] = []
    do { try reader.skip(count) } catch { errors.append(error) }
    do { _ = try reader.span(count) } catch { errors.append(error) }
    do { _ = try reader.array(count) } catch { errors.append(error) }
    #expect(errors == [.truncated, .truncated, .truncated])
    #expect(reader.offset == 0)
  }

  @Test func integersAreReadAtTheirOffset() {
    let bytes: [UInt8] = [0, 0x81, 2, 3, 4, 5, 6, 7, 0xf8]
    let span = bytes.span.bytes
    #expect(span.byte(at: 1) == 0x81)
    #expect(span.uint16(at: 1) == 0x8102)
    #expect(span.uint32(at: 1) == 0x8102_0304)
    #expect(span.uint64(at: 1) == 0x8102_0304_0506_07f8)
  }
}
