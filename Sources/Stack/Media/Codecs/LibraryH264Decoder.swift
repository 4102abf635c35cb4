#if canImport(COpenH264)
  import COpenH264
  import RTP
  import Wire

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
