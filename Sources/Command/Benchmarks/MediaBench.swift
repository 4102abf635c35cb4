import AudioSession
import CYUV
import FoundationEssentials
import Lab
import Live
import Media
import Peer
import RetakeCommand
import Synchronization
import Tape
import Wire

/// The virtual call that benchmarks of takes record: 640x360 at 30 frames per second, and a tone.
struct BenchCall {
  /// The sending peers; each peer receives what the other sends.
  var senders: [Int]
  var seconds: Int
  /// The rate of packet loss, which is the same in both directions.
  var lossPerMille: UInt64 = 0

  static let width = 640
  static let height = 360
  static let framesPerSecond = 30
  static let hertz = 440

  /// A take to record from the call.
  struct Recording {
    var path: String
    var keepsMedia = true
    /// The indexes of the recorded peers.
    var peers: [Int] = [0, 1]
  }

  /// Runs the call while recording the takes; throws if a step was lost.
  ///
  /// - Returns: the number of steps in each take.
  @discardableResult
  func run(_ recordings: [Recording] = []) throws(TapeError) -> [Int] {
    var tapes: [(writer: TapeWriter, numbers: [UInt32])] = []
    for recording in recordings { tapes.append(try tape(recording)) }
    let open = tapes
    // The call's peers are numbered 1 and 2; each take has its own peer numbers.
    var link = LinkSettings()
    link.lossPerMille = lossPerMille
    let call = VirtualCall(seed: 1, links: [link, link]) { record in
      for tape in open where tape.numbers[Int(record.actor) - 1] != 0 {
        var record = record
        record.actor = tape.numbers[Int(record.actor) - 1]
        tape.writer.record(record)
      }
    }
    // A long call's history would fill the memory.
    call.keepsHistory = false
    call.addMedia(
      audio: .tone(hertz: BenchCall.hertz, pauseSeconds: 0),
      videoFrames: .pattern(
        width: BenchCall.width, height: BenchCall.height,
        framesPerSecond: BenchCall.framesPerSecond),
      from: senders)
    call.negotiate()
    for _ in 0..<seconds {
      call.run(for: .seconds(1))
      for peer in 0..<2 { call.call(peer, .getStats()) }
    }
    for peer in 0..<2 { call.call(peer, .close) }
    var steps: [Int] = []
    for tape in tapes { steps.append(try tape.writer.finish().steps) }
    return steps
  }

  private func tape(_ recording: Recording) throws(TapeError) -> (TapeWriter, [UInt32]) {
    var options = TapeWriter.Options()
    options.label = "bench"
    options.keepsMedia = recording.keepsMedia
    options.startUnixNanoseconds = labEpoch
    options.toolVersion = retakeVersion
    options.waitsForDisk = true
    options.toolchain = try Toolchain.current(for: recording.path)
    let writer = try TapeWriter(path: recording.path, options: options)
    var numbers: [UInt32] = [0, 0]
    for peer in recording.peers {
      numbers[peer] = writer.addPeer(label: "peer \(peer)", role: "bench").actor
    }
    return (writer, numbers)
  }
}

// MARK: - VideoBench

/// Measures the cost of camera frames: converting them for the encoder, and recording them in a
/// take.
struct VideoBench {
  /// The take's path, which must not exist yet.
  let path: String

  private static let width = 640
  private static let height = 480
  private static let framesPerSecond = 30
  /// The duration in seconds, long enough that a take's fixed size (a third of a megabyte) does not
  /// distort the rate.
  private static let seconds = 10
  private static let conversions = 400
  private static let rounds = 7

  func measure(_ table: inout BenchTable) throws {
    try measureConversion(&table)
    try measureTape(&table)
  }

  /// Consumes frames as a connection does: in the encoder's format.
  private final class Encoder: VideoConsumer {
    let bytes = Mutex(0)
    func captureDidStart(_ isStarted: Bool) {}
    func consumeCapturedFrame(_ frame: VideoFrame) {
      let count = frame.videoFrame().samples.count
      bytes.withLock { $0 += count }
    }
  }

  /// Measures converting an NV12 frame for the encoder, against libyuv's conversion alone into
  /// newly allocated memory.
  private func measureConversion(_ table: inout BenchTable) throws {
    let (width, height) = (VideoBench.width, VideoBench.height)
    let source = [UInt8](
      repeating: 77, count: VideoPixelFormat.nv12.byteCount(width: width, height: height))
    let frame = try VideoFrame(
      buffer: try VideoFrameBuffer(
        format: .nv12, codedWidth: width, codedHeight: height, bytes: source),
      timestampNanoseconds: 1)
    let format = VideoFormat(
      width: width, height: height, framesPerSecond: 30, pixelFormat: .nv12)
    let capturer = PushedVideoCapturer(supportedFormats: [format])
    let encoder = Encoder()
    capturer.startCapture(format, consumer: VideoFilterChain([], consumer: encoder))
    var (layer, library) = (Double.infinity, Double.infinity)
    for _ in 0..<VideoBench.rounds {
      let first = Stopwatch()
      for _ in 0..<VideoBench.conversions { capturer.push(frame) }
      layer = min(layer, first.elapsed.wall)
      let second = Stopwatch()
      for _ in 0..<VideoBench.conversions { _ = VideoBench.converted(source, width, height) }
      library = min(library, second.elapsed.wall)
    }
    let scale = 1e6 / Double(VideoBench.conversions)
    try table.add(
      "an NV12 frame of 640x480 to the encoder", layer * scale, floor: library * scale, "us",
      .atMost, 1.1)
  }

  @inline(never)
  private static func converted(_ source: [UInt8], _ width: Int, _ height: Int) -> [UInt8] {
    let (luma, stride) = (width * height, Int32(width))
    return [UInt8](unsafeUninitializedCapacity: source.count) { target, count in
      source.withUnsafeBufferPointer { source in
        guard let from = source.baseAddress, let to = target.baseAddress else { return }
        _ = NV12ToI420(
          from, stride, from + luma, stride, to, stride, to + luma, stride / 2,
          to + luma + luma / 4, stride / 2, stride, Int32(height))
        count = source.count
      }
    }
  }

  /// Measures recorded camera frames: their size relative to the samples, and the processor time.
  private func measureTape(_ table: inout BenchTable) throws {
    let scene = CameraScene(width: VideoBench.width, height: VideoBench.height)
    let count = VideoBench.seconds * VideoBench.framesPerSecond
    let videoFrames = (0..<count).map { scene.videoFrame(Int64($0)) }
    let recording = try RecordedVirtualCall(
      path: path, seed: 5, links: [LinkSettings()], labels: ["camera"])
    let watch = Stopwatch()
    for (number, videoFrame) in videoFrames.enumerated() {
      recording.call.step(
        0, .captured(transceiver: 1, .frame(videoFrame, timestamp: Int64(number) * 33_333_333)))
    }
    let summary = try recording.finish()
    let used = watch.elapsed.processor / Double(VideoBench.seconds)
    let raw = Double(videoFrames.reduce(0) { $0 + $1.samples.count })
    let (written, plain) = (
      Double(summary.bytes) / 1e6 / Double(VideoBench.seconds),
      raw / 1e6 / Double(VideoBench.seconds)
    )
    try table.add(
      "a camera of 640x480 on the tape, each second", written, floor: plain, "MB", .atMost,
      5 / plain)
    try table.add(
      "the processor's time for that, each second", used, floor: 1, "s", .atMost, 0.6)
  }
}

/// Measures the cost of passing audio from a device through an audio session to the senders.
struct AudioBench {
  private static let blocks = 2_000
  private static let rounds = 7
  /// The number of samples in 10 ms.
  private static let blockLength = AudioBlock.sampleRate / 100
  /// The goal in microseconds: a thousandth of a block's duration.
  private static let goal = 10.0

  func measure(_ table: inout BenchTable) throws {
    let session = try Session()
    let device = ManualAudioDevice()
    let audio = try session.makeAudioSession(device: device)
    let captured = Mutex(0)
    let subscription = audio.onCaptured { block in captured.withLock { $0 += block.frameCount } }
    try audio.call(.openConnection(1, sends: true, receives: false))
    let tone = ToneGenerator(hertz: BenchCall.hertz, pauseSeconds: 0)
    let chunk = PCMChunk(
      samples: tone.block(at: 0, frameCount: Self.blockLength, channels: 1).samples)
    var best = Double.infinity
    for _ in 0..<Self.rounds {
      let watch = Stopwatch()
      for _ in 0..<Self.blocks { try device.port?.capture(chunk) }
      best = min(best, watch.elapsed.wall)
    }
    try audio.call(.closeConnection(1))
    withExtendedLifetime(subscription) {}
    guard captured.withLock({ $0 }) >= Self.rounds * Self.blocks * Self.blockLength else {
      throw CommandFailure(.difference, "bench: the senders received no captured audio")
    }
    try table.add(
      "10 ms of audio from a device to the senders", best * 1e6 / Double(Self.blocks),
      floor: Self.goal, "us", .atMost, 1)
  }
}
