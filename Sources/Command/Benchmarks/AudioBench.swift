import AudioSession
import Live
import Media
import RetakeCommand
import Synchronization

/// What audio costs on its way from a device to the senders, through an audio session.
struct AudioBench {
  private static let blocks = 2_000
  private static let rounds = 7
  /// Samples of 10 ms.
  private static let blockLength = AudioBlock.sampleRate / 100
  /// Microseconds: a thousandth of the time that a block lasts.
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
      throw CommandFailure(.difference, "bench: captured audio did not come to the senders")
    }
    try table.add(
      "10 ms of audio from a device to the senders", best * 1e6 / Double(Self.blocks),
      floor: Self.goal, "us", .atMost, 1)
  }
}
