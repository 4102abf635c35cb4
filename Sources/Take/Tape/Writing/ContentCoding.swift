import CCharLS
import Media
import Wire

/// Lossless compression of captured video frames in the file.
///
/// Digests and comparisons always use the uncompressed samples. Each frame is compressed
/// independently, so that takes can be cut, joined and read from anywhere.
enum ContentCoding: String {
  /// JPEG-LS (ISO/IEC 14495-1): an image of the Y plane, and an image of the U plane stacked on the
  /// V plane.
  case jpegLS = "jpeg-ls"

  /// The maximum number of pixels to compress; larger frames are stored uncompressed.
  ///
  /// Without a maximum, a damaged size could cost gigabytes when the frame is read.
  private static let pixelMaximum = 4_096 * 4_096
  /// The size in bytes of the header before the two images.
  private static let headerLength = 16

  // MARK: Writing

  /// Compresses a `content` row; nil if it is not a video frame or would not become smaller.
  ///
  /// - Parameter range: the rows of the step; the row after this one has the frame's size.
  static func coded(_ rows: borrowing RowList, _ row: Int, in range: Range<Int>)
    -> (ContentCoding, bytes: [UInt8])?
  {
    guard rows.table(row) == ContentRow.table, row + 1 < range.upperBound,
      let capture = CaptureRow(rows, row + 1), capture.kind == MediaKind.video.rawValue,
      let width = capture.width, let height = capture.height,
      let samples = ContentRow(rows, row)?.bytes,
      let bytes = encoded(samples, width: width, height: height), bytes.count < samples.count
    else { return nil }
    return (.jpegLS, bytes)
  }

  /// Compresses I420 samples as two images; nil if the frame is too large, its size does not match
  /// the samples, or the library fails.
  static func encoded(_ samples: [UInt8], width: Int, height: Int) -> [UInt8]? {
    guard let planes = Planes(width: width, height: height), planes.byteCount == samples.count
    else { return nil }
    // Noise becomes slightly larger when it is compressed.
    let room = samples.count + samples.count / 8 + 4_096
    var lengths = (luma: 0, chroma: 0)
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: headerLength + room) { target, count in
      guard let base = target.baseAddress else { return }
      unsafe samples.withUnsafeBufferPointer { source in
        guard let pixels = source.baseAddress else { return }
        let first = unsafe base + headerLength
        lengths.luma = unsafe image(
          pixels, planes.luma.width, planes.luma.height, into: first, room: room)
        lengths.chroma = unsafe image(
          pixels + planes.luma.count, planes.chroma.width, planes.chroma.height,
          into: first + lengths.luma, room: room - lengths.luma)
      }
      guard lengths.luma > 0, lengths.chroma > 0 else { return }
      var writer = ByteWriter()
      for number in [width, height, lengths.luma, lengths.chroma] {
        writer.uint32(UInt32(clamping: number))
      }
      let header = writer.bytes
      for (index, byte) in header.enumerated() { unsafe base[index] = byte }
      count = headerLength + lengths.luma + lengths.chroma
    }
    return bytes.isEmpty ? nil : bytes
  }

  /// Compresses an image; returns the number of bytes, or 0 if the library fails.
  private static func image(
    _ pixels: UnsafePointer<UInt8>, _ width: Int, _ height: Int,
    into target: UnsafeMutablePointer<UInt8>, room: Int
  ) -> Int {
    guard let encoder = unsafe charls_jpegls_encoder_create() else { return 0 }
    defer { unsafe charls_jpegls_encoder_destroy(encoder) }
    var frame = charls_frame_info(
      width: UInt32(width), height: UInt32(height), bits_per_sample: 8, component_count: 1)
    var length = 0
    guard
      unsafe charls_jpegls_encoder_set_frame_info(encoder, &frame) == CHARLS_JPEGLS_ERRC_SUCCESS,
      unsafe charls_jpegls_encoder_set_destination_buffer(encoder, target, room)
        == CHARLS_JPEGLS_ERRC_SUCCESS,
      unsafe charls_jpegls_encoder_encode_from_buffer(encoder, pixels, width * height, 0)
        == CHARLS_JPEGLS_ERRC_SUCCESS,
      unsafe charls_jpegls_encoder_get_bytes_written(encoder, &length)
        == CHARLS_JPEGLS_ERRC_SUCCESS
    else { return 0 }
    return length
  }

  // MARK: Reading

  /// Decompresses a frame; nil if its bytes are damaged.
  func decoded(_ bytes: [UInt8]) -> [UInt8]? {
    var reader = ByteReader(bytes.span.bytes)
    guard let width = try? reader.uint32(), let height = try? reader.uint32(),
      let luma = try? reader.uint32(), let chroma = try? reader.uint32(),
      let planes = Planes(width: Int(width), height: Int(height)),
      bytes.count == ContentCoding.headerLength + Int(luma) + Int(chroma)
    else { return nil }
    let middle = ContentCoding.headerLength + Int(luma)
    var isGood = false
    let samples = unsafe [UInt8](unsafeUninitializedCapacity: planes.byteCount) { target, count in
      guard let base = target.baseAddress else { return }
      unsafe bytes.withUnsafeBufferPointer { source in
        let (first, second) = (
          unsafe UnsafeBufferPointer(rebasing: source[ContentCoding.headerLength..<middle]),
          unsafe UnsafeBufferPointer(rebasing: source[middle...])
        )
        isGood =
          unsafe ContentCoding.pixels(first, planes.luma.width, planes.luma.height, into: base)
          && ContentCoding.pixels(
            second, planes.chroma.width, planes.chroma.height, into: base + planes.luma.count)
      }
      if isGood { count = planes.byteCount }
    }
    return isGood ? samples : nil
  }

  /// Decompresses an image; returns false if it is damaged or its size is not the expected one.
  private static func pixels(
    _ image: UnsafeBufferPointer<UInt8>, _ width: Int, _ height: Int,
    into target: UnsafeMutablePointer<UInt8>
  ) -> Bool {
    guard let base = image.baseAddress, let decoder = charls_jpegls_decoder_create()
    else { return false }
    defer { unsafe charls_jpegls_decoder_destroy(decoder) }
    var frame = charls_frame_info()
    guard
      unsafe charls_jpegls_decoder_set_source_buffer(decoder, base, image.count)
        == CHARLS_JPEGLS_ERRC_SUCCESS,
      unsafe charls_jpegls_decoder_read_header(decoder) == CHARLS_JPEGLS_ERRC_SUCCESS,
      unsafe charls_jpegls_decoder_get_frame_info(decoder, &frame) == CHARLS_JPEGLS_ERRC_SUCCESS,
      frame.width == UInt32(width), frame.height == UInt32(height), frame.bits_per_sample == 8,
      frame.component_count == 1
    else { return false }
    return unsafe charls_jpegls_decoder_decode_to_buffer(decoder, target, width * height, 0)
      == CHARLS_JPEGLS_ERRC_SUCCESS
  }

  /// The two images of an I420 frame: the Y plane, and the U plane stacked on the V plane.
  private struct Planes {
    var luma: (width: Int, height: Int, count: Int)
    var chroma: (width: Int, height: Int)
    let byteCount: Int

    /// Computes the sizes of the images; fails if a frame of this size is not compressed.
    init?(width: Int, height: Int) {
      let sides = 1...65_535
      guard sides.contains(width), sides.contains(height),
        width * height <= ContentCoding.pixelMaximum, (height + 1) / 2 * 2 <= sides.upperBound
      else { return nil }
      luma = (width, height, width * height)
      chroma = ((width + 1) / 2, (height + 1) / 2 * 2)
      byteCount = I420Buffer.byteCount(width: width, height: height)
    }
  }
}

// MARK: - WireStore

/// The tables `wire` and `media`: the bytes of all datagrams and of all frames, each as a stream
/// that is cut into pieces of one page.
///
/// Rows with a kilobyte of payload would leave up to a tenth of their pages unused, and larger rows
/// up to a quarter. A stream leaves nothing unused.
enum WirePiece {
  /// The size of a full piece in bytes: with pages of 8 KiB, the largest row without an overflow
  /// page.
  static let length = 8_152
  /// The maximum number of bytes that a row may share with an earlier row.
  ///
  /// Packets on usual paths are shorter. Without a maximum, a small file could claim gigabytes.
  static let repeatedMaximum = 2_048
}

/// Appends bytes to the `wire` or `media` stream of a take.
final class WireStore {
  private let insert: SQLiteStatement
  private var piece: Int64 = 0
  private var rest: [UInt8] = []
  private var isFlushed = true

  init(_ insert: consuming SQLiteStatement) { self.insert = insert }

  /// The position of the next byte that is appended.
  var position: Int64 { piece * Int64(WirePiece.length) + Int64(rest.count) }

  /// Appends the bytes in a column of a row.
  ///
  /// - Returns: the number of bytes; nil if the column has none.
  func append(_ rows: borrowing RowList, _ row: Int, _ column: Int) throws(SQLiteError) -> Int? {
    guard let place = rows.place(row, column), case .blob = rows.bytes.form(at: place) else {
      return nil
    }
    return try rows.bytes.withContents(at: place) { bytes throws(SQLiteError) in
      try append(bytes)
      return bytes.count
    }
  }

  /// Appends bytes, and writes every piece that is full.
  private func append(_ bytes: UnsafeRawBufferPointer) throws(SQLiteError) {
    isFlushed = isFlushed && bytes.isEmpty
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + WirePiece.length - rest.count)
      rest.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
      start = end
      guard rest.count == WirePiece.length else { return }
      try write()
      rest.removeAll(keepingCapacity: true)
      piece += 1
    }
  }

  /// Writes the incomplete last piece; it is replaced when more bytes follow.
  func flush() throws(SQLiteError) {
    guard !isFlushed else { return }
    isFlushed = true
    if !rest.isEmpty { try write() }
  }

  private func write() throws(SQLiteError) {
    let bytes = rest
    try bytes.span.bytes.withUnsafeBytes { bytes throws(SQLiteError) in
      try insert.insert(row: piece, blob: bytes)
    }
  }
}

/// Reads the `wire` or `media` stream of a take from its beginning.
final class WireCursor {
  private let statement: SQLiteStatement
  private var nextPiece: Int64 = 0
  /// The unread bytes of the current piece, borrowed from the statement until it is stepped.
  private var piece = UnsafeRawBufferPointer(start: nil, count: 0)
  private var isFull = true
  /// The position of the next byte.
  private(set) var position: Int64 = 0
  /// Reads bytes that several rows share; nil if each row has its own.
  private let repeated: WireReader?

  /// Begins with the first byte of `wire` or `media`.
  ///
  /// - Parameter format: the take's format.
  init(
    _ connection: borrowing SQLiteConnection, _ stream: ByteStream, format: Int64
  ) throws(SQLiteError) {
    statement = try connection.prepare("SELECT piece, bytes FROM \(stream.rawValue) ORDER BY piece")
    let repeats = stream == .wire && format >= RelayedRow.since
    repeated = try repeats ? WireReader(connection) : nil
  }

  /// Appends bytes that are stored for an earlier row; returns false if there are too many to share
  /// or they were not read before.
  func read(
    _ count: Int64, again position: Int64, into values: inout ValueBytes
  ) throws(SQLiteError) -> Bool {
    guard let repeated, position >= 0, (1...Int64(WirePiece.repeatedMaximum)).contains(count),
      position <= self.position - count
    else { return false }
    let bytes = try repeated.bytes(at: position, count: count)
    values.append(blob: bytes)
    return bytes.count == Int(count)
  }

  /// Appends the next bytes as a blob.
  ///
  /// - Returns: false if the stream is too short or damaged; the blob is then incomplete.
  func read(_ count: Int64, into values: inout ValueBytes) throws(SQLiteError) -> Bool {
    // The count comes from the file and may be anything.
    guard count >= 0, let length = Int(exactly: count) else { return false }
    values.beginBlob(length)
    return try read(count) { values.append($0) }
  }

  /// Passes the next bytes to a closure, piece by piece; returns false if there are fewer.
  private func read(
    _ count: Int64, _ body: (UnsafeRawBufferPointer) -> Void
  ) throws(SQLiteError) -> Bool {
    guard count >= 0 else { return false }
    var rest = count
    while rest > 0 {
      if piece.isEmpty {
        guard try readPiece() else { return false }
      }
      let part = Int(min(rest, Int64(piece.count)))
      body(UnsafeRawBufferPointer(rebasing: piece[..<part]))
      piece = UnsafeRawBufferPointer(rebasing: piece[part...])
      rest -= Int64(part)
    }
    position += count
    return true
  }

  /// Returns whether all bytes of the stream were read.
  func isAtEnd() throws(SQLiteError) -> Bool {
    guard piece.isEmpty else { return false }
    return try !statement.step()
  }

  private func readPiece() throws(SQLiteError) -> Bool {
    guard isFull, try statement.step(), statement.exactInteger(0) == nextPiece else { return false }
    guard statement.storageClass(1) == .blob else { return false }
    piece = statement.lentBytes(1)
    isFull = piece.count == WirePiece.length
    nextPiece += 1
    return !piece.isEmpty && piece.count <= WirePiece.length
  }
}
