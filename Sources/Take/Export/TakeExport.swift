import Crypto
import Media
package import MediaFiles
package import Replay
package import Tape
package import Wire

/// Exports a take to files of other tools: packet captures, and received media.
package struct TakeExport: Sendable {
  private let take: String
  /// The number of the peer that is wanted; nil for all.
  private let peer: Int64?
  /// The exported part, in nanoseconds since the take began.
  private let window: ClosedRange<Int64>
  /// Whether files that exist are replaced, or the export refused.
  private let present: WholeFile.Present

  /// Selects a take, optionally one of its peers and a part of its time.
  package init(
    take: String, peer: Int64? = nil, window: ClosedRange<Int64> = .min ... .max,
    present: WholeFile.Present = .kept
  ) {
    self.window = window
    self.present = present
    self.take = take
    self.peer = peer
  }

  /// The result of an export that may replay the take.
  package struct Replayed<Written: Sendable>: Sendable {
    /// The written files or packets.
    package var written: Written
    /// The replay's report, nil without a replay; a difference in it ended the export early.
    package var report: ReplayReport?
  }

  /// The datagrams of the take; throws if it does not have the selected peer.
  private func history() throws(ExportFailure) -> DatagramHistory {
    let history = try ExportFailure.reading { () throws(TapeError) in
      try DatagramHistory(path: take, peer: peer)
    }
    guard let peer, !history.peers.contains(where: { $0.number == peer }) else { return history }
    let known = history.peers.map { "\($0.number) (\($0.label))" }.joined(separator: ", ")
    throw .noSuchPeer(take: take, number: peer, known: known)
  }

  /// Writes every datagram as it was on the wire, and returns their number.
  ///
  /// - Parameters:
  ///   - path: the capture; `-` is standard output.
  ///   - progress: receives a text now and then.
  ///
  /// Without packets no file is created.
  package func packets(
    to path: String, progress: (String) -> Void = { _ in }
  ) throws(ExportFailure) -> Int {
    let history = try history()
    var file = try PacketFile(
      path, present, startUnixNanoseconds: history.startUnixNanoseconds, window: window)
    while let entry = try ExportFailure.reading({ () throws(TapeError) in try history.next() }) {
      if let (lost, isEnd) = entry.stream {
        file.segment(
          from: entry.source, to: entry.destination, entry.bytes, lost: lost, isEnd: isEnd,
          atNanoseconds: entry.atNanoseconds)
      } else {
        file.datagram(
          from: entry.source, to: entry.destination, entry.bytes, ecn: entry.ecn,
          atNanoseconds: entry.atNanoseconds)
      }
      if file.count % 1000 == 0 {
        try file.flush()
        progress("\(file.count) of \(history.count)")
      }
    }
    try file.finish()
    return file.count
  }

  /// Replays the take and writes every packet without SRTP and DTLS; returns their number.
  package func clearPackets(
    to path: String, progress: (String) -> Void = { _ in }
  ) throws(ExportFailure) -> Replayed<Int> {
    let history = try history()
    let file = try PacketFile(
      path, present, startUnixNanoseconds: history.startUnixNanoseconds, window: window)
    let replay = ClearReplay(take: take, only: peer)
    let (report, written) = try replay.run(into: file, progress: progress)
    try written.finish()
    return Replayed(written: written.count, report: report)
  }

  /// Writes the decoded media of each received track into one file per track.
  ///
  /// For a part of a take, or one of its peers, only the necessary frames are decoded, if the take
  /// contains them; otherwise it is replayed.
  ///
  /// - Parameters:
  ///   - folder: the output folder; created if it does not exist, and only if there is media.
  ///   - gaps: how long a file may contain nothing new.
  package func media(
    into folder: String, only kind: MediaKind? = nil, framesPerSecond: Int,
    gaps: GapBudget = TakeExport.usualGaps, progress: (String) -> Void = { _ in }
  ) throws(ExportFailure) -> Replayed<[TrackFiles.Written]> {
    let peers = try history().peers
    let isNew: Bool
    switch WholeFile.makeFolder(folder) {
    case .success(let made): isNew = made
    case .failure: throw .folder(path: folder)
    }
    func files() -> TrackFiles {
      TrackFiles(
        folder: folder, present: present, only: kind, framesPerSecond: framesPerSecond,
        window: window, gaps: gaps)
    }
    var tracks = files()
    var report: ReplayReport?
    let part = MediaPart(take: take, peers: peers, only: peer, kind: kind, window: window)
    if try !part.write(into: tracks, progress: progress) {
      // The files begun so far are removed.
      tracks = files()
      let replay = MediaReplay(take: take, peers: peers, only: peer, tracks: tracks)
      report = try replay.run(progress: progress)
    }
    let written = try tracks.finish()
    // Without received media, no folder is left behind.
    if isNew { written.isEmpty ? UnfinishedFiles.remove(folder) : UnfinishedFiles.forget(folder) }
    return Replayed(written: written, report: report)
  }

  /// How long a media file may contain nothing new, in seconds.
  package static let usualGapSeconds = 10

  /// The same as a budget.
  package static var usualGaps: GapBudget {
    GapBudget(nanoseconds: Int64(usualGapSeconds) * 1_000_000_000)
  }
}

// MARK: - ExportFailure

/// Why an export ended early, in one sentence.
package enum ExportFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The take cannot be read.
  case take(TapeError)
  /// A file cannot be written.
  case file(WholeFile.Failure)
  /// The file of a track cannot be written; in the words of the format's writer.
  case media(String)
  /// The folder for media cannot be made.
  case folder(path: String)
  /// There is nothing to write, and why.
  case nothing(take: String, reason: String)
  /// The take has no peer of that number; it has these.
  case noSuchPeer(take: String, number: Int64, known: String)

  /// The sentence.
  package var description: String {
    switch self {
    case .take(let error): error.description
    case .file(let failure): failure.description
    case .media(let words): words
    case .folder(let path): "\(path): the folder cannot be made; choose another"
    case .nothing(let take, let reason): "\(take): \(reason)"
    case .noSuchPeer(let take, let number, let known):
      "\(take): there is no peer \(number); the take has \(known)"
    }
  }

  /// Runs a closure that reads a take, and converts its errors.
  static func reading<Value: ~Copyable>(
    _ body: () throws(TapeError) -> Value
  ) throws(ExportFailure) -> Value {
    do throws(TapeError) {
      return try body()
    } catch {
      throw .take(error)
    }
  }

  /// Runs a closure that writes a whole file, and converts its errors.
  static func writing<Value>(
    _ body: () throws(WholeFile.Failure) -> Value
  ) throws(ExportFailure) -> Value {
    do throws(WholeFile.Failure) {
      return try body()
    } catch {
      throw .file(error)
    }
  }
}

/// A part of a file name, made of a text from outside.
enum FileNamePart {
  /// The maximum length in bytes.
  ///
  /// File names have at most 255 on all common systems, and other parts precede and follow it.
  static let longest = 64

  /// Keeps letters and digits of ASCII; everything else becomes hyphens.
  ///
  /// A long text is cut, and a digest of all of it appended, so that texts with the same beginning
  /// stay distinct.
  static func plain(_ text: String) -> String {
    let plain = String(
      text.prefix(longest + 1).map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    guard plain.utf8.count > longest else { return plain }
    let digest = hexadecimal(SHA256.hash(Array(text.utf8)).prefix(8))
    return plain.prefix(longest - digest.utf8.count - 1) + "-" + digest
  }
}
