import COpus

/// An Opus decoder by libopus, to 48 kHz in one or two channels.
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

  /// Concealment works in steps of 2.5 ms.
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
