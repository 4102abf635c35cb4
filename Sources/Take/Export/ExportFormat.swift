import Glibc
import Tape
import Wire

/// The formats of other tools to which a take can be exported.
package enum ExportFormat: String, CaseIterable, Sendable {
  case webm, ogg, ivf, mp4, wav, y4m
  case rtpdump, mjr
  case internals = "webrtc-internals"
  case rtcstats, perfetto, tracks
  case csv, jsonl

  /// The kind of output: one file, or a folder with a file for each track.
  package enum Shape: Sendable { case file, folder }

  package var shape: Shape {
    switch self {
    case .webm, .ogg, .ivf, .mp4, .wav, .y4m, .mjr: .folder
    case .rtpdump, .internals, .rtcstats, .perfetto, .tracks, .csv, .jsonl: .file
    }
  }

  /// The container into which recorded frames are written; nil for formats that do not hold encoded
  /// frames.
  package var container: FrameExport.Container? {
    switch self {
    case .webm: .webm
    case .ogg: .ogg
    case .ivf: .ivf
    case .mp4: .mp4
    default: nil
    }
  }

  /// A sentence that states what the format cannot represent.
  package var limits: String {
    switch self {
    case .webm, .ogg, .ivf, .mp4, .wav, .y4m:
      "it holds only media: packets, signaling, states and statistics stay in the take; when each "
        + "track began and who spoke is in tracks.json"
    case .rtpdump:
      "it holds RTP and RTCP without SRTP, in milliseconds: addresses, directions, ICE, DTLS, data "
        + "channels, signaling, frames and statistics stay in the take"
    case .mjr:
      "it holds the RTP of each received track, in milliseconds: RTCP, retransmissions, data "
        + "channels, addresses, signaling and statistics stay in the take"
    case .internals:
      "it holds calls, events and series of statistics: packets, media, messages and what the "
        + "stack did between two samples stay in the take, and passwords and keys are removed"
    case .rtcstats:
      "it holds calls, events and statistics: packets, media, messages and what the stack did "
        + "between two samples stay in the take, and passwords and keys are removed"
    case .perfetto:
      "it holds when things happened: contents of packets, frames, messages and descriptions stay "
        + "in the take"
    case .tracks: "it lists the tracks and who spoke when: everything else stays in the take"
    case .csv, .jsonl: "it holds the rows of one query"
    }
  }
}

extension ExportFailure {
  /// Runs SQL statements on a take, and converts their errors.
  static func asking<Value>(
    _ take: String, _ body: () throws(SQLiteError) -> Value
  ) throws(ExportFailure) -> Value {
    do throws(SQLiteError) {
      return try body()
    } catch {
      throw .take(TapeError(path: take, error))
    }
  }
}

/// A text file that is written piece by piece and appears once it is complete.
final class TextFile {
  /// The file, which gets its name once it is complete; nil for standard output.
  private let whole: WholeFile?
  private let descriptor: FileDescriptor
  private var waiting: [UInt8] = []
  private(set) var byteCount = 0

  /// - Parameter path: the file; `-` is standard output.
  init(_ path: String, _ present: WholeFile.Present) throws(ExportFailure) {
    if path == "-" {
      descriptor = FileDescriptor(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0))
      whole = nil
      return
    }
    let whole = try ExportFailure.writing { () throws(WholeFile.Failure) in
      try WholeFile(path, present)
    }
    descriptor = FileDescriptor(
      try ExportFailure.writing { () throws(WholeFile.Failure) in try whole.open() })
    self.whole = whole
  }

  func write(_ text: String) throws(ExportFailure) { try write(Array(text.utf8)) }

  func write(_ bytes: [UInt8]) throws(ExportFailure) {
    waiting += bytes
    byteCount += bytes.count
    if waiting.count > 1 << 20 { try flush() }
  }

  private func flush() throws(ExportFailure) {
    let code = WholeFile.write(waiting, into: descriptor.number)
    waiting.removeAll(keepingCapacity: true)
    guard code == 0 else { throw .file(WholeFile.Failure(path: whole?.path ?? "-", code: code)) }
  }

  func finish() throws(ExportFailure) {
    try flush()
    guard let whole else { return }
    try ExportFailure.writing { () throws(WholeFile.Failure) in try whole.finish() }
  }
}
