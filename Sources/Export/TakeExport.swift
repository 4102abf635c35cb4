import Foundation
import Media
package import Replay
import Tape
import Wire

/// A take as the files of other tools: packet captures, and received media.
package struct TakeExport: Sendable {
  private let take: String
  /// The number of the peer that is wanted; nil for all.
  private let peer: Int64?
  /// The nanoseconds since the take began from which something is wanted, and to which.
  private let window: ClosedRange<Int64>

  /// Chooses a take, one of its peers, and a part of its time.
  package init(
    take: String, peer: Int64? = nil, window: ClosedRange<Int64> = .min ... .max
  ) {
    self.window = window
    self.take = take
    self.peer = peer
  }

  /// What an export that replays came to.
  package struct Replayed<Written: Sendable>: Sendable {
    /// What was written.
    package var written: Written
    /// The replay; a difference in it cut the export short.
    package var report: ReplayReport
  }

  /// The datagrams of the take; refuses the number of a peer that it does not have.
  private func history() throws(ExportFailure) -> DatagramHistory {
    let history = try ExportFailure.reading { () throws(TapeError) in
      try DatagramHistory(path: take, peer: peer)
    }
    guard let peer, !history.peers.contains(where: { $0.number == peer }) else { return history }
    let known = history.peers.map { "\($0.number) (\($0.label))" }.joined(separator: ", ")
    throw .noSuchPeer(take: take, number: peer, known: known)
  }

  /// Writes every datagram as it was on the wire, and gives their number.
  ///
  /// - Parameters:
  ///   - path: the capture; `-` is standard output.
  ///   - progress: gets some words now and then.
  package func packets(
    to path: String, progress: (String) -> Void = { _ in }
  ) throws(ExportFailure) -> Int {
    let history = try history()
    var file = try PacketFile(
      path, startUnixNanoseconds: history.startUnixNanoseconds, window: window)
    while let entry = try ExportFailure.reading({ () throws(TapeError) in try history.next() }) {
      file.datagram(
        from: entry.source, to: entry.destination, entry.bytes,
        atNanoseconds: entry.atNanoseconds)
      if file.count % 1000 == 0 {
        try file.flush()
        progress("\(file.count) of \(history.count)")
      }
    }
    try file.finish()
    return file.count
  }

  /// Replays the take and writes every packet as it is without SRTP and DTLS, and gives their
  /// number.
  package func clearPackets(
    to path: String, progress: (String) -> Void = { _ in }
  ) throws(ExportFailure) -> Replayed<Int> {
    let history = try history()
    let file = try PacketFile(
      path, startUnixNanoseconds: history.startUnixNanoseconds, window: window)
    let replay = ClearReplay(take: take, only: peer)
    let (report, written) = try replay.run(into: file, progress: progress)
    try written.finish()
    return Replayed(written: written.count, report: report)
  }

  /// Replays the take and writes what every received track showed and played into a file each.
  ///
  /// - Parameter folder: where to; it is made when it is not there.
  package func media(
    into folder: String, framesPerSecond: Int, progress: (String) -> Void = { _ in }
  ) throws(ExportFailure) -> Replayed<[TrackFiles.Written]> {
    let peers = try history().peers
    if !WholeFile.makeFolder(folder) {
      do {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      } catch {
        throw .folder(path: folder)
      }
    }
    let tracks = TrackFiles(folder: folder, framesPerSecond: framesPerSecond, window: window)
    let replay = MediaReplay(take: take, peers: peers, only: peer, tracks: tracks)
    let report = try replay.run(progress: progress)
    return Replayed(written: try tracks.finish(), report: report)
  }
}
