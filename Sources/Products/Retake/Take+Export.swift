import Export
import Media
import Replay
public import Tape
public import Wire

/// Which packets an export writes.
public enum PacketForm: Hashable, Sendable {
  /// Each datagram as it was on the wire, with reconstructed IP and UDP headers.
  case onTheWire
  /// RTP and RTCP without SRTP, and SCTP without DTLS, from a replay: readable without keys.
  case inTheClear
}

/// A file that the received media of a track was written into.
public struct ExportedTrack: Hashable, Sendable {
  /// The file: `.wav`, `.y4m`, `.h264` or `.ivf`.
  public var path: String
  /// Audio or video frames.
  public var kind: MediaKind
  /// How many blocks of audio or video frames it holds.
  public var frames: Int
  /// When the first of them was played or shown.
  public var begin: Instant
}

extension Take {
  /// Writes the packets into a packet capture (pcap with nanosecond timestamps) and returns their
  /// number; the file must not exist.
  /// - Parameters:
  ///   - path: the file to write, readable only by its owner.
  ///   - form: as on the wire, or decrypted.
  ///   - peer: the number of the peer whose packets are written; nil for all. A take of both ends
  ///     of a call contains most datagrams twice.
  /// - Throws: `TakeError`, also when a replay differs; the file then ends there.
  @discardableResult
  public func exportPackets(
    to path: String, _ form: PacketForm = .onTheWire, peer: UInt32? = nil
  ) async throws(TakeError) -> Int {
    let take = self
    return try await computing { () throws(TakeError) in
      let export = TakeExport(take: take.path, peer: peer.map(Int64.init))
      switch form {
      case .onTheWire:
        return try take.exporting { () throws(ExportFailure) in try export.packets(to: path) }
      case .inTheClear:
        let result = try take.exporting { () throws(ExportFailure) in
          try export.clearPackets(to: path)
        }
        try take.check(result.report, "packets")
        return result.written
      }
    }
  }

  /// Writes what each received track displayed and played into a file of its own.
  ///
  /// The take is replayed for that, and of each selected peer the frames are decoded if the take
  /// has them.
  /// - Parameters:
  ///   - folder: the output folder; created if it does not exist.
  ///   - peer: the number of the peer whose media is written; nil for all.
  ///   - framesPerSecond: the frame rate of the `.y4m` files.
  /// - Throws: `TakeError`, also when the replay differs; the files then end there.
  @discardableResult
  public func exportMedia(
    into folder: String, peer: UInt32? = nil, framesPerSecond: Int = 30
  ) async throws(TakeError) -> [ExportedTrack] {
    let take = self
    return try await computing { () throws(TakeError) in
      let result = try take.exporting { () throws(ExportFailure) in
        try TakeExport(take: take.path, peer: peer.map(Int64.init)).media(
          into: folder, framesPerSecond: max(1, framesPerSecond))
      }
      try take.check(result.report, "media")
      return result.written.map {
        ExportedTrack(path: $0.path, kind: $0.kind, frames: $0.frames, begin: $0.begin)
      }
    }
  }

  private func exporting<Value>(
    _ body: () throws(ExportFailure) -> Value
  ) throws(TakeError) -> Value {
    do throws(ExportFailure) {
      return try body()
    } catch {
      switch error {
      case .take(let error): throw error
      case .file(let failure):
        throw TakeError(path: "", place: "", reason: failure.description, kind: .failed)
      case .media, .folder:
        throw TakeError(path: "", place: "", reason: error.description, kind: .failed)
      case .noSuchPeer: throw TakeError(path: "", place: "", reason: error.description)
      }
    }
  }

  /// Rejects a replay that did not reach its end.
  private func check(_ report: ReplayReport?, _ what: String) throws(TakeError) {
    guard let report else { return }
    guard case .identical = report.verdict else {
      throw TakeError(
        path: path, place: "step \(report.steps + 1)",
        reason: "the replay differs from the recording there, so the \(what) end")
    }
  }
}
