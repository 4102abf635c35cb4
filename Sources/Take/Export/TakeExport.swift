import Crypto
import Media
package import MediaFiles
package import Replay
package import Tape
import Wire

/// A take as the files of other tools: packet captures, and received media.
package struct TakeExport: Sendable {
  private let take: String
  /// The number of the peer that is wanted; nil for all.
  private let peer: Int64?
  /// The nanoseconds since the take began from which something is wanted, and to which.
  private let window: ClosedRange<Int64>
  /// Whether files that exist are replaced, or the export refused.
  private let present: WholeFile.Present

  /// Chooses a take, one of its peers, and a part of its time.
  package init(
    take: String, peer: Int64? = nil, window: ClosedRange<Int64> = .min ... .max,
    present: WholeFile.Present = .kept
  ) {
    self.window = window
    self.present = present
    self.take = take
    self.peer = peer
  }

  /// What an export that replays came to.
  package struct Replayed<Written: Sendable>: Sendable {
    /// What was written.
    package var written: Written
    /// The replay, nil if nothing had to be replayed; a difference in it cut the export short.
    package var report: ReplayReport?
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
  ///
  /// Without packets there is no file.
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

  /// Replays the take and writes every packet as it is without SRTP and DTLS, and gives their
  /// number.
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

  /// Writes what every received track showed and played into a file each.
  ///
  /// Of a part of a take, or one of its peers, no more is decoded than that needs, where the take
  /// keeps its frames; else it is replayed.
  ///
  /// - Parameters:
  ///   - folder: where to; it is made when it is not there, and not for nothing.
  ///   - gaps: for how long a file may show or play nothing new.
  package func media(
    into folder: String, framesPerSecond: Int, gaps: GapBudget = TakeExport.usualGaps,
    progress: (String) -> Void = { _ in }
  ) throws(ExportFailure) -> Replayed<[TrackFiles.Written]> {
    let peers = try history().peers
    let isNew: Bool
    switch WholeFile.makeFolder(folder) {
    case .success(let made): isNew = made
    case .failure: throw .folder(path: folder)
    }
    func files() -> TrackFiles {
      TrackFiles(
        folder: folder, present: present, framesPerSecond: framesPerSecond, window: window,
        gaps: gaps)
    }
    var tracks = files()
    var report: ReplayReport?
    let part = MediaPart(take: take, peers: peers, only: peer, window: window)
    if try !part.write(into: tracks, progress: progress) {
      // What was begun is removed with its files.
      tracks = files()
      let replay = MediaReplay(take: take, peers: peers, only: peer, tracks: tracks)
      report = try replay.run(progress: progress)
    }
    let written = try tracks.finish()
    // Where nothing was received there is nothing to look into.
    if isNew { written.isEmpty ? UnfinishedFiles.remove(folder) : UnfinishedFiles.forget(folder) }
    return Replayed(written: written, report: report)
  }

  /// For how long a file of media shows or plays nothing new, in seconds.
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
  /// The take has no peer of that number; it has these.
  case noSuchPeer(take: String, number: Int64, known: String)

  /// The sentence.
  package var description: String {
    switch self {
    case .take(let error): error.description
    case .file(let failure): failure.description
    case .media(let words): words
    case .folder(let path): "\(path): the folder cannot be made; choose another"
    case .noSuchPeer(let take, let number, let known):
      "\(take): there is no peer \(number); the take has \(known)"
    }
  }

  /// Runs what reads a take.
  static func reading<Value>(_ body: () throws(TapeError) -> Value) throws(ExportFailure) -> Value {
    do throws(TapeError) {
      return try body()
    } catch {
      throw .take(error)
    }
  }

  /// Runs what writes a file as a whole.
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

/// A part of the name of a file, made of a text that others wrote.
enum FileNamePart {
  /// How long it is at most, in bytes.
  ///
  /// Names of files have up to 255 on all common systems, and other parts stand beside it.
  static let longest = 64

  /// Letters and digits of ASCII as they are, everything else as hyphens.
  ///
  /// Of a long text the beginning stays, with a digest of all of it behind that, so that two which
  /// begin alike are told apart.
  static func plain(_ text: String) -> String {
    let plain = String(
      text.prefix(longest + 1).map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    guard plain.utf8.count > longest else { return plain }
    let digest = hexadecimal(SHA256.hash(Array(text.utf8)).prefix(8))
    return plain.prefix(longest - digest.utf8.count - 1) + "-" + digest
  }
}
