import Crypto
import Media
package import MediaFiles
package import Replay
package import Tape
package import Wire

/// Exports a take to other tools' files: packet captures, and received media.
package struct TakeExport: Sendable {
  private let take: String
  /// The peer to export, by number; nil for all.
  private let peer: Int64?
  /// The part to export, in nanoseconds since the take began.
  private let window: ClosedRange<Int64>
  /// Whether an existing file is replaced, or kept and the export refused.
  private let present: WholeFile.Present

  /// Selects a take, and optionally a peer and a part of the take's time.
  package init(
    take: String, peer: Int64? = nil, window: ClosedRange<Int64> = .min ... .max,
    present: WholeFile.Present = .kept
  ) {
    self.window = window
    self.present = present
    self.take = take
    self.peer = peer
  }

  /// The result of an export, with the report of the replay that it needed, if any.
  package struct Replayed<Written: Sendable>: Sendable {
    /// The written files, or the number of written packets.
    package var written: Written
    /// The replay's report, or nil without a replay; if it has a difference, the export ended
    /// there.
    package var report: ReplayReport?
  }

  /// Returns the take's datagrams; throws if it lacks the selected peer.
  private func history() throws(ExportFailure) -> DatagramHistory {
    let history = try ExportFailure.reading { () throws(TapeError) in
      try DatagramHistory(path: take, peer: peer)
    }
    guard let peer, !history.peers.contains(where: { $0.number == peer }) else { return history }
    let known = history.peers.map { "\($0.number) (\($0.label))" }.joined(separator: ", ")
    throw .noSuchPeer(take: take, number: peer, known: known)
  }

  /// Writes every datagram as it was on the wire; returns the number written.
  ///
  /// If there are no packets, no file is created.
  ///
  /// - Parameters:
  ///   - path: the capture; `-` is standard output.
  ///   - progress: receives the current activity from time to time.
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

  /// Writes each received track's decoded media into a file.
  ///
  /// For a part of a take, or one of its peers, only the necessary frames are decoded if the take
  /// contains them; otherwise the take is replayed.
  ///
  /// - Parameters:
  ///   - folder: the output folder; created if it does not exist, and only if there is media.
  ///   - gaps: how long a file may continue without new media.
  package func media(
    into folder: String, only kind: MediaKind? = nil, framesPerSecond: Int,
    gaps: GapBudget = TakeExport.usualGaps, progress: (String) -> Void = { _ in }
  ) throws(ExportFailure) -> Replayed<[TrackFiles.Written]> {
    let peers = try history().peers
    if case .failure = WholeFile.makeFolder(folder) { throw .folder(path: folder) }
    // Without received media, and after a failure, no folder is left behind.
    defer { UnfinishedFiles.removeIfEmpty(folder: folder) }
    func files() -> TrackFiles {
      TrackFiles(
        folder: folder, present: present, only: kind, framesPerSecond: framesPerSecond,
        window: window, gaps: gaps)
    }
    var tracks = files()
    var report: ReplayReport?
    let part = MediaPart(take: take, peers: peers, only: peer, kind: kind, window: window)
    if try !part.write(into: tracks, progress: progress) {
      // The files written so far are removed.
      tracks = files()
      let replay = MediaReplay(take: take, peers: peers, only: peer, tracks: tracks)
      report = try replay.run(progress: progress)
    }
    return Replayed(written: try tracks.finish(), report: report)
  }

  /// The maximum time in a media file without new media, in seconds, not counting the first second
  /// of each pause.
  package static let usualGapSeconds = 10

  /// The default budget for time without new media: `usualGapSeconds`.
  package static var usualGaps: GapBudget {
    GapBudget(nanoseconds: Int64(usualGapSeconds) * 1_000_000_000)
  }
}

// MARK: - ExportFailure

/// The reason that an export ended early, in one sentence.
package enum ExportFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The take cannot be read.
  case take(TapeError)
  /// A file cannot be written.
  case file(WholeFile.Failure)
  /// A track's file cannot be written; the reason comes from the format's writer.
  case media(String)
  /// The media folder cannot be created.
  case folder(path: String)
  /// There is nothing to write, for the stated reason.
  case nothing(take: String, reason: String)
  /// The take has no peer with that number; `known` lists the ones it has.
  case noSuchPeer(take: String, number: Int64, known: String)

  /// The failure as one sentence.
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

  /// Runs a closure that writes a complete file, and converts its errors.
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

/// Makes parts of file names from untrusted text.
enum FileNamePart {
  /// The maximum length in bytes.
  ///
  /// All common systems allow file names of 255 bytes, and a name has other parts before and after
  /// this one.
  static let longest = 64

  /// Keeps ASCII letters and digits; everything else becomes hyphens.
  ///
  /// A long string is cut, and a digest of all of it is appended, so that strings with the same
  /// beginning stay distinct.
  static func plain(_ text: String) -> String {
    let plain = String(
      text.prefix(longest + 1).map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    guard plain.utf8.count > longest else { return plain }
    let digest = hexadecimal(SHA256.hash(Array(text.utf8)).prefix(8))
    return plain.prefix(longest - digest.utf8.count - 1) + "-" + digest
  }
}
