import Crypto
import Testing
import Wire

@testable import Tape

/// Tests how values are converted to bytes for hashing, comparing and storing rows.
@Suite struct ValueBytesTests {
  static let values: [Value] = [
    .null, .integer(0), .integer(.min), .integer(.max), .real(-1.5), .text(""), .text("é 🎥"),
    .text(String(repeating: "long ", count: 900)), .blob([]), .blob([0, 255]),
    .blob([UInt8](repeating: 7, count: 5_000)),
  ]

  @Test func valuesAreReadAsTheyWereWritten() {
    let bytes = ValueBytes(Self.values)
    var read: [Value] = []
    var offset = 0
    while offset < bytes.count {
      read.append(bytes.value(at: offset))
      offset = bytes.end(ofValueAt: offset)
    }
    #expect(read == Self.values)
    #expect(offset == bytes.count)
  }

  /// Digests of takes are computed from these bytes, so the bytes must never change.
  @Test func theBytesAreThoseThatTakesAreHashedFrom() {
    let bytes = ValueBytes([.null, .integer(-2), .real(1), .text("ab"), .blob([9])])
    let expected: [UInt8] =
      [0] + [1, 254, 255, 255, 255, 255, 255, 255, 255] + [2, 0, 0, 0, 0, 0, 0, 240, 63]
      + [3, 2, 0, 0, 0, 0, 0, 0, 0, 97, 98] + [4, 1, 0, 0, 0, 0, 0, 0, 0, 9]
    #expect(bytes.withBytes { [UInt8]($0) } == expected)
    #expect([UInt8].digest(of: [.null, .integer(-2)]) == SHA256.hash(Array(expected[..<10])))
  }

  @Test func memoryIsUsedAgain() {
    var bytes = ValueBytes(Self.values)
    let first = bytes
    bytes.removeAll()
    #expect(bytes == ValueBytes())
    for value in Self.values { bytes.append(value) }
    #expect(bytes == first)
  }
}

/// Tests appending, reading and comparing the rows of a row list.
@Suite struct RowListTests {
  private func rows(_ values: [[Value]]) -> RowList {
    var rows = RowList()
    for row in values { rows.append(.event, row) }
    return rows
  }

  @Test func rowsAreFoundAndCopied() {
    let rows = rows([[.integer(1), .text("a")], [.integer(2), .text("b"), .null]])
    #expect(rows.row(0) == [.integer(1), .text("a")])
    #expect(rows[1, 1] == .text("b"))
    #expect(rows.has(2, in: 1))
    #expect(!rows.has(2, in: 0))
    #expect(rows[0, 2] == .null)
    var copy = RowList()
    copy.append(rows, 1)
    #expect(copy.row(0) == rows.row(1))
    #expect(copy.equals(0..<1, rows, 1..<2))
    #expect(!copy.equals(0..<1, rows, 0..<1))
  }

  @Test func theFirstDifferentColumnIsFound() {
    let left = rows([[.integer(1), .text("a"), .blob([1])]])
    let right = rows([[.integer(1), .text("b"), .blob([2])]])
    #expect(left.firstDifference(0, right, 0) == 1)
    #expect(left.firstDifference(0, right, 0, ignoring: 1) == 2)
    #expect(left.firstDifference(0, left, 0) == nil)
  }

  /// Rows in older formats are shorter.
  @Test func columnsOfOnlyOneRowAreNoDifference() {
    let left = rows([[.integer(1)], [.integer(5)]])
    let right = rows([[.integer(1), .text("later")]])
    #expect(left.firstDifference(0, right, 0) == nil)
    #expect(right.firstDifference(0, left, 0) == nil)
  }

  @Test func anIncompleteRowIsRemoved() {
    var rows = rows([[.integer(1)]])
    let before = rows
    rows.begin(.packet)
    rows.bytes.append(integer: 3)
    rows.bytes.beginBlob(1_000_000)
    rows.removeLast()
    #expect(rows == before)
  }

  @Test func actorsOfAnyNumberAreKept() {
    var actors = ByActor<String>()
    for number in [0, 1, 4_095, 4_096, .max] as [UInt32] {
      #expect(actors[number] == nil)
      actors[number] = "\(number)"
    }
    for number in [0, 1, 4_095, 4_096, .max] as [UInt32] { #expect(actors[number] == "\(number)") }
    actors[4_096] = nil
    actors[1] = nil
    #expect(actors[4_096] == nil)
    #expect(actors[1] == nil)
    #expect(actors[2] == nil)
  }
}
