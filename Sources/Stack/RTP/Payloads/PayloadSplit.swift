/// Splits a frame's bytes into packets of nearly equal size.
///
/// Equal sizes keep a small last packet from overtaking the others.
package struct PayloadSplit: Hashable, Sendable {
  /// The length of the frame in bytes.
  package let length: Int
  /// The number of packets.
  package let count: Int

  /// Splits `length` bytes into the fewest parts of at most `limit` bytes.
  package init(length: Int, limit: Int) {
    self.length = max(0, length)
    let limit = max(1, limit)
    count = self.length / limit + (self.length % limit == 0 ? 0 : 1)
  }

  package subscript(part: Int) -> Range<Int> {
    let small = count == 0 ? 0 : length / count
    let larger = length - small * count
    let start = part * small + min(part, larger)
    return start..<start + small + (part < larger ? 1 : 0)
  }
}
