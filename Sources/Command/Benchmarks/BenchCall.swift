import Lab
import Media
import Peer
import RetakeCommand
import Tape
import Wire

/// The virtual call that everything is measured on: 640x360 at 30 video frames per second and a
/// tone.
struct BenchCall {
  /// Which peers send; each peer receives what the other one sends.
  var senders: [Int]
  var seconds: Int
  /// How many of a thousand datagrams are lost, each way.
  var lossPerMille: UInt64 = 0

  static let width = 640
  static let height = 360
  static let framesPerSecond = 30
  static let hertz = 440

  /// A take to be made of the call.
  struct Recording {
    var path: String
    var keepsMedia = true
    /// The peers that are in it.
    var peers: [Int] = [0, 1]
  }

  /// Holds the call and makes the takes at the same time; throws when a step could not be kept.
  ///
  /// - Returns: how many steps each take holds.
  @discardableResult
  func run(_ recordings: [Recording] = []) throws(TapeError) -> [Int] {
    var tapes: [(writer: TapeWriter, numbers: [UInt32])] = []
    for recording in recordings { tapes.append(try tape(recording)) }
    let open = tapes
    // Both peers are named 1 and 2 in the call, and by the numbers of each take in the takes.
    var link = LinkSettings()
    link.lossPerMille = lossPerMille
    let call = VirtualCall(seed: 1, links: [link, link]) { record in
      for tape in open where tape.numbers[Int(record.actor) - 1] != 0 {
        var record = record
        record.actor = tape.numbers[Int(record.actor) - 1]
        tape.writer.record(record)
      }
    }
    // Those of a long call fill memory.
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
