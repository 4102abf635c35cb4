import Media
import RTP

/// Codecs that answer from a take instead of computing: encoders give the recorded frames, decoders
/// blank results of the recorded shape, loudness and quantiser.
final class ScriptedCodecs: CodecFactory {
  private let peer: UInt32
  private let script: FrameScript

  init(peer: UInt32, script: FrameScript) {
    self.peer = peer
    self.script = script
  }

  /// The name of a track is its transceiver's number.
  private func line(_ track: String, isInbound: Bool) throws(CodecError) -> FrameScript.Line {
    guard let transceiver = UInt32(track) else {
      throw CodecError(reason: "no recorded frames for track \(track)")
    }
    return script.line(
      of: FrameScript.Voice(peer: peer, track: transceiver, isInbound: isInbound))
  }

  func audioEncoder(track: String, _ settings: OpusSettings) throws(CodecError)
    -> any AudioEncoding
  {
    ScriptedAudioEncoder(script, try line(track, isInbound: false))
  }

  func audioDecoder(track: String, _ codec: CodecName, channels: Int) throws(CodecError)
    -> any AudioDecoding
  {
    ScriptedAudioDecoder(script, try line(track, isInbound: true), channels: channels)
  }

  func videoEncoder(track: String, _ settings: VideoSettings) throws(CodecError)
    -> any VideoEncoding
  {
    ScriptedVideoEncoder(script, try line(track, isInbound: false))
  }

  func videoDecoder(track: String, _ codec: CodecName) throws(CodecError)
    -> any VideoDecoding
  {
    ScriptedVideoDecoder(script, try line(track, isInbound: true))
  }
}

private final class ScriptedAudioEncoder: AudioEncoding {
  private let script: FrameScript
  private let line: FrameScript.Line

  init(_ script: FrameScript, _ line: FrameScript.Line) {
    self.script = script
    self.line = line
  }

  var wantsSamples: Bool { false }

  func encode(_ block: AudioBlock) throws(CodecError) -> EncodedAudio {
    // No frame was recorded when discontinuous transmission left it out.
    guard let entry = script.encoded(line) else {
      return EncodedAudio(bytes: [], isVoice: false, level: 127)
    }
    return EncodedAudio(
      bytes: entry.bytes ?? [], isVoice: entry.format.isVoice, level: entry.audioLevel ?? 127,
      peak: entry.peak, energy: entry.energy)
  }

  func setPacketLoss(percent: Int32) {}
}

private final class ScriptedAudioDecoder: AudioDecoding {
  private let script: FrameScript
  private let line: FrameScript.Line
  private let channels: Int

  init(_ script: FrameScript, _ line: FrameScript.Line, channels: Int) {
    self.script = script
    self.line = line
    self.channels = max(1, channels)
  }

  func decode(_ request: AudioDecodeRequest) throws(CodecError) -> DecodedAudio {
    var frameCount = AudioBlock.sampleRate / 50
    let entry: FrameScript.Entry?
    switch request {
    case .payload(let bytes):
      entry = script.decoded(line) { $0.format.outcome != "recovered" && $0.holds(bytes) }
    case .recoverPrevious(_, let count):
      frameCount = count
      entry = script.decoded(line) { $0.format.outcome == "recovered" }
    case .conceal(let count):
      frameCount = count
      entry = script.decoded(line) { $0.format.outcome == "concealed" }
    }
    guard let entry else {
      return DecodedAudio(
        block: AudioBlock(blank: frameCount, channels: channels), peak: 0, energy: 0)
    }
    if entry.format.outcome == "undecodable" {
      throw CodecError(reason: "undecodable in the recording")
    }
    let block = AudioBlock(blank: entry.format.samples, channels: max(1, entry.format.channels))
    return DecodedAudio(block: block, peak: entry.peak, energy: entry.energy)
  }
}

private final class ScriptedVideoEncoder: VideoEncoding {
  private let script: FrameScript
  private let line: FrameScript.Line

  init(_ script: FrameScript, _ line: FrameScript.Line) {
    self.script = script
    self.line = line
  }

  var wantsPixels: Bool { false }

  func encode(_ videoFrame: I420Buffer, mediaTime: UInt32, forceKey: Bool) throws(CodecError)
    -> EncodedVideo?
  {
    script.encoded(line).map {
      EncodedVideo(bytes: $0.bytes ?? [], isKey: $0.format.isKey, quantiser: $0.quantiser)
    }
  }

  func setBitrate(_ bitsPerSecond: UInt64) {}
}

private final class ScriptedVideoDecoder: VideoDecoding {
  private let script: FrameScript
  private let line: FrameScript.Line
  private var lastSize = (width: 0, height: 0)

  init(_ script: FrameScript, _ line: FrameScript.Line) {
    self.script = script
    self.line = line
  }

  func decode(_ bytes: [UInt8]) throws(CodecError) -> DecodedVideo {
    // A frame that was decoded and never shown left no row; its size is that of the last one.
    guard let entry = script.decoded(line, where: { $0.holds(bytes) }) else {
      return DecodedVideo(
        videoFrame: I420Buffer(width: lastSize.width, height: lastSize.height, samples: []),
        quantiser: 0)
    }
    if entry.format.outcome == "undecodable" {
      throw CodecError(reason: "undecodable in the recording")
    }
    lastSize = (entry.format.width, entry.format.height)
    return DecodedVideo(
      videoFrame: I420Buffer(width: entry.format.width, height: entry.format.height, samples: []),
      quantiser: entry.quantiser)
  }
}
