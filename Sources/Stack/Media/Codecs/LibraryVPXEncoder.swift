import CVPX
import RTP
import Wire

/// A VP8 or VP9 encoder using libvpx, for live video: constant bit rate, no look-ahead, one thread.
///
/// A negative `cpuUsed` fixes VP8's effort; with a positive value libvpx would measure its run
/// time, and the bytes would depend on the machine's load. For VP9, libvpx never measures it.
final class LibraryVPXEncoder: VideoEncoding {
  /// VP8's largest width and height (RFC 6386 section 9.1), used for VP9 too.
  static let largestSide = 16_383

  private let settings: VideoSettings
  private let context: UnsafeMutablePointer<vpx_codec_ctx_t>
  private var configuration = vpx_codec_enc_cfg_t()
  private var isOpen = false
  private var bitrate: UInt64
  /// libvpx's presentation time, which must increase with every frame.
  private var presentationTime: Int64 = 0
  private var lastMediaTime: UInt32?
  /// The next frame's temporal layer.
  private var step: TemporalPattern.Step?

  init(_ settings: VideoSettings) throws(CodecError) {
    self.settings = settings
    bitrate = settings.bitrate
    unsafe context = UnsafeMutablePointer<vpx_codec_ctx_t>.allocate(capacity: 1)
    unsafe context.initialize(to: vpx_codec_ctx_t())
    try open(width: settings.width, height: settings.height)
  }

  deinit {
    if isOpen { unsafe vpx_codec_destroy(context) }
    unsafe context.deallocate()
  }

  var wantsPixels: Bool { true }

  private var isVP9: Bool { settings.codec == .vp9 }
  private var name: String { isVP9 ? "VP9" : "VP8" }
  private var interface: OpaquePointer? {
    unsafe isVP9 ? vpx_codec_vp9_cx() : vpx_codec_vp8_cx()
  }

  func setBitrate(_ bitsPerSecond: UInt64) {
    guard bitsPerSecond != bitrate else { return }
    bitrate = bitsPerSecond
    unsafe configuration.rc_target_bitrate = kilobits(bitsPerSecond)
    shareAmongLayers()
    // If this fails, the previous rate stays in effect.
    if isOpen { _ = unsafe vpx_codec_enc_config_set(context, &configuration) }
  }

  private func kilobits(_ bitsPerSecond: UInt64) -> UInt32 {
    UInt32(min(max(bitsPerSecond / 1_000, 10), 1_000_000))
  }

  func begin(_ step: TemporalPattern.Step) { self.step = step }

  /// Returns the flags for the buffers that the next frame refers to and updates.
  ///
  /// The last-frame buffer holds the base layer, and the golden frame holds the middle layer.
  private func flags(forceKey: Bool) -> vpx_enc_frame_flags_t {
    if forceKey { return vpx_enc_frame_flags_t(VPX_EFLAG_FORCE_KF) }
    guard let step, layerCount > 1 else { return 0 }
    var flags = VP8_EFLAG_NO_REF_ARF | VP8_EFLAG_NO_UPD_ARF
    if !step.refersToMiddle { flags |= VP8_EFLAG_NO_REF_GF }
    if step.layer != 1 || !step.isKept { flags |= VP8_EFLAG_NO_UPD_GF }
    // Frames above the base layer may be dropped, so they must not change the entropy contexts of
    // later frames.
    if step.layer > 0 { flags |= VP8_EFLAG_NO_UPD_LAST | VP8_EFLAG_NO_UPD_ENTROPY }
    return vpx_enc_frame_flags_t(flags)
  }

  func encode(
    _ videoFrame: I420Buffer, mediaTime: UInt32, forceKey: Bool
  ) throws(CodecError) -> EncodedVideo? {
    if unsafe Int(configuration.g_w) != videoFrame.width
      || Int(configuration.g_h) != videoFrame.height
    {
      try open(width: videoFrame.width, height: videoFrame.height)
    }
    guard isOpen else { throw CodecError(reason: "the \(name) encoder is not open") }
    advance(to: mediaTime)
    // A blank frame is encoded as grey, so that a replay without pixels makes the same encoder
    // calls in the same order.
    let samples =
      videoFrame.samples.isEmpty
      ? [UInt8](
        repeating: 128,
        count: I420Buffer.byteCount(width: videoFrame.width, height: videoFrame.height))
      : videoFrame.samples
    if layerCount > 1, let step {
      _ = unsafe vpx_codec_control_VP8E_SET_TEMPORAL_LAYER_ID(
        context, Int32(VP8E_SET_TEMPORAL_LAYER_ID.rawValue), Int32(step.layer))
    }
    let frameDuration = UInt(90_000 / max(1, settings.framesPerSecond))
    let status = unsafe samples.withUnsafeBufferPointer { buffer in
      var image = unsafe vpx_image_t(
        i420: buffer, width: videoFrame.width, height: videoFrame.height)
      return unsafe vpx_codec_encode(
        context, &image, presentationTime, max(1, frameDuration),
        flags(forceKey: forceKey), UInt(VPX_DL_REALTIME))
    }
    guard status == VPX_CODEC_OK else { throw failure("cannot encode", status) }
    return collect()
  }

  /// Advances the presentation time, which always increases, by the difference of media times.
  private func advance(to mediaTime: UInt32) {
    if let lastMediaTime {
      let step = Int32(bitPattern: mediaTime &- lastMediaTime)
      presentationTime += step > 0 ? Int64(step) : 1
    }
    lastMediaTime = mediaTime
  }

  /// Collects the encoder's output; returns nil if it dropped the frame.
  private func collect() -> EncodedVideo? {
    var bytes: [UInt8] = []
    var isKey = false
    var iterator: vpx_codec_iter_t?
    while let packet = unsafe vpx_codec_get_cx_data(context, &iterator) {
      guard unsafe packet.pointee.kind == VPX_CODEC_CX_FRAME_PKT else { continue }
      let frame = unsafe packet.pointee.data.frame
      if unsafe frame.flags & UInt32(VPX_FRAME_IS_KEY) != 0 { isKey = true }
      unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(start: frame.buf, count: frame.sz))
    }
    guard !bytes.isEmpty else { return nil }
    return EncodedVideo(bytes: bytes, isKey: isKey, quantiser: quantiser(of: bytes))
  }

  /// Returns the last encoded frame's quantiser index, on the codec's scale.
  private func quantiser(of bytes: [UInt8]) -> UInt8 {
    guard isVP9 else { return VP8BitstreamHeader(bytes.span.bytes)?.quantiser ?? 0 }
    var quantiser: Int32 = 0
    _ = unsafe vpx_codec_control_VP8E_GET_LAST_QUANTIZER(
      context, Int32(VP8E_GET_LAST_QUANTIZER.rawValue), &quantiser)
    return UInt8(clamping: quantiser)
  }

  /// Opens the encoder, or reopens it for another size; the first frame is a key frame.
  private func open(width: Int, height: Int) throws(CodecError) {
    if isOpen { unsafe vpx_codec_destroy(context) }
    isOpen = false
    let sides = 1...LibraryVPXEncoder.largestSide
    guard sides.contains(width), sides.contains(height) else {
      throw CodecError(reason: "\(name) has no pictures of \(width) by \(height)")
    }
    var status = unsafe vpx_codec_enc_config_default(interface, &configuration, 0)
    guard status == VPX_CODEC_OK else { throw failure("has no configuration", status) }
    configure(width: width, height: height)
    unsafe context.pointee = vpx_codec_ctx_t()
    status = unsafe cvpx_encoder_init(context, interface, &configuration, 0)
    guard status == VPX_CODEC_OK else { throw failure("cannot be opened", status) }
    isOpen = true
    try control()
  }

  private func configure(width: Int, height: Int) {
    configuration.g_w = UInt32(width)
    configuration.g_h = UInt32(height)
    configuration.g_timebase = vpx_rational_t(num: 1, den: 90_000)
    configuration.g_threads = 1
    configuration.g_pass = VPX_RC_ONE_PASS
    configuration.g_lag_in_frames = 0
    configuration.g_error_resilient = isVP9 ? 0 : UInt32(VPX_ERROR_RESILIENT_DEFAULT)
    configuration.rc_end_usage = VPX_CBR
    configuration.rc_target_bitrate = kilobits(bitrate)
    configuration.rc_dropframe_thresh = 0
    configuration.rc_resize_allowed = 0
    configuration.rc_min_quantizer = 2
    configuration.rc_max_quantizer = 56
    configuration.rc_undershoot_pct = 100
    configuration.rc_overshoot_pct = 15
    configuration.rc_buf_initial_sz = 500
    configuration.rc_buf_optimal_sz = 600
    configuration.rc_buf_sz = 1_000
    configuration.kf_mode = VPX_KF_AUTO
    configuration.kf_max_dist = 3_000
    configureLayers()
  }

  private var layerCount: Int { isVP9 ? 1 : settings.temporalLayers }

  /// Configures the temporal layers: half of the frames are in the highest one.
  private func configureLayers() {
    guard layerCount > 1 else { return }
    configuration.ts_number_layers = UInt32(layerCount)
    if layerCount == 2 {
      configuration.ts_periodicity = 2
      (configuration.ts_rate_decimator.0, configuration.ts_rate_decimator.1) = (2, 1)
      (configuration.ts_layer_id.0, configuration.ts_layer_id.1) = (0, 1)
    } else {
      configuration.ts_periodicity = 4
      configuration.ts_rate_decimator.0 = 4
      (configuration.ts_rate_decimator.1, configuration.ts_rate_decimator.2) = (2, 1)
      (configuration.ts_layer_id.0, configuration.ts_layer_id.1) = (0, 2)
      (configuration.ts_layer_id.2, configuration.ts_layer_id.3) = (1, 2)
    }
    shareAmongLayers()
  }

  /// Sets each temporal layer's cumulative bit rate.
  private func shareAmongLayers() {
    guard layerCount > 1 else { return }
    let total = configuration.rc_target_bitrate
    configuration.ts_target_bitrate.0 = total * (layerCount == 2 ? 6 : 4) / 10
    configuration.ts_target_bitrate.1 = layerCount == 2 ? total : total * 6 / 10
    if layerCount > 2 { configuration.ts_target_bitrate.2 = total }
  }

  private func control() throws(CodecError) {
    // The limit for key frames is half of the optimal buffer, in percent of an average frame.
    let intraPercent = max(300, 600 * min(settings.framesPerSecond, 240) / 20)
    let statuses = unsafe [
      vpx_codec_control_VP8E_SET_CPUUSED(
        context, Int32(VP8E_SET_CPUUSED.rawValue), settings.cpuUsed),
      vpx_codec_control_VP8E_SET_STATIC_THRESHOLD(
        context, Int32(VP8E_SET_STATIC_THRESHOLD.rawValue), 1),
      vpx_codec_control_VP8E_SET_MAX_INTRA_BITRATE_PCT(
        context, Int32(VP8E_SET_MAX_INTRA_BITRATE_PCT.rawValue), UInt32(clamping: intraPercent)),
    ]
    let own = (isVP9 ? controlVP9() : controlVP8()) + (settings.isScreen ? controlScreen() : [])
    for status in statuses + own where status != VPX_CODEC_OK {
      throw failure("refuses a setting", status)
    }
  }

  private func controlVP8() -> [vpx_codec_err_t] {
    unsafe [
      vpx_codec_control_VP8E_SET_NOISE_SENSITIVITY(
        context, Int32(VP8E_SET_NOISE_SENSITIVITY.rawValue), 0),
      vpx_codec_control_VP8E_SET_TOKEN_PARTITIONS(
        context, Int32(VP8E_SET_TOKEN_PARTITIONS.rawValue), 0),
    ]
  }

  private func controlVP9() -> [vpx_codec_err_t] {
    unsafe [
      vpx_codec_control_VP9E_SET_NOISE_SENSITIVITY(
        context, Int32(VP9E_SET_NOISE_SENSITIVITY.rawValue), 0),
      vpx_codec_control_VP9E_SET_TILE_COLUMNS(context, Int32(VP9E_SET_TILE_COLUMNS.rawValue), 0),
      vpx_codec_control_VP9E_SET_ROW_MT(context, Int32(VP9E_SET_ROW_MT.rawValue), 0),
      // Cyclic refresh suits a constant bit rate.
      vpx_codec_control_VP9E_SET_AQ_MODE(context, Int32(VP9E_SET_AQ_MODE.rawValue), 3),
    ]
  }

  private func controlScreen() -> [vpx_codec_err_t] {
    if isVP9 {
      return unsafe [
        vpx_codec_control_VP9E_SET_TUNE_CONTENT(
          context, Int32(VP9E_SET_TUNE_CONTENT.rawValue), Int32(VP9E_CONTENT_SCREEN.rawValue))
      ]
    }
    return unsafe [
      vpx_codec_control_VP8E_SET_SCREEN_CONTENT_MODE(
        context, Int32(VP8E_SET_SCREEN_CONTENT_MODE.rawValue), 1)
    ]
  }

  private func failure(_ what: String, _ status: vpx_codec_err_t) -> CodecError {
    CodecError(reason: "the \(name) encoder \(what): \(vpxReason(status))")
  }
}

/// Returns libvpx's text for an error code.
func vpxReason(_ status: vpx_codec_err_t) -> String {
  unsafe vpx_codec_err_to_string(status).map { unsafe String(cString: $0) }
    ?? "error \(status.rawValue)"
}

extension vpx_image_t {
  /// Describes I420 samples in one array; libvpx only reads them.
  init(i420 samples: UnsafeBufferPointer<UInt8>, width: Int, height: Int) {
    unsafe self.init()
    let chromaWidth = (width + 1) / 2
    let chromaHeight = (height + 1) / 2
    let luma = unsafe UnsafeMutablePointer(mutating: samples.baseAddress)
    unsafe fmt = VPX_IMG_FMT_I420
    unsafe bit_depth = 8
    unsafe bps = 12
    unsafe w = UInt32(width)
    unsafe h = UInt32(height)
    unsafe d_w = UInt32(width)
    unsafe d_h = UInt32(height)
    unsafe x_chroma_shift = 1
    unsafe y_chroma_shift = 1
    unsafe planes.0 = luma
    unsafe planes.1 = luma.map { unsafe $0 + width * height }
    unsafe planes.2 = luma.map { unsafe $0 + width * height + chromaWidth * chromaHeight }
    unsafe stride.0 = Int32(width)
    unsafe stride.1 = Int32(chromaWidth)
    unsafe stride.2 = Int32(chromaWidth)
  }
}
