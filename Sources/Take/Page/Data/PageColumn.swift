/// Whole numbers in as few bytes as a page needs: one list of a series, such as the times of its
/// packets.
///
/// Each number is a zigzag varint: sign in the lowest bit, then seven bits to a byte, low ones
/// first, with the highest bit set in all bytes but the last. `columns.js` reads them.
struct PageColumn: Sendable {
  /// What the varints are.
  enum Coding: Int, Sendable {
    /// The numbers themselves.
    case values = 0
    /// The difference of each number to the one before; the first to 0.
    case steps = 1
  }

  let coding: Coding
  private(set) var bytes: [UInt8] = []
  private(set) var count = 0
  private var last: Int64 = 0

  init(_ coding: Coding) { self.coding = coding }

  mutating func append(_ value: Int64) {
    var number = value
    if coding == .steps {
      number = value &- last
      last = value
    }
    var rest = UInt64(bitPattern: (number << 1) ^ (number >> 63))
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
    count += 1
  }

  /// The list so far; what follows begins a list of its own.
  mutating func drain() -> PageColumn {
    let whole = self
    self = PageColumn(coding)
    return whole
  }
}

/// How a page counts time: in units of 10 µs since the take began, as integers.
enum PageTime {
  static func units(_ nanoseconds: Int64) -> Int64 { nanoseconds / 10_000 }

  /// Which half second of the take units are in.
  static func bin(_ units: Int64) -> Int64 { units / 50_000 }
}
