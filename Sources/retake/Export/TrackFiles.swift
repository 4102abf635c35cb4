import Foundation
import Live
import Media
import MediaFiles
import RTP
import Tape
import Wire

extension EncodedPicture {
  /// The kind of file that it goes into.
  fileprivate var container: FrameContainer {
    Codec.named(codec)?.container ?? .byteStream(ending: codec)
  }
}

/// The files that received tracks are written into, made when the first frame of a track comes.
final class TrackFiles {
  private struct Track {
    var peer: Int64
    var transceiver: UInt32
    var kind: MediaKind
    /// How its file's name ends, which tells what the file holds.
    var ending: String
    var file: WholeFile
    var begin: Instant
    var writer: any FrameWriting
  }

  private let folder: String
  private let framesPerSecond: Int
  private var tracks: [Track] = []
  private var failure: CommandFailure?

  /// How many frames came in.
  private(set) var count = 0

  init(folder: String, framesPerSecond: Int) {
    self.folder = folder
    self.framesPerSecond = framesPerSecond
  }

  /// Whether no track was received.
  var isEmpty: Bool { tracks.isEmpty }

  /// Writes a picture or block of sound; after a failure nothing more is written.
  func write(_ media: ReceivedMedia, _ kind: MediaKind, of peer: (number: Int64, label: String)) {
    guard failure == nil else { return }
    count += 1
    let ending =
      switch media.content {
      case .audio: "wav"
      case .picture: "y4m"
      case .encodedPicture(let picture): picture.container.ending
      }
    let known = tracks.firstIndex {
      $0.peer == peer.number && $0.transceiver == media.transceiver && $0.ending == ending
    }
    do throws(CommandFailure) {
      // An autoclosure would lose the type of the error, so this is no `??`.
      let index = if let known { known } else { try add(media, kind, ending, peer) }
      tracks[index].writer.write(media.content, at: media.at)
    } catch {
      failure = error
    }
  }

  private func add(
    _ media: ReceivedMedia, _ kind: MediaKind, _ ending: String,
    _ peer: (number: Int64, label: String)
  ) throws(CommandFailure) -> Int {
    let label = String(peer.label.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    let name = "peer\(peer.number)-\(label)-track\(media.transceiver)-\(kind.rawValue).\(ending)"
    let path = (folder as NSString).appendingPathComponent(name)
    let whole = try WritingWhole.file(path, .kept)
    let writer: any FrameWriting
    do throws(MediaFileError) {
      let file = try MediaFile(whole.temporary, for: .creating)
      switch media.content {
      case .audio: writer = SoundWriter(file)
      case .picture: writer = PictureWriter(file, framesPerSecond: framesPerSecond)
      case .encodedPicture(let picture):
        switch picture.container {
        case .byteStream: writer = StreamWriter(file)
        case .ivf(let fourCC): writer = TimedStreamWriter(file, fourCC: fourCC)
        }
      }
    } catch {
      throw CommandFailure(
        .inputOutput, error.description.replacing(whole.temporary, with: path))
    }
    tracks.append(
      Track(
        peer: peer.number, transceiver: media.transceiver, kind: kind, ending: ending, file: whole,
        begin: media.at, writer: writer))
    return tracks.count - 1
  }

  /// Completes all files and says in a line each what they hold.
  func finish() throws -> [String] {
    if let failure { throw failure }
    var lines: [String] = []
    for index in tracks.indices {
      let frames: Int
      do throws(MediaFileError) {
        frames = try tracks[index].writer.finish().get()
      } catch {
        let file = tracks[index].file
        throw CommandFailure(
          .inputOutput, error.description.replacing(file.temporary, with: file.path))
      }
      let track = tracks[index]
      try WritingWhole.finish(track.file)
      let what = track.kind == .audio ? "blocks of sound" : "pictures"
      let begin = String(format: "%.3f", track.begin.seconds)
      lines.append("\(track.file.path): \(frames) \(what), from \(begin) s of the take on")
    }
    return lines
  }
}
