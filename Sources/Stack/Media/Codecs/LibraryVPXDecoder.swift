import CVPX
import RTP
import Wire

/// A VP8 or VP9 decoder by libvpx on one thread.
///
/// After an error and at the beginning it refuses frames until the next key frame, because frames
/// that refer to a broken one would be shown corrupted.
final class LibraryVPXDecoder: VideoDecoding {
  /// The most pixels of a frame: a forged header must not make libvpx allocate gigabytes.
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
    // VP9 reports a corrupt frame only when it is fetched.
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

  /// The quantiser index of the last frame, on VP9's scale.
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

/// Checked before libvpx gets a frame.
private struct FrameHeader {
  var isKey: Bool
  /// nil if the size is that of earlier frames.
  var size: (width: Int, height: Int)?
  /// nil if only libvpx knows it.
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

  /// Copies the three planes of a decoder's output, without row padding.
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
