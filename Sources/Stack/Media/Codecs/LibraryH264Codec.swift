#if canImport(COpenH264)
  import COpenH264
  import RTP
  import Wire

  /// An H.264 encoder using OpenH264 for live video: constrained baseline, on one thread.
  ///
  /// Rate control changes the quantiser and, once that reaches its limit, drops frames. It uses
  /// frame times instead of a clock, and with one thread nothing depends on the machine's load, so
  /// equal inputs produce equal bytes on the same kind of processor.
  final class LibraryH264Encoder: VideoEncoding {
    /// The smallest width and height that OpenH264 accepts.
    static let leastSide = 16
    /// The bit rates that OpenH264 accepts, in bits per second.
    private static let bitrates: ClosedRange<UInt64> = 10_000...100_000_000
    /// The frame rates that OpenH264 accepts.
    private static let frameRates = 1.0...60.0
    /// The window for measuring the frame rate: one second in the 90 kHz clock.
    private static let rateWindow: Int64 = 90_000

    private let settings: VideoSettings
    private let encoder: UnsafeMutablePointer<ISVCEncoder?>
    private let calls: ISVCEncoderVtbl
    private let frame: UnsafeMutablePointer<SFrameBSInfo>
    private var isOpen = false
    private var size = (width: 0, height: 0)
    private var bitrate: UInt64
    private var frameRate: Double
    /// Presentation time in units of 1/90000 s, increasing with every frame.
    private var presentationTime: Int64 = 0
    private var lastMediaTime: UInt32?
    /// The start of the second being measured, and the frames since then.
    private var rateBegan: Int64 = 0
    private var rateFrames = 0
    private var quantisers = H264Quantisers()

    init(_ settings: VideoSettings) throws(CodecError) {
      self.settings = settings
      bitrate = settings.bitrate
      frameRate = Double(settings.framesPerSecond)
      var made: UnsafeMutablePointer<ISVCEncoder?>?
      guard unsafe WelsCreateSVCEncoder(&made) == 0, let made = unsafe made,
        let calls = unsafe made.pointee?.pointee
      else { throw CodecError(reason: "cannot create an H.264 encoder") }
      unsafe encoder = made
      self.calls = calls
      unsafe frame = UnsafeMutablePointer<SFrameBSInfo>.allocate(capacity: 1)
      unsafe frame.initialize(to: SFrameBSInfo())
      var quiet = Int32(WELS_LOG_QUIET)
      _ = unsafe calls.SetOption?(encoder, ENCODER_OPTION_TRACE_LEVEL, &quiet)
      try open(width: settings.width, height: settings.height)
    }

    deinit {
      if isOpen { _ = unsafe calls.Uninitialize?(encoder) }
      unsafe WelsDestroySVCEncoder(encoder)
      unsafe frame.deallocate()
    }

    var wantsPixels: Bool { true }

    func setBitrate(_ bitsPerSecond: UInt64) {
      guard bitsPerSecond != bitrate else { return }
      bitrate = bitsPerSecond
      guard isOpen else { return }
      var wanted = SBitrateInfo(iLayer: SPATIAL_LAYER_ALL, iBitrate: encoderBitrate)
      // If this fails, the previous rate stays in effect.
      _ = unsafe calls.SetOption?(encoder, ENCODER_OPTION_BITRATE, &wanted)
    }

    private var encoderBitrate: Int32 {
      let range = LibraryH264Encoder.bitrates
      return Int32(clamping: min(max(bitrate, range.lowerBound), range.upperBound))
    }

    func encode(
      _ videoFrame: I420Buffer, mediaTime: UInt32, forceKey: Bool
    ) throws(CodecError) -> EncodedVideo? {
      if size != (videoFrame.width, videoFrame.height) {
        try open(width: videoFrame.width, height: videoFrame.height)
      }
      guard isOpen else { throw CodecError(reason: "the H.264 encoder is not open") }
      advance(to: mediaTime)
      if forceKey, unsafe copenh264_force_key(encoder) != 0 {
        throw CodecError(reason: "the H.264 encoder makes no key frame")
      }
      // A blank frame is encoded as grey, as in VP8 and VP9.
      let samples =
        videoFrame.samples.isEmpty
        ? [UInt8](
          repeating: 128,
          count: I420Buffer.byteCount(width: videoFrame.width, height: videoFrame.height))
        : videoFrame.samples
      let status = unsafe copenh264_encode(
        encoder, samples, Int32(videoFrame.width), Int32(videoFrame.height), presentationTime / 90,
        frame)
      guard status == 0 else {
        throw CodecError(reason: "the H.264 encoder cannot encode: error \(status)")
      }
      return collect()
    }

    /// Extends media time across wrap-arounds and measures the real frame rate, because the encoder
    /// divides the bit rate by the frame rate it expects.
    private func advance(to mediaTime: UInt32) {
      if let lastMediaTime {
        let step = Int32(bitPattern: mediaTime &- lastMediaTime)
        presentationTime += step > 0 ? Int64(step) : 1
      }
      lastMediaTime = mediaTime
      let elapsed = presentationTime - rateBegan
      guard elapsed >= LibraryH264Encoder.rateWindow else {
        rateFrames += 1
        return
      }
      let range = LibraryH264Encoder.frameRates
      let measured = Double(rateFrames) * 90_000 / Double(elapsed)
      let rate = min(max(measured, range.lowerBound), range.upperBound)
      if abs(rate - frameRate) * 10 > frameRate {
        frameRate = rate
        var told = Float(rate)
        _ = unsafe calls.SetOption?(encoder, ENCODER_OPTION_FRAME_RATE, &told)
      }
      (rateBegan, rateFrames) = (presentationTime, 1)
    }

    /// Collects a frame's units; returns nil if the encoder dropped the frame.
    private func collect() -> EncodedVideo? {
      let kind = unsafe frame.pointee.eFrameType
      guard kind != videoFrameTypeSkip, kind != videoFrameTypeInvalid else { return nil }
      var bytes: [UInt8] = []
      let layers = unsafe UnsafeBufferPointer(
        start: copenh264_layers(frame), count: Int(max(0, frame.pointee.iLayerNum)))
      for layer in unsafe layers {
        let lengths = unsafe UnsafeBufferPointer(
          start: layer.pNalLengthInByte, count: Int(max(0, layer.iNalCount)))
        let count = unsafe lengths.reduce(0) { $0 + Int($1) }
        unsafe bytes.append(contentsOf: UnsafeBufferPointer(start: layer.pBsBuf, count: count))
      }
      guard !bytes.isEmpty else { return nil }
      let isKey = kind == videoFrameTypeIDR
      return EncodedVideo(
        bytes: bytes, isKey: isKey, quantiser: quantisers.mean(of: bytes.span.bytes) ?? 0)
    }

    /// Opens the encoder, or reopens it for another size; the first frame is a key frame.
    private func open(width: Int, height: Int) throws(CodecError) {
      if isOpen { _ = unsafe calls.Uninitialize?(encoder) }
      isOpen = false
      let sides = LibraryH264Encoder.leastSide...LibraryVPXEncoder.largestSide
      guard sides.contains(width), sides.contains(height) else {
        throw CodecError(
          reason: "H.264 is not encoded at \(width) by \(height): each side needs 16 pixels")
      }
      var parameters = SEncParamExt()
      guard unsafe calls.GetDefaultParams?(encoder, &parameters) == 0 else {
        throw CodecError(reason: "the H.264 encoder has no configuration")
      }
      configure(&parameters, width: width & ~1, height: height & ~1)
      guard unsafe calls.InitializeExt?(encoder, &parameters) == 0 else {
        throw CodecError(reason: "the H.264 encoder cannot be opened for \(width) by \(height)")
      }
      isOpen = true
      size = (width, height)
    }

    private func configure(_ parameters: inout SEncParamExt, width: Int, height: Int) {
      let range = LibraryH264Encoder.frameRates
      let rate = Float(min(max(frameRate, range.lowerBound), range.upperBound))
      parameters.iUsageType =
        settings.isScreen ? SCREEN_CONTENT_REAL_TIME : CAMERA_VIDEO_REAL_TIME
      parameters.iPicWidth = Int32(width)
      parameters.iPicHeight = Int32(height)
      parameters.iTargetBitrate = encoderBitrate
      parameters.iMaxBitrate = 0
      parameters.iRCMode = RC_BITRATE_MODE
      parameters.fMaxFrameRate = rate
      parameters.bEnableFrameSkip = true
      // After the first frame, key frames are encoded only on request.
      parameters.uiIntraPeriod = 0
      parameters.uiMaxNalSize = 0
      parameters.iMultipleThreadIdc = 1
      parameters.bUseLoadBalancing = false
      parameters.eSpsPpsIdStrategy = CONSTANT_ID
      parameters.bEnableAdaptiveQuant = false
      parameters.iSpatialLayerNum = 1
      parameters.iTemporalLayerNum = 1
      parameters.sSpatialLayers.0.iVideoWidth = Int32(width)
      parameters.sSpatialLayers.0.iVideoHeight = Int32(height)
      parameters.sSpatialLayers.0.fFrameRate = rate
      parameters.sSpatialLayers.0.iSpatialBitrate = encoderBitrate
      parameters.sSpatialLayers.0.iMaxSpatialBitrate = 0
      // OpenH264 adds the constraint flags of constrained baseline, and the level required by size
      // and rate.
      parameters.sSpatialLayers.0.uiProfileIdc = PRO_BASELINE
      parameters.sSpatialLayers.0.sSliceArgument.uiSliceNum = 1
      parameters.sSpatialLayers.0.sSliceArgument.uiSliceMode = SM_SINGLE_SLICE
      if let limit = settings.unitLimit {
        parameters.sSpatialLayers.0.sSliceArgument.uiSliceMode = SM_SIZELIMITED_SLICE
        parameters.sSpatialLayers.0.sSliceArgument.uiSliceSizeConstraint = UInt32(
          clamping: max(limit, 200))
      }
    }
  }

  // MARK: - Decoder

  /// An H.264 decoder using OpenH264 on the calling thread, without error concealment.
  ///
  /// Like the VP8 and VP9 decoders, it refuses frames at the start and after an error, until the
  /// next key frame.
  final class LibraryH264Decoder: VideoDecoding {
    static var version: String {
      var version = OpenH264Version()
      unsafe WelsGetCodecVersionEx(&version)
      return "openh264 \(version.uMajor).\(version.uMinor).\(version.uRevision)"
    }

    private let decoder: UnsafeMutablePointer<ISVCDecoder?>
    private let calls: ISVCDecoderVtbl
    private var needsKey = true

    init() throws(CodecError) {
      var made: UnsafeMutablePointer<ISVCDecoder?>?
      guard unsafe WelsCreateDecoder(&made) == 0, let made = unsafe made,
        let calls = unsafe made.pointee?.pointee
      else { throw CodecError(reason: "cannot create an H.264 decoder") }
      unsafe decoder = made
      self.calls = calls
      var quiet = Int32(WELS_LOG_QUIET)
      _ = unsafe calls.SetOption?(decoder, DECODER_OPTION_TRACE_LEVEL, &quiet)
      var parameters = SDecodingParam()
      unsafe parameters.uiTargetDqLayer = .max
      unsafe parameters.eEcActiveIdc = ERROR_CON_DISABLE
      unsafe parameters.sVideoProperty.eVideoBsType = VIDEO_BITSTREAM_AVC
      guard unsafe calls.Initialize?(decoder, &parameters) == 0 else {
        throw CodecError(reason: "cannot set up an H.264 decoder")
      }
    }

    deinit {
      _ = unsafe calls.Uninitialize?(decoder)
      unsafe WelsDestroyDecoder(decoder)
    }

    func decode(_ bytes: [UInt8]) throws(CodecError) -> DecodedVideo {
      guard let look = CodecName.h264.codec?.look?(bytes.span.bytes), look.hasFrame else {
        throw refused("no video frame is in the frame")
      }
      if needsKey && !look.isKey { throw refused("a key frame is awaited") }
      if let (width, height) = look.size {
        guard width > 0, height > 0, width * height <= LibraryVPXDecoder.mostPixels
        else { throw refused("video frames of \(width) by \(height)") }
      }
      var planes:
        (
          UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt8>?,
          UnsafeMutablePointer<UInt8>?
        ) = (nil, nil, nil)
      var shown = SBufferInfo()
      let state = unsafe withUnsafeMutablePointer(to: &planes) { planes in
        unsafe planes.withMemoryRebound(to: UnsafeMutablePointer<UInt8>?.self, capacity: 3) {
          planes in
          unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe calls.DecodeFrameNoDelay?(
              decoder, buffer.baseAddress, Int32(clamping: buffer.count), planes, &shown)
          }
        }
      }
      guard state == dsErrorFree else {
        throw refused("state \(state?.rawValue ?? 0)")
      }
      let size = unsafe shown.UsrData.sSystemBuffer
      guard shown.iBufferStatus == 1,
        let videoFrame = unsafe I420Buffer(
          copying: [planes.0, planes.1, planes.2],
          strides: [Int(size.iStride.0), Int(size.iStride.1), Int(size.iStride.1)],
          width: Int(size.iWidth), height: Int(size.iHeight))
      else { throw refused("the frame is not for showing") }
      needsKey = false
      return DecodedVideo(videoFrame: videoFrame, quantiser: lastQuantiser)
    }

    /// The last frame's mean quantiser, 0 to 51.
    private var lastQuantiser: UInt8 {
      var statistics = SDecoderStatistics()
      guard unsafe calls.GetOption?(decoder, DECODER_OPTION_GET_STATISTICS, &statistics) == 0
      else { return 0 }
      return UInt8(clamping: statistics.iAvgLumaQp)
    }

    private func refused(_ reason: String) -> CodecError {
      needsKey = true
      return CodecError(reason: "H.264 cannot decode: \(reason)")
    }
  }
#endif
