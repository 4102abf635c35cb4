import Foundation
import Lab
import Media
import Peer
import Secure
import Tape
import Wire

@testable import Replay

/// A virtual call with audio and video in both directions, recorded into a temporary take.
final class RecordedCall: Sendable {
  let path: String
  let folder: String

  init(seed: UInt64, link: LinkSettings = LinkSettings(), seconds: Int64, keepsMedia: Bool = true)
    throws
  {
    folder = FileManager.default.temporaryDirectory.path + "/replay-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    path = folder + "/call.take"
    var options = TapeWriter.Options()
    options.keepsMedia = keepsMedia
    options.waitsForDisk = true
    options.toolchain = Toolchain(openssl: "3.0", cpu: "here")
    let writer = try TapeWriter(path: path, options: options)
    let numbers = [
      writer.addPeer(label: "caller", role: "offerer").actor,
      writer.addPeer(label: "callee", role: "answerer").actor,
    ]
    let call = VirtualCall(seed: seed, links: [link, link], peerNumbers: numbers) {
      writer.record($0)
    }
    for peer in 0..<2 {
      call.call(
        peer, .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 440, pauseSeconds: 2)))
      call.call(
        peer,
        .addTrack(
          kind: .video, streamIDs: ["s"],
          source: peer == 0 ? .pattern(width: 96, height: 64, framesPerSecond: 10) : .echo))
    }
    _ = call.negotiate()
    for _ in 0..<seconds {
      call.run(for: .seconds(1))
      call.call(0, .getStats())
    }
    call.call(0, .close)
    call.call(1, .close)
    _ = try writer.finish()
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// One call for all tests that only read it.
  static let shared: Result<RecordedCall, any Error> = Result {
    // Values that live as long as the process are never deinitialized.
    atexit { RecordedCall.removeShared() }
    return try RecordedCall(seed: 5, seconds: 3)
  }

  private static func removeShared() {
    if case .success(let call) = shared { try? FileManager.default.removeItem(atPath: call.folder) }
  }

  /// Returns a copy that a test may damage.
  func copy(_ name: String) throws -> String {
    let copy = "\(folder)/\(name)-\(UUID().uuidString).take"
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    return copy
  }
}

/// Replays a take with the real stack, or with one that misbehaves.
func replay(
  _ path: String, _ options: Replayer.Options = Replayer.Options(), bend: Bend? = nil
) throws -> ReplayReport {
  let counter = StepCounter()
  let replayer = try Replayer(path: path, options: options, codecs: { LibraryCodecs() }) { codecs in
    BentPeer(PeerMachine(codecs: codecs), counter, bend)
  }
  return try replayer.run()
}

/// A change to a peer's outputs, deadline or entropy at one step.
struct Bend {
  var step: Int
  var outputs: ([PeerOutput]) -> [PeerOutput] = { $0 }
  var deadline: (Instant?) -> Instant? = { $0 }
  var entropy: UInt64 = 0
}

/// Counts steps over all peers of a replay.
final class StepCounter {
  var step = 0
}

/// A peer whose outputs are changed at one step.
final class BentPeer: ReplayedPeer {
  private let inner: PeerMachine
  private let counter: StepCounter
  private let bend: Bend?
  private var isBent = false

  init(_ inner: PeerMachine, _ counter: StepCounter, _ bend: Bend?) {
    self.inner = inner
    self.counter = counter
    self.bend = bend
  }

  func use(_ security: any SecurityFactory) { inner.use(security) }

  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    counter.step += 1
    isBent = counter.step == bend?.step
    inner.step(input, at: now, into: &outbox)
    guard isBent, let bend else { return }
    for output in bend.outputs(outbox.drain()) { outbox.append(output) }
  }

  var deadline: Instant? {
    if isBent, let bend { return bend.deadline(inner.deadline) }
    return inner.deadline
  }

  var entropyDrawn: UInt64 { inner.entropyDrawn &+ (isBent ? bend?.entropy ?? 0 : 0) }
}
