import Media
import RTP
import Wire

/// Returns a seeded source of random numbers, the same in every run.
func random(_ seed: UInt8) -> EntropyStream {
  Entropy(seed: Array(repeating: seed, count: Entropy.seedLength)).stream("test")
}

func milliseconds(_ count: Int64) -> Instant { .zero + .milliseconds(count) }

/// Codecs that ignore content and record their calls, as in a replay without codecs.
final class BlankCodecs: CodecFactory {
  var audioRequests: [AudioDecodeRequest] = []
  var videoDecodes = 0
  var forcedKeys: [Bool] = []
  var bitrates: [UInt64] = []
  var losses: [Int32] = []
  /// The energy per sample that `decode` reports: loud by default.
  var energyPerSample: UInt64 = 4_000_000
  var audioBytes = [UInt8](repeating: 7, count: 80)
  var failsToEncode = false
  var refusesVideo: (Int) -> Bool = { _ in false }

  func audioEncoder(track: String, _ settings: OpusSettings) -> any AudioEncoding {
    BlankAudioEncoder(self)
  }
  func audioDecoder(track: String, _ codec: CodecName, channels: Int) -> any AudioDecoding {
    BlankAudioDecoder(self, channels)
  }
  func videoEncoder(track: String, _ settings: VideoSettings) -> any VideoEncoding {
    bitrates.append(settings.bitrate)
    return BlankVideoEncoder(self)
  }
  func videoDecoder(track: String, _ codec: CodecName) -> any VideoDecoding {
    BlankVideoDecoder(self)
  }
}

private final class BlankAudioEncoder: AudioEncoding {
  let log: BlankCodecs
  init(_ log: BlankCodecs) { self.log = log }
  var wantsSamples: Bool { false }
  func encode(_ block: AudioBlock) throws(CodecError) -> EncodedAudio {
    if log.failsToEncode { throw CodecError(reason: "no") }
    return EncodedAudio(bytes: log.audioBytes, isVoice: true, level: 20)
  }
  func setPacketLoss(percent: Int32) { log.losses.append(percent) }
}

private final class BlankAudioDecoder: AudioDecoding {
  let log: BlankCodecs
  let channels: Int
  init(_ log: BlankCodecs, _ channels: Int) {
    self.log = log
    self.channels = channels
  }
  func decode(_ request: AudioDecodeRequest) throws(CodecError) -> DecodedAudio {
    log.audioRequests.append(request)
    let count =
      switch request {
      case .payload(let bytes): OpusPacket(bytes)?.duration ?? 0
      case .recoverPrevious(_, let frameCount), .conceal(let frameCount): frameCount
      }
    return DecodedAudio(
      block: AudioBlock(blank: count, channels: channels), peak: 2_000,
      energy: log.energyPerSample * UInt64(count))
  }
}

private final class BlankVideoEncoder: VideoEncoding {
  let log: BlankCodecs
  init(_ log: BlankCodecs) { self.log = log }
  var wantsPixels: Bool { false }
  func encode(
    _ videoFrame: I420Buffer, mediaTime: UInt32, forceKey: Bool
  ) throws(CodecError) -> EncodedVideo? {
    if log.failsToEncode { throw CodecError(reason: "no") }
    log.forcedKeys.append(forceKey)
    return EncodedVideo(bytes: [1, 2, 3], isKey: forceKey, quantiser: 10)
  }
  func setBitrate(_ bitsPerSecond: UInt64) { log.bitrates.append(bitsPerSecond) }
}

private final class BlankVideoDecoder: VideoDecoding {
  let log: BlankCodecs
  init(_ log: BlankCodecs) { self.log = log }
  func decode(_ bytes: [UInt8]) throws(CodecError) -> DecodedVideo {
    log.videoDecodes += 1
    if log.refusesVideo(log.videoDecodes) { throw CodecError(reason: "no") }
    return DecodedVideo(videoFrame: I420Buffer(width: 64, height: 48, samples: []), quantiser: 30)
  }
}

/// Returns an Opus packet of one 20 ms SILK frame with the given flags; its content is noise.
func opusPayload(hasFEC: Bool = false) -> [UInt8] { [0x08, hasFEC ? 0x40 : 0x00, 1, 2, 3, 4] }

/// Returns a numbered packet in a stream of 20 ms packets.
func audioFrame(
  _ number: Int64, arrival: Instant, bytes: [UInt8] = opusPayload(), ssrc: UInt32 = 1,
  time: Int64? = nil, duration: Int64 = 960
) -> ReceivedFrame {
  let extendedTime = time ?? 1_000_000 + number * duration
  return ReceivedFrame(
    mid: "0", ssrc: ssrc, kind: .audio, codec: .opus, payloadType: 111,
    firstSequence: 5_000 + number, lastSequence: 5_000 + number,
    rtpTime: UInt32(truncatingIfNeeded: extendedTime), extendedTime: extendedTime,
    firstArrival: arrival, lastArrival: arrival, bytes: bytes, isKey: true)
}

/// Returns a numbered video frame in a stream of 30 frames per second.
func videoFrame(
  _ number: Int64, arrival: Instant, bytes: [UInt8] = [1], isKey: Bool = false, ssrc: UInt32 = 1,
  time: Int64? = nil
) -> ReceivedFrame {
  let extendedTime = time ?? 1_000_000 + number * 3_000
  return ReceivedFrame(
    mid: "1", ssrc: ssrc, kind: .video, codec: .vp8, payloadType: 96,
    firstSequence: 100 + 3 * number, lastSequence: 102 + 3 * number,
    rtpTime: UInt32(truncatingIfNeeded: extendedTime), extendedTime: extendedTime,
    firstArrival: arrival - .milliseconds(2), lastArrival: arrival, bytes: bytes, isKey: isKey)
}

/// Steps a machine through inputs at their times and through the deadlines between them.
func drive<Driven: Machine>(
  _ machine: inout Driven, _ inputs: [(Instant, Driven.Input)], until end: Instant,
  deadline: Driven.Input, lateness: () -> Interval = { .zero }
) -> [(at: Instant, output: Driven.Output)] {
  var outputs: [(at: Instant, output: Driven.Output)] = []
  var outbox = Outbox<Driven.Output>()
  var now = Instant.zero
  var next = 0
  let limit = 1_000_000
  for _ in 0..<limit {
    let wanted = machine.deadline.map { $0 + lateness() }
    let input = next < inputs.count ? inputs[next].0 : nil
    guard let time = earliest(wanted, input), time <= end else { break }
    now = max(now, time)
    if let input, input <= wanted ?? input {
      machine.step(inputs[next].1, at: now, into: &outbox)
      next += 1
    } else {
      machine.step(deadline, at: now, into: &outbox)
    }
    for output in outbox.drain() { outputs.append((now, output)) }
  }
  return outputs
}
