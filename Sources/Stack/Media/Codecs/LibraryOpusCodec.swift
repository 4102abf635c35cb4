import COpus

/// An Opus encoder using libopus, for 20 ms blocks (RFC 6716, RFC 7587).
///
/// The encoder is configured for voice over IP with constrained variable bit rate. Its bytes depend
/// only on settings and samples, because libopus reads no clock.
final class LibraryOpusEncoder: AudioEncoding {
  /// The number of samples per channel in a block of 20 ms.
  static let blockLength = 960
  /// The capacity for a packet in bytes: more than the longest packet with one frame.
  private static let packetCapacity = 1_500

  private let encoder: OpaquePointer
  private let settings: OpusSettings
  private let silence: [Int16]

  init(_ settings: OpusSettings) throws(CodecError) {
    var code: Int32 = 0
    let made = unsafe opus_encoder_create(
      Int32(AudioBlock.sampleRate), Int32(clamping: settings.channels), OPUS_APPLICATION_VOIP,
      &code)
    guard let made = unsafe made, code == OPUS_OK else {
      throw CodecError(reason: "cannot create an Opus encoder: \(opusReason(code))")
    }
    unsafe encoder = made
    self.settings = settings
    silence = Array(repeating: 0, count: LibraryOpusEncoder.blockLength * settings.channels)
    try set(OPUS_SET_BITRATE_REQUEST, settings.bitrate, "bit rate")
    try set(OPUS_SET_COMPLEXITY_REQUEST, settings.complexity, "complexity")
    try set(OPUS_SET_INBAND_FEC_REQUEST, settings.usesInbandFEC ? 1 : 0, "in-band FEC")
    try set(OPUS_SET_DTX_REQUEST, settings.usesDTX ? 1 : 0, "DTX")
    try set(OPUS_SET_VBR_REQUEST, 1, "variable bit rate")
    try set(OPUS_SET_VBR_CONSTRAINT_REQUEST, 1, "constrained bit rate")
    try set(OPUS_SET_LSB_DEPTH_REQUEST, 16, "sample depth")
  }

  deinit { unsafe opus_encoder_destroy(encoder) }

  private func set(_ request: Int32, _ value: Int32, _ name: String) throws(CodecError) {
    let code = unsafe copus_encoder_set(encoder, request, value)
    guard code == OPUS_OK else {
      throw CodecError(reason: "Opus refuses the \(name) \(value): \(opusReason(code))")
    }
  }

  var wantsSamples: Bool { true }

  func setPacketLoss(percent: Int32) {
    // If the value is refused, the previous one stays in effect, which is harmless.
    _ = unsafe copus_encoder_set(
      encoder, OPUS_SET_PACKET_LOSS_PERC_REQUEST, min(max(percent, 0), 100))
  }

  func encode(_ block: AudioBlock) throws(CodecError) -> EncodedAudio {
    let length = LibraryOpusEncoder.blockLength
    guard block.frameCount == length, block.channels == settings.channels else {
      throw CodecError(
        reason: "an Opus block has \(length) samples in \(settings.channels) channels, "
          + "not \(block.frameCount) in \(block.channels)")
    }
    // A block without samples is silence.
    let samples = block.samples.count == silence.count ? block.samples : silence
    var code: Int32 = 0
    let bytes = unsafe [UInt8](
      unsafeUninitializedCapacity: LibraryOpusEncoder.packetCapacity
    ) { packet, initialized in
      code = unsafe samples.withUnsafeBufferPointer { pcm in
        guard let first = pcm.baseAddress, let start = packet.baseAddress else {
          return OPUS_BAD_ARG
        }
        return unsafe opus_encode(encoder, first, Int32(length), start, Int32(packet.count))
      }
      initialized = max(0, Int(code))
    }
    guard code >= 0 else {
      throw CodecError(reason: "Opus cannot encode: \(opusReason(code))")
    }
    let loudness = Loudness(samples: samples, channels: block.channels)
    let level = AudioMeter.level(energy: loudness.energy, frameCount: length)
    return EncodedAudio(
      bytes: bytes, isVoice: AudioMeter.isVoice(level), level: level, peak: loudness.peak,
      energy: loudness.energy)
  }
}

/// Returns libopus's text for an error code.
func opusReason(_ code: Int32) -> String {
  unsafe opus_strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
}

// MARK: - LibraryOpusDecoder

/// An Opus decoder using libopus, with output at 48 kHz in one or two channels.
final class LibraryOpusDecoder: AudioDecoding {
  private let decoder: OpaquePointer
  private let channels: Int

  init(channels: Int) throws(CodecError) {
    var code: Int32 = 0
    let made = unsafe opus_decoder_create(
      Int32(AudioBlock.sampleRate), Int32(clamping: channels), &code)
    guard let made = unsafe made, code == OPUS_OK else {
      throw CodecError(reason: "cannot create an Opus decoder: \(opusReason(code))")
    }
    unsafe decoder = made
    self.channels = channels
  }

  deinit { unsafe opus_decoder_destroy(decoder) }

  func decode(_ request: AudioDecodeRequest) throws(CodecError) -> DecodedAudio {
    switch request {
    case .payload(let bytes):
      guard !bytes.isEmpty else { throw CodecError(reason: "an Opus packet without bytes") }
      return try run(bytes, capacity: OpusPacket.longestDuration, recovers: false)
    case .recoverPrevious(let bytes, let frameCount):
      guard !bytes.isEmpty else { throw CodecError(reason: "an Opus packet without bytes") }
      return try run(bytes, capacity: try checked(frameCount), recovers: true)
    case .conceal(let frameCount):
      return try run([], capacity: try checked(frameCount), recovers: false)
    }
  }

  /// Checks a sample count: concealment works in steps of 2.5 ms.
  private func checked(_ frameCount: Int) throws(CodecError) -> Int {
    guard frameCount > 0, frameCount % 120 == 0, frameCount <= OpusPacket.longestDuration else {
      throw CodecError(reason: "Opus cannot make up \(frameCount) samples")
    }
    return frameCount
  }

  private func run(
    _ bytes: [UInt8], capacity: Int, recovers: Bool
  ) throws(CodecError) -> DecodedAudio {
    var code: Int32 = 0
    let samples = unsafe [Int16](
      unsafeUninitializedCapacity: capacity * channels
    ) { pcm, initialized in
      guard let start = pcm.baseAddress else { return }
      code = unsafe bytes.withUnsafeBufferPointer { packet in
        // A null packet requests concealment; an empty array may have a non-null address.
        unsafe opus_decode(
          decoder, packet.isEmpty ? nil : packet.baseAddress, Int32(clamping: packet.count),
          start, Int32(capacity), recovers ? 1 : 0)
      }
      initialized = max(0, Int(code)) * channels
    }
    guard code >= 0 else {
      throw CodecError(reason: "Opus cannot decode: \(opusReason(code))")
    }
    let loudness = Loudness(samples: samples, channels: channels)
    return DecodedAudio(
      block: AudioBlock(samples: samples, channels: channels), peak: loudness.peak,
      energy: loudness.energy)
  }
}
