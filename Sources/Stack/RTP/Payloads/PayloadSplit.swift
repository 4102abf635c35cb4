/// How the bytes of a frame are shared out among packets of nearly equal size.
///
/// Equal parts keep the packets of a frame alike, so that no small last packet overtakes others.
package struct PayloadSplit: Hashable, Sendable {
  /// How many bytes the frame has.
  package let length: Int
  /// How many packets there are.
  package let count: Int

  /// Splits `length` bytes into the fewest parts of at most `limit` bytes.
  package init(length: Int, limit: Int) {
    self.length = max(0, length)
    let limit = max(1, limit)
    count = self.length / limit + (self.length % limit == 0 ? 0 : 1)
  }

  /// The bytes of a part, 0 being the first.
  package subscript(part: Int) -> Range<Int> {
    let small = count == 0 ? 0 : length / count
    let larger = length - small * count
    let start = part * small + min(part, larger)
    return start..<start + small + (part < larger ? 1 : 0)
  }
}
