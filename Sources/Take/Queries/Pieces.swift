/// Text that is handed over in pieces that are worth a system call.
struct Pieces {
  /// How long a piece is at least, in bytes.
  static let length = 1 << 16

  private let write: (String) -> Void
  /// What waits to be handed over.
  var text = ""

  init(_ write: @escaping (String) -> Void) { self.write = write }

  /// Adds text, and hands over what is enough for a piece.
  mutating func add(_ more: String) {
    text += more
    flush(atLeast: Pieces.length)
  }

  /// Hands over what waits when it has so many bytes.
  mutating func flush(atLeast length: Int = 1) {
    guard text.utf8.count >= length else { return }
    write(text)
    text.removeAll(keepingCapacity: true)
  }
}
