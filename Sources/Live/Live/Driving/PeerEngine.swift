import Media
package import Peer
import RTP
import Synchronization
package import Tape
package import Wire

/// A driver's engine: one peer's client stack, or a substitute in tests.
package protocol PeerEngine: AnyObject {
  /// Applies an input and appends everything it causes.
  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>)
  /// When the engine next needs its deadline input.
  var deadline: Instant? { get }
  /// The number of random bytes drawn so far.
  var entropyDrawn: UInt64 { get }
  /// The codecs' processing times so far, if measured.
  var codecTimes: [CodecTime] { get }
  /// Returns whether a datagram from an unknown address belongs to the peer.
  ///
  /// Called before the datagram becomes an input, so the call must not change anything.
  func recognizes(_ datagram: Datagram) -> Bool
}

extension PeerEngine {
  /// Empty: nothing is measured.
  package var codecTimes: [CodecTime] { [] }
}

extension PeerMachine: PeerEngine {}

/// Records a take's steps.
package protocol StepSink: Sendable {
  /// Queues a step; must not wait for a disk.
  func record(_ step: StepRecord)
  /// Records that an actor makes no further step, so its state can be released.
  func end(actor: UInt32)
}

extension TapeWriter: StepSink {}

/// Receives the steps of a session's peers instead of a take.
package protocol PeerSink: StepSink {
  /// Begins recording; called before the first peer is added.
  func begin(_ wallClock: WallClock)
  /// Adds a peer before its first step; returns its actor and peer numbers.
  func addPeer(label: String, role: String) -> (actor: UInt32, peer: UInt32)
  /// Finishes recording after the last step, and returns a summary.
  ///
  /// - Parameter path: the take that the session was to record.
  func finish(_ path: String) async -> TakeSummary
}

/// What a loop needs to create a peer.
struct PeerSetup: Sendable {
  var key: MediaLoop.PeerKey
  /// Creates the engine on the loop's thread, where it stays.
  var makeEngine: @Sendable () -> any PeerEngine
  var genesis: Genesis
  var bind: BindPolicy
  var clock: TakeClock
  var recorder: (any StepSink)?
  /// The peer's actor number in the take.
  var actor: UInt32
  var statsInterval: Interval?
  var observer: PeerDriver.Observer
  var forward: PeerDriver.Forward? = nil
}

/// Limits how much application media waits while a loop is busy encoding.
///
/// Excess media is refused immediately, because late media is useless and would fill the memory.
final class CaptureBudget: Sendable {
  private let waiting = Atomic<Int>(0)
  private let maximum: Int

  init(maximum: Int) { self.maximum = maximum }

  /// Reserves a slot; returns false if none is free.
  func acquire() -> Bool {
    if waiting.add(1, ordering: .relaxed).newValue <= maximum { return true }
    release()
    return false
  }

  func release() { waiting.subtract(1, ordering: .relaxed) }
}

// MARK: - TimedCodecs

/// Codecs that measure their processing time, for the stats that report it.
///
/// The stack has no clock: measured times are part of each getStats input, so they are recorded,
/// and a replay reports the same times.
final class TimedCodecs: CodecFactory {
  private let codecs: any CodecFactory
  private var watches: [CodecWatch] = []

  init(_ codecs: any CodecFactory) { self.codecs = codecs }

  var applicationCodecs: [OwnCodec] { codecs.applicationCodecs }
  /// The processing times of each track's codecs so far, except for audio encoders, which are not
  /// timed.
  var times: [CodecTime] { watches.map(\.time) }

  func audioEncoder(track: String, _ settings: OpusSettings) throws(CodecError)
    -> any AudioEncoding
  {
    try codecs.audioEncoder(track: track, settings)
  }

  func audioDecoder(track: String, _ codec: CodecName, channels: Int) throws(CodecError)
    -> any AudioDecoding
  {
    TimedAudioDecoder(
      try codecs.audioDecoder(track: track, codec, channels: channels),
      watch(track, isInbound: true))
  }

  func videoEncoder(track: String, _ settings: VideoSettings) throws(CodecError)
    -> any VideoEncoding
  {
    TimedVideoEncoder(
      try codecs.videoEncoder(track: track, settings), watch(track, isInbound: false))
  }

  func videoDecoder(track: String, _ codec: CodecName) throws(CodecError)
    -> any VideoDecoding
  {
    TimedVideoDecoder(try codecs.videoDecoder(track: track, codec), watch(track, isInbound: true))
  }

  /// Returns the stopwatch for one direction of a track; a replacement codec uses the same
  /// stopwatch.
  private func watch(_ track: String, isInbound: Bool) -> CodecWatch {
    let transceiver = UInt32(track) ?? 0
    if let known = watches.first(where: {
      $0.time.transceiver == transceiver && $0.time.isInbound == isInbound
    }) {
      return known
    }
    let watch = CodecWatch(
      CodecTime(transceiver: transceiver, isInbound: isInbound, nanoseconds: 0))
    watches.append(watch)
    return watch
  }
}

/// Adds up a codec's processing time.
private final class CodecWatch {
  private(set) var time: CodecTime

  init(_ time: CodecTime) { self.time = time }

  /// Adds the time elapsed since `begin`, once for each sample, because the statistic is a sum over
  /// samples.
  func add(since begin: ContinuousClock.Instant, samples: Int = 1) {
    let length = begin.duration(to: .now).components
    let nanoseconds = length.seconds * 1_000_000_000 + length.attoseconds / 1_000_000_000
    time.nanoseconds += nanoseconds * Int64(samples)
  }
}

private final class TimedAudioDecoder: AudioDecoding {
  private let decoder: any AudioDecoding
  private let watch: CodecWatch

  init(_ decoder: any AudioDecoding, _ watch: CodecWatch) {
    self.decoder = decoder
    self.watch = watch
  }

  func decode(_ request: AudioDecodeRequest) throws(CodecError) -> DecodedAudio {
    guard case .payload = request else { return try decoder.decode(request) }
    let begin = ContinuousClock.now
    let decoded = try decoder.decode(request)
    watch.add(since: begin, samples: decoded.block.frameCount)
    return decoded
  }
}

private final class TimedVideoEncoder: VideoEncoding {
  private let encoder: any VideoEncoding
  private let watch: CodecWatch

  init(_ encoder: any VideoEncoding, _ watch: CodecWatch) {
    self.encoder = encoder
    self.watch = watch
  }

  var wantsPixels: Bool { encoder.wantsPixels }

  func encode(_ videoFrame: I420Buffer, mediaTime: UInt32, forceKey: Bool) throws(CodecError)
    -> EncodedVideo?
  {
    let begin = ContinuousClock.now
    defer { watch.add(since: begin) }
    return try encoder.encode(videoFrame, mediaTime: mediaTime, forceKey: forceKey)
  }

  func setBitrate(_ bitsPerSecond: UInt64) { encoder.setBitrate(bitsPerSecond) }

  func begin(_ step: TemporalPattern.Step) { encoder.begin(step) }
}

private final class TimedVideoDecoder: VideoDecoding {
  private let decoder: any VideoDecoding
  private let watch: CodecWatch

  init(_ decoder: any VideoDecoding, _ watch: CodecWatch) {
    self.decoder = decoder
    self.watch = watch
  }

  func decode(_ bytes: [UInt8]) throws(CodecError) -> DecodedVideo {
    let begin = ContinuousClock.now
    defer { watch.add(since: begin) }
    return try decoder.decode(bytes)
  }
}

/// A live peer's complete client stack, with codecs that measure their time.
final class TimedPeer: PeerEngine {
  private let codecs: TimedCodecs
  private let machine: PeerMachine

  /// Creates a peer with its own codecs.
  init(codecs: any CodecFactory = LibraryCodecs()) {
    self.codecs = TimedCodecs(codecs)
    let codecs = self.codecs
    machine = PeerMachine(codecs: codecs)
  }

  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    machine.step(input, at: now, into: &outbox)
  }

  var deadline: Instant? { machine.deadline }
  var entropyDrawn: UInt64 { machine.entropyDrawn }
  var codecTimes: [CodecTime] { codecs.times }

  func recognizes(_ datagram: Datagram) -> Bool { machine.recognizes(datagram) }
}
