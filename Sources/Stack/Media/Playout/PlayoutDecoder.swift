import RTP

/// The decoder of a playout, created for the first block that needs it, and the gain.
struct PlayoutDecoder {
  private let track: String
  private let channels: Int
  private let codecs: any CodecFactory
  /// One per codec; empty for a codec whose library is missing.
  private var decoders: [(codec: CodecName, decoder: (any AudioDecoding)?)] = []
  /// The gain, applied before anything is counted or output.
  private var gain = PlayoutGain.unity
  private let rampsGain: Bool
  /// The previous block's gain, for a ramp; nil before the first.
  private var former: PlayoutGain?

  init(track: String, channels: Int, codecs: any CodecFactory, rampsGain: Bool = false) {
    self.track = track
    self.channels = channels
    self.codecs = codecs
    self.rampsGain = rampsGain
  }

  mutating func setGain(_ gain: PlayoutGain) { self.gain = gain }

  /// Calls the decoder; a refused block is counted and becomes silence of the same length.
  mutating func decode(
    _ request: AudioDecodeRequest, _ codec: CodecName, lasting frameCount: Int,
    failures: inout UInt64
  ) -> DecodedAudio {
    do throws(CodecError) {
      if let decoder = try decoder(codec) {
        let decoded = try decoder.decode(request)
        defer { former = gain }
        guard rampsGain, let former, former != gain else { return gain.applied(to: decoded) }
        return gain.applied(to: decoded, from: former)
      }
    } catch {
      failures &+= 1
    }
    let samples = [Int16](repeating: 0, count: frameCount * channels)
    return DecodedAudio(
      block: AudioBlock(samples: samples, channels: channels), peak: 0, energy: 0)
  }

  private mutating func decoder(_ codec: CodecName) throws(CodecError) -> (any AudioDecoding)? {
    if let known = decoders.first(where: { $0.codec == codec }) { return known.decoder }
    decoders.append((codec, nil))
    let made = try codecs.audioDecoder(track: track, codec, channels: channels)
    decoders[decoders.count - 1].decoder = made
    return made
  }
}
