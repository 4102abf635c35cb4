import Wire

/// Parses video frames or audio blocks from a file's bytes: after each appended piece, `next`
/// returns the complete ones.
protocol PieceReader {
  /// A video frame or an audio block.
  associatedtype Part
  /// An error in the bytes.
  associatedtype Fault: Error, CustomStringConvertible

  /// The message for a file without any part.
  static var emptiness: String { get }

  /// Creates a reader at the start of a file.
  init()
  mutating func append(_ piece: RawSpan) throws(Fault)
  /// Marks the end of the file.
  mutating func finish() throws(Fault)
  /// Returns the next part; nil if more bytes are needed.
  mutating func next() throws(Fault) -> Part?
  /// Returns the remainder at the end, which is shorter than a part; nil if there is none.
  mutating func rest() -> Part?
  /// Returns a fault's location; `count` is the number of parts read so far.
  func place(of fault: Fault, after count: Int) -> (videoFrame: Int?, byteOffset: Int?)
}

extension PieceReader {
  mutating func rest() -> Part? { nil }
}

/// The video frames or audio blocks of a file, optionally repeated.
struct RepeatedFile<Reader: PieceReader> {
  private let file: MediaFile
  private let loops: Bool
  private(set) var reader = Reader()
  /// The number of parts read since the start of the file.
  private(set) var count = 0
  private var isAtEnd = false
  /// The part that was read when the file was opened; nil once `next` has returned it.
  private var first: Reader.Part?

  /// Opens a file and reads its first part, so that an empty file is refused at once.
  init(path: String, loops: Bool) throws(MediaFileError) {
    file = try MediaFile(path, for: .reading)
    self.loops = loops
    first = try nextOnce()
    guard first != nil else { throw emptiness }
  }

  /// The error for a file without any part.
  var emptiness: MediaFileError { MediaFileError(path: file.path, reason: Reader.emptiness) }

  /// Returns the next part; after the last part, returns the first one, or nil if nothing is
  /// repeated.
  mutating func next() throws(MediaFileError) -> Reader.Part? {
    if let part = first.take() { return part }
    if let part = try nextOnce() { return part }
    guard loops else { return nil }
    try restart()
    guard let part = try nextOnce() else { throw emptiness }
    return part
  }

  /// Returns the next part; nil at the end of the file.
  mutating func nextOnce() throws(MediaFileError) -> Reader.Part? {
    while true {
      let part = try read { (reader) throws(Reader.Fault) in try reader.next() }
      if let part {
        count += 1
        return part
      }
      guard !isAtEnd else { return reader.rest() }
      let piece = try file.read()
      isAtEnd = piece == nil
      try read { (reader) throws(Reader.Fault) in
        guard let piece else { return try reader.finish() }
        try reader.append(piece.span.bytes)
      }
    }
  }

  mutating func restart() throws(MediaFileError) {
    try file.rewind()
    reader = Reader()
    isAtEnd = false
    count = 0
    first = nil
  }

  /// Calls a closure with the reader, and converts the reader's errors to `MediaFileError`.
  private mutating func read<Result>(
    _ body: (inout Reader) throws(Reader.Fault) -> Result
  ) throws(MediaFileError) -> Result {
    do throws(Reader.Fault) {
      return try body(&reader)
    } catch {
      let (videoFrame, byteOffset) = reader.place(of: error, after: count)
      throw MediaFileError(
        path: file.path, reason: error.description, videoFrame: videoFrame, byteOffset: byteOffset)
    }
  }
}

// MARK: - PieceBuffer

/// Buffers pieces of bytes, consumed from the front.
struct PieceBuffer {
  private var bytes: [UInt8] = []
  private var start = 0
  /// The number of bytes consumed so far.
  private(set) var position = 0

  /// The number of waiting bytes.
  var count: Int { bytes.count - start }

  mutating func append(_ piece: RawSpan) {
    if start > 0, start == bytes.count || start > 1 << 16 {
      bytes.removeFirst(start)
      start = 0
    }
    unsafe piece.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
  }

  /// The waiting byte at an offset, which must be less than `count`.
  subscript(index: Int) -> UInt8 { bytes[start + index] }

  /// Consumes and returns `count` bytes; returns nil and consumes nothing if fewer are waiting.
  mutating func read(_ count: Int) -> [UInt8]? {
    guard count >= 0, count <= self.count else { return nil }
    let taken = Array(bytes[start..<start + count])
    start += count
    position += count
    return taken
  }

  /// Drops up to `count` bytes; returns how many were dropped.
  mutating func drop(_ count: Int) -> Int {
    let dropped = min(max(count, 0), self.count)
    start += dropped
    position += dropped
    return dropped
  }

  /// Returns the offset of a byte in the first `limit` waiting bytes; nil if they do not contain
  /// it.
  func firstIndex(of byte: UInt8, within limit: Int) -> Int? {
    let end = start + min(limit, count)
    return bytes[start..<end].firstIndex(of: byte).map { $0 - start }
  }
}
