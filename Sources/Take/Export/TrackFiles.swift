import Media
import MediaFiles
import Peer
import RTP
import Tape
package import Wire

extension EncodedVideoChunk {
  /// The codec's container; a plain byte stream if it has none.
  fileprivate var container: FrameContainer {
    Codec.named(codec)?.container ?? .byteStream(ending: codec)
  }
}

/// The files of received tracks, each created with its track's first frame.
package final class TrackFiles {
  /// A finished media file, and the part of its track that it contains.
  package struct Written: Hashable, Sendable {
    package var path: String
    /// Whether the file contains audio blocks or video frames.
    package var kind: MediaKind
    /// The number of audio blocks or video frames in the file.
    package var frames: Int
    /// The time at which the first block or frame was played or shown.
    package var begin: Instant
    /// The duration cut from pauses without new media.
    package var leftOut: Interval
    /// The peer's and the track's numbers.
    package var peer: Int64?
    package var track: Int64?
  }

  private struct Track {
    var peer: Int64
    var transceiver: UInt32
    var kind: MediaKind
    /// The file name extension, which shows the format.
    var ending: String
    var file: WholeFile
    var begin: Instant
    var writer: any FrameWriting
  }

  private let folder: String
  /// Whether an existing file is replaced, or kept and the export refused.
  private let present: WholeFile.Present
  /// The only kind of media to write; nil for both.
  private let only: MediaKind?
  private let framesPerSecond: Int
  /// The part of the take to export, in nanoseconds since the take began.
  private let window: ClosedRange<Int64>
  /// Each file's budget for pauses without new media.
  private let gaps: GapBudget
  private var tracks: [Track] = []
  private var failure: ExportFailure?

  /// The number of frames and blocks passed to the files' writers.
  private(set) var count = 0

  init(
    folder: String, present: WholeFile.Present, only: MediaKind? = nil, framesPerSecond: Int,
    window: ClosedRange<Int64> = .min ... .max,
    gaps: GapBudget = GapBudget()
  ) {
    self.gaps = gaps
    self.present = present
    self.folder = folder
    self.only = only
    self.window = window
    self.framesPerSecond = framesPerSecond
  }

  /// Writes a video frame or audio block; does nothing after a failure.
  func write(_ media: ReceivedMedia, _ kind: MediaKind, of peer: (number: Int64, label: String)) {
    guard failure == nil, only == nil || only == kind, window.contains(media.at.nanoseconds) else {
      return
    }
    count += 1
    let ending =
      switch media.content {
      case .audio: "wav"
      case .videoFrame: "y4m"
      case .encodedVideo(let videoFrame): videoFrame.container.ending
      }
    let known = tracks.firstIndex {
      $0.peer == peer.number && $0.transceiver == media.transceiver && $0.ending == ending
    }
    do throws(ExportFailure) {
      // An autoclosure would lose the error's type, so `??` cannot be used.
      let index = if let known { known } else { try add(media, kind, ending, peer) }
      tracks[index].writer.write(media.content, at: media.at)
    } catch {
      failure = error
    }
  }

  private func add(
    _ media: ReceivedMedia, _ kind: MediaKind, _ ending: String,
    _ peer: (number: Int64, label: String)
  ) throws(ExportFailure) -> Int {
    // A participant may choose any label, so the peer's and the track's numbers make the names
    // unique.
    let label = FileNamePart.plain(peer.label)
    let name = "peer\(peer.number)-\(label)-track\(media.transceiver)-\(kind.rawValue).\(ending)"
    let path = folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
    let whole = try ExportFailure.writing { () throws(WholeFile.Failure) in
      try WholeFile(path, present)
    }
    let descriptor = try ExportFailure.writing { () throws(WholeFile.Failure) in
      try whole.open()
    }
    let file = MediaFile(descriptor: descriptor, path: whole.temporary)
    let writer: any FrameWriting =
      switch media.content {
      case .audio: AudioWriter(file, gaps: gaps)
      case .videoFrame: VideoWriter(file, framesPerSecond: framesPerSecond, gaps: gaps)
      case .encodedVideo(let videoFrame):
        switch videoFrame.container {
        case .byteStream: StreamWriter(file)
        case .ivf(let fourCC): TimedStreamWriter(file, fourCC: fourCC)
        }
      }
    tracks.append(
      Track(
        peer: peer.number, transceiver: media.transceiver, kind: kind, ending: ending, file: whole,
        begin: media.at, writer: writer))
    return tracks.count - 1
  }

  /// Completes all files and returns their descriptions.
  func finish() throws(ExportFailure) -> [Written] {
    if let failure { throw failure }
    var written: [Written] = []
    for index in tracks.indices {
      let frames: Int
      do throws(MediaFileError) {
        frames = try tracks[index].writer.finish().get()
      } catch {
        let file = tracks[index].file
        throw .media(error.description.replacing(file.temporary, with: file.path))
      }
      let track = tracks[index]
      try ExportFailure.writing { () throws(WholeFile.Failure) in try track.file.finish() }
      written.append(
        Written(
          path: track.file.path, kind: track.kind, frames: frames, begin: track.begin,
          leftOut: track.writer.leftOut, peer: track.peer, track: Int64(track.transceiver)))
    }
    return written
  }
}
