import CCharLS
import Media
import Wire

/// How the samples of captured video frames are stored smaller than they are, without a loss.
///
/// The rows say nothing of it: what is hashed and compared is always what was captured. Each
/// video frame stands for itself, so that a take can be cut, joined and read in any place.
enum ContentCoding: String {
  /// JPEG-LS (ISO/IEC 14495-1) of the Y plane, and of the U plane above the V plane.
  case jpegLS = "jpeg-ls"

  /// Larger video frames are stored as they are: a damaged size must not cost gigabytes.
  private static let pixelMaximum = 4_096 * 4_096
  /// The numbers before the two images.
  private static let headerLength = 16

  // MARK: Writing

  /// The stored form of a row of `content` that holds a video frame and is worth it; nil for
  /// others.
  ///
  /// - Parameter range: the rows of the step; the row that names the content tells the size.
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

  /// The I420 samples of a video frame as two images; nil when it is too large, or they do not fit.
  static func encoded(_ samples: [UInt8], width: Int, height: Int) -> [UInt8]? {
    guard let planes = Planes(width: width, height: height), planes.byteCount == samples.count
    else { return nil }
    // An image of noise is a little larger than its samples.
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

  /// Writes one image; returns its length, 0 when the library refuses.
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

  /// What was stored; nil when it is damaged.
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

  /// Reads one image of a size; false when it is damaged, or of another size.
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

  /// The planes of an I420 video frame as images: Y, and U above V.
  private struct Planes {
    var luma: (width: Int, height: Int, count: Int)
    var chroma: (width: Int, height: Int)
    let byteCount: Int

    /// Nil for sizes that are not stored so.
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
