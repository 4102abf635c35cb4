import RTP

/// The decoder of a playout, which is made for the first block that needs it, and how loud its
/// audio is made.
struct PlayoutDecoder {
  private let track: String
  private let channels: Int
  private let codecs: any CodecFactory
  /// One for each codec that came; none where the library was not there, for it will not come.
  private var decoders: [(codec: CodecName, decoder: (any AudioDecoding)?)] = []
  /// How loud the audio is made before anything is counted or handed out.
  private var gain = PlayoutGain.unity
  private let rampsGain: Bool
  /// The gain of the block before, from which a ramp begins; nil before the first.
  private var former: PlayoutGain?

  init(track: String, channels: Int, codecs: any CodecFactory, rampsGain: Bool = false) {
    self.track = track
    self.channels = channels
    self.codecs = codecs
    self.rampsGain = rampsGain
  }

  mutating func setGain(_ gain: PlayoutGain) { self.gain = gain }

  /// Calls the decoder; what it refuses is counted, and is silence of the same length.
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
