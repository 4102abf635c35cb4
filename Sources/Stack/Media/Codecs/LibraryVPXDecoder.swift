import CVPX
import RTP
import Wire

/// A VP8 or VP9 decoder using libvpx on one thread.
///
/// At the start and after an error it refuses frames until the next key frame, because frames that
/// refer to a broken frame would be shown corrupted.
final class LibraryVPXDecoder: VideoDecoding {
  /// The maximum number of pixels in a frame, so that a forged header cannot make libvpx allocate
  /// gigabytes.
  static let mostPixels = 4_096 * 4_096

  private let isVP9: Bool
  private let context: UnsafeMutablePointer<vpx_codec_ctx_t>
  private var isOpen = false
  private var needsKey = true

  init(_ codec: CodecName) throws(CodecError) {
    isVP9 = codec == .vp9
    unsafe context = UnsafeMutablePointer<vpx_codec_ctx_t>.allocate(capacity: 1)
    unsafe context.initialize(to: vpx_codec_ctx_t())
    var configuration = vpx_codec_dec_cfg_t(threads: 1, w: 0, h: 0)
    let interface = unsafe isVP9 ? vpx_codec_vp9_dx() : vpx_codec_vp8_dx()
    let status = unsafe cvpx_decoder_init(context, interface, &configuration, 0)
    guard status == VPX_CODEC_OK else {
      throw CodecError(reason: "cannot create a \(name) decoder: \(vpxReason(status))")
    }
    isOpen = true
  }

  deinit {
    if isOpen { unsafe vpx_codec_destroy(context) }
    unsafe context.deallocate()
  }

  func decode(_ bytes: [UInt8]) throws(CodecError) -> DecodedVideo {
    guard let header = FrameHeader(bytes.span.bytes, isVP9: isVP9) else {
      throw refused("the frame has no \(name) header")
    }
    if needsKey && !header.isKey { throw refused("a key frame is awaited") }
    if let (width, height) = header.size {
      guard width > 0, height > 0, width * height <= LibraryVPXDecoder.mostPixels
      else { throw refused("pictures of \(width) by \(height)") }
    }
    let status = unsafe bytes.withUnsafeBufferPointer { buffer in
      unsafe vpx_codec_decode(
        context, buffer.baseAddress, UInt32(clamping: buffer.count), nil, 0)
    }
    guard status == VPX_CODEC_OK else { throw refused(vpxReason(status)) }
    // VP9 reports a corrupt frame only when the frame is fetched.
    var iterator: vpx_codec_iter_t?
    let image = unsafe vpx_codec_get_frame(context, &iterator)
    var corrupted: Int32 = 0
    let asked = unsafe vpx_codec_control_VP8D_GET_FRAME_CORRUPTED(
      context, Int32(VP8D_GET_FRAME_CORRUPTED.rawValue), &corrupted)
    guard asked == VPX_CODEC_OK, corrupted == 0 else { throw refused("the frame is corrupt") }
    guard let image = unsafe image, let videoFrame = unsafe I420Buffer(copying: image.pointee)
    else { throw refused("the frame is not for showing") }
    needsKey = false
    return DecodedVideo(videoFrame: videoFrame, quantiser: header.quantiser ?? lastQuantiser)
  }

  private var name: String { isVP9 ? "VP9" : "VP8" }

  /// The last frame's quantiser index, on VP9's scale.
  private var lastQuantiser: UInt8 {
    var quantiser: Int32 = 0
    _ = unsafe vpx_codec_control_VPXD_GET_LAST_QUANTIZER(
      context, Int32(VPXD_GET_LAST_QUANTIZER.rawValue), &quantiser)
    return UInt8(clamping: quantiser)
  }

  private func refused(_ reason: String) -> CodecError {
    needsKey = true
    return CodecError(reason: "\(name) cannot decode: \(reason)")
  }
}

/// A frame header, checked before libvpx gets the frame.
private struct FrameHeader {
  var isKey: Bool
  /// The size; nil if inherited from earlier frames.
  var size: (width: Int, height: Int)?
  /// The quantiser; nil if only libvpx knows it.
  var quantiser: UInt8?

  init?(_ bytes: RawSpan, isVP9: Bool) {
    if isVP9 {
      guard let header = try? VP9FrameHeader(parsing: bytes) else { return nil }
      isKey = header.isKey
      if header.width > 0 { size = (header.width, header.height) }
    } else {
      guard let header = VP8BitstreamHeader(bytes) else { return nil }
      isKey = header.isKey
      if isKey { size = (header.width, header.height) }
      quantiser = header.quantiser
    }
  }
}

extension I420Buffer {
  fileprivate convenience init?(copying image: vpx_image_t) {
    guard unsafe image.fmt == VPX_IMG_FMT_I420 else { return nil }
    unsafe self.init(
      copying: [image.planes.0, image.planes.1, image.planes.2],
      strides: [Int(image.stride.0), Int(image.stride.1), Int(image.stride.2)],
      width: Int(image.d_w), height: Int(image.d_h))
  }

  /// Copies the three planes of a decoder's output, without row padding; nil if a plane is missing
  /// or the size is not positive.
  convenience init?(
    copying planes: [UnsafeMutablePointer<UInt8>?], strides: [Int], width: Int, height: Int
  ) {
    guard width > 0, height > 0, unsafe planes.allSatisfy({ unsafe $0 != nil }) else { return nil }
    let count = I420Buffer.byteCount(width: width, height: height)
    let samples = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      for plane in 0..<3 {
        let columns = plane == 0 ? width : (width + 1) / 2
        let rows = plane == 0 ? height : (height + 1) / 2
        guard var source = unsafe planes[plane], let start = buffer.baseAddress else { return }
        var target = unsafe start + initialized
        for _ in 0..<rows {
          unsafe target.initialize(from: source, count: columns)
          unsafe target += columns
          unsafe source += strides[plane]
        }
        initialized += columns * rows
      }
    }
    self.init(width: width, height: height, samples: samples)
  }
}

// MARK: - VP8BitstreamHeader

/// The fields at the start of a VP8 frame that are read without a decoder (RFC 6386 section 9).
package struct VP8BitstreamHeader: Hashable, Sendable {
  /// Whether a decoder can start with the frame.
  package var isKey: Bool
  /// The size in pixels; 0 unless the frame is a key frame.
  package var width: Int
  package var height: Int
  /// The quantiser index `y_ac_qi`, 0 to 127 (RFC 6386 section 9.6).
  package var quantiser: UInt8

  /// Parses the frame tag and the first partition up to the quantiser; nil if they are truncated,
  /// or a key frame has no start code.
  package init?(_ bytes: RawSpan) {
    guard bytes.byteCount >= 4 else { return nil }
    var offset = 3
    isKey = bytes.byte(at: 0) & 1 == 0
    width = 0
    height = 0
    if isKey {
      guard bytes.byteCount >= 11, bytes.byte(at: 3) == 0x9D, bytes.byte(at: 4) == 0x01,
        bytes.byte(at: 5) == 0x2A
      else { return nil }
      width = Int(bytes.byte(at: 6)) | Int(bytes.byte(at: 7) & 0x3F) << 8
      height = Int(bytes.byte(at: 8)) | Int(bytes.byte(at: 9) & 0x3F) << 8
      offset = 10
    }
    var decoder = BoolDecoder(bytes.extracting(offset..<bytes.byteCount))
    if isKey { decoder.skip(2) }  // color_space, clamping_type
    decoder.skipSegmentation()
    decoder.skip(1 + 6 + 3)  // filter_type, loop_filter_level, sharpness_level
    decoder.skipFilterAdjustments()
    decoder.skip(2)  // log2_nbr_of_dct_partitions
    quantiser = UInt8(decoder.literal(7))
    guard !decoder.ranOut else { return nil }
  }
}

/// The boolean entropy decoder (RFC 6386 section 7), limited to flags with even odds.
private struct BoolDecoder: ~Escapable {
  private let bytes: RawSpan
  private var offset = 0
  /// Bits not consumed yet, from the highest bit down.
  private var window: UInt32 = 0
  private var bitsLeft = 0
  private var range: UInt32 = 255
  /// Whether more bits were requested than exist.
  private(set) var ranOut = false

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan) {
    self.bytes = bytes
    fill()
  }

  private mutating func fill() {
    while bitsLeft <= 24 {
      guard offset < bytes.byteCount else { return }
      window |= UInt32(bytes.byte(at: offset)) << UInt32(24 - bitsLeft)
      offset += 1
      bitsLeft += 8
    }
  }

  /// Reads a flag with even odds.
  mutating func flag() -> Bool {
    fill()
    let split = 1 + ((range - 1) * 128) >> 8
    let isSet = window >= split << 24
    if isSet {
      range -= split
      window -= split << 24
    } else {
      range = split
    }
    let shift = UInt32(max(0, range.leadingZeroBitCount - 24))
    range <<= shift
    window <<= shift
    bitsLeft -= Int(shift)
    if bitsLeft < 0 {
      ranOut = true
      bitsLeft = 0
    }
    return isSet
  }

  /// Reads an unsigned number, highest bit first.
  mutating func literal(_ count: Int) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<count { value = value << 1 | (flag() ? 1 : 0) }
    return value
  }

  mutating func skip(_ count: Int) { for _ in 0..<count { _ = flag() } }

  private mutating func skipOptional(times: Int, bits: Int) {
    for _ in 0..<times where flag() { skip(bits) }
  }

  /// Skips the segmentation header: map, quantisers and filter levels (section 9.3).
  mutating func skipSegmentation() {
    guard flag() else { return }
    let updatesMap = flag()
    if flag() {
      skip(1)
      skipOptional(times: 4, bits: 7 + 1)
      skipOptional(times: 4, bits: 6 + 1)
    }
    if updatesMap { skipOptional(times: 3, bits: 8) }
  }

  /// Skips loop filter adjustments by reference frame and mode (section 9.4).
  mutating func skipFilterAdjustments() {
    guard flag(), flag() else { return }
    skipOptional(times: 8, bits: 6 + 1)
  }
}
