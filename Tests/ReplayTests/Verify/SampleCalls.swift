import Foundation
import Lab
import Media
import Peer
import RTP
import Replay
import Tape
import Wire

/// A folder that is removed after the test.
final class Folder {
  let path = FileManager.default.temporaryDirectory.path + "/verify-" + UUID().uuidString

  init() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  func text(_ name: String) throws -> String {
    try String(contentsOfFile: file(name), encoding: .utf8)
  }
}

extension Folder {
  /// Records a virtual call with audio and small video frames in both directions.
  func record(
    _ name: String, seed: UInt64 = 3, milliseconds: Int64 = 1_500, lossPerMille: UInt64 = 0,
    keepsMedia: Bool = true
  ) throws -> String {
    let path = file(name)
    var link = LinkSettings()
    link.lossPerMille = lossPerMille
    let recorded = try RecordedVirtualCall(
      path: path, seed: seed, links: [link, link], labels: ["caller", "callee"],
      keepsMedia: keepsMedia)
    recorded.call.addMedia(videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 15))
    recorded.call.negotiate()
    recorded.run(for: .milliseconds(milliseconds))
    _ = try recorded.finish()
    return path
  }
}

/// Returns the digest over a take's complete content.
func digest(of path: String) throws -> [UInt8] {
  let statement = try TakeFile.open(path).prepare("SELECT digest FROM ending")
  _ = try statement.step()
  return statement.bytes(0)
}

/// Copies a take as if it had been recorded with other libraries.
func recast(_ path: String, as output: String, _ change: (inout Toolchain) -> Void) throws {
  let reader = try TapeReader(path: path)
  var header = reader.header
  change(&header.toolchain)
  header.toolchainText = CanonicalJSON.text(header.toolchain)
  let copy = try TakeCopy(path: output, header: header)
  while let chunk = try reader.next() {
    for step in chunk.steps { try copy.append(step.head, chunk.rows, step.rows) }
  }
  try copy.finish()
}

/// A stack whose outputs differ from the real one's.
final class OtherPeer: ReplayedPeer {
  private let inner: PeerMachine
  private let change: (PeerOutput) -> [PeerOutput]

  init(_ codecs: any CodecFactory, _ change: @escaping (PeerOutput) -> [PeerOutput]) {
    inner = PeerMachine(codecs: codecs)
    self.change = change
  }

  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    inner.step(input, at: now, into: &outbox)
    for output in outbox.drain() { for changed in change(output) { outbox.append(changed) } }
  }

  var deadline: Instant? { inner.deadline }
  var entropyDrawn: UInt64 { inner.entropyDrawn }

  /// Makes a stack that shows no video frames.
  static func blind(_ codecs: any CodecFactory) -> any ReplayedPeer {
    OtherPeer(codecs) { output in
      if case .event(.frame(let frame)) = output, frame.kind == .video, frame.isInbound {
        return []
      }
      return [output]
    }
  }

  /// Makes a stack that renames a DTLS state.
  static func renaming(_ codecs: any CodecFactory) -> any ReplayedPeer {
    OtherPeer(codecs) { output in
      guard case .event(.state(var transition)) = output, transition.machine == "dtls" else {
        return [output]
      }
      transition.to += "!"
      return [.event(.state(transition))]
    }
  }
}

/// A stack whose timers are all late.
final class LatePeer: ReplayedPeer {
  private let inner: PeerMachine
  private let delay: Interval

  init(_ codecs: any CodecFactory, delay: Interval) {
    inner = PeerMachine(codecs: codecs)
    self.delay = delay
  }

  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    inner.step(input, at: now, into: &outbox)
  }

  var deadline: Instant? { inner.deadline.map { $0 + delay } }
  var entropyDrawn: UInt64 { inner.entropyDrawn }
}

/// The libraries' codecs with another Opus decoder, whose samples are a little quieter; recorded
/// codec results are unchanged.
final class QuieterCodecs: CodecFactory {
  private let inner: any CodecFactory

  init(_ inner: any CodecFactory) { self.inner = inner }

  func audioEncoder(track: String, _ settings: OpusSettings) throws(CodecError)
    -> any AudioEncoding
  {
    try inner.audioEncoder(track: track, settings)
  }

  func audioDecoder(track: String, _ codec: CodecName, channels: Int) throws(CodecError)
    -> any AudioDecoding
  {
    let decoder = try inner.audioDecoder(track: track, codec, channels: channels)
    return inner is LibraryCodecs ? Quieter(decoder) : decoder
  }

  func videoEncoder(track: String, _ settings: VideoSettings) throws(CodecError)
    -> any VideoEncoding
  {
    try inner.videoEncoder(track: track, settings)
  }

  func videoDecoder(track: String, _ codec: CodecName) throws(CodecError) -> any VideoDecoding {
    try inner.videoDecoder(track: track, codec)
  }

  private final class Quieter: AudioDecoding {
    private let inner: any AudioDecoding

    init(_ inner: any AudioDecoding) { self.inner = inner }

    func decode(_ request: AudioDecodeRequest) throws(CodecError) -> DecodedAudio {
      var audio = try inner.decode(request)
      audio.block.samples = audio.block.samples.map { $0 - $0.signum() }
      return audio
    }
  }
}
