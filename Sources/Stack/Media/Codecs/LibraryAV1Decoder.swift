#if canImport(CDav1d)
  import CDav1d
  import RTP
  import Wire

  /// An AV1 decoder using dav1d on the calling thread, for 8-bit 4:2:0 video.
  ///
  /// Like the VP8 and VP9 decoders, it refuses frames at the start and after an error, until the
  /// next key frame.
  final class LibraryAV1Decoder: VideoDecoding {
    static var version: String {
      "dav1d " + (unsafe dav1d_version().map { unsafe String(cString: $0) } ?? "?")
    }

    private let context: OpaquePointer
    private var needsKey = true

    init() throws(CodecError) {
      var settings = Dav1dSettings()
      unsafe dav1d_default_settings(&settings)
      unsafe settings.n_threads = 1
      unsafe settings.max_frame_delay = 1
      // Output only a frame's highest layer.
      unsafe settings.all_layers = 0
      unsafe settings.frame_size_limit = UInt32(LibraryVPXDecoder.mostPixels)
      unsafe settings.logger.callback = nil
      var made: OpaquePointer?
      guard unsafe dav1d_open(&made, &settings) == 0, let made = unsafe made else {
        throw CodecError(reason: "cannot create an AV1 decoder")
      }
      unsafe context = made
    }

    deinit {
      var context: OpaquePointer? = unsafe context
      unsafe dav1d_close(&context)
    }

    func decode(_ bytes: [UInt8]) throws(CodecError) -> DecodedVideo {
      guard let look = CodecName.av1.codec?.look?(bytes.span.bytes) else {
        throw refused("the frame is no AV1")
      }
      if needsKey && !look.isKey { throw refused("a key frame is awaited") }
      var data = Dav1dData()
      guard !bytes.isEmpty, let room = unsafe dav1d_data_create(&data, bytes.count) else {
        throw refused("no bytes")
      }
      unsafe bytes.withUnsafeBufferPointer { buffer in
        guard let start = buffer.baseAddress else { return }
        unsafe room.update(from: start, count: buffer.count)
      }
      defer { unsafe dav1d_data_unref(&data) }
      var shown: DecodedVideo?
      // A full decoder must be drained before it accepts more data; the last drained frame is
      // shown.
      repeat {
        let before = unsafe data.sz
        let sent = unsafe dav1d_send_data(context, &data)
        guard sent == 0 || sent == LibraryAV1Decoder.again else { throw refused("code \(sent)") }
        var isStuck = unsafe data.sz == before
        while let frame = try next() {
          shown = frame
          isStuck = false
        }
        guard !isStuck else { throw refused("it takes no data") }
      } while unsafe data.sz > 0
      guard let shown else { throw refused("the frame is not for showing") }
      needsKey = false
      return shown
    }

    /// The value of `DAV1D_ERR(EAGAIN)`, a macro that Swift cannot import.
    private static let again: Int32 = -11

    private func next() throws(CodecError) -> DecodedVideo? {
      var videoFrame = Dav1dPicture()
      let code = unsafe dav1d_get_picture(context, &videoFrame)
      guard code != LibraryAV1Decoder.again else { return nil }
      guard code == 0 else { throw refused("code \(code)") }
      defer { unsafe dav1d_picture_unref(&videoFrame) }
      let form = unsafe videoFrame.p
      guard form.bpc == 8, form.layout == DAV1D_PIXEL_LAYOUT_I420 else {
        throw refused("its video frames have \(form.bpc) bits, or other chroma than 4:2:0")
      }
      let planes = unsafe [videoFrame.data.0, videoFrame.data.1, videoFrame.data.2].map { plane in
        unsafe plane?.assumingMemoryBound(to: UInt8.self)
      }
      guard
        let copy = unsafe I420Buffer(
          copying: planes,
          strides: [videoFrame.stride.0, videoFrame.stride.1, videoFrame.stride.1],
          width: Int(form.w), height: Int(form.h))
      else { throw refused("the frame is not for showing") }
      let quantiser = unsafe videoFrame.frame_hdr?.pointee.quant.yac ?? 0
      return DecodedVideo(videoFrame: copy, quantiser: UInt8(clamping: quantiser))
    }

    private func refused(_ reason: String) -> CodecError {
      needsKey = true
      unsafe dav1d_flush(context)
      return CodecError(reason: "AV1 cannot decode: \(reason)")
    }
  }
#endif
