import Media
import MediaFiles
import RTP
import Replay
package import Tape
import Wire

/// Writes recorded frames into media files as they are: nothing is decoded, and only the requested
/// media is read.
///
/// If the take has no frames, a replay assembles them.
package struct FrameExport {
  /// The file format for a track's frames.
  package enum Container: String, Sendable {
    case webm, ogg, ivf, mp4

    fileprivate var codecs: [String] {
      switch self {
      case .webm: ["vp8", "vp9", "av1", "opus"]
      case .ogg: ["opus"]
      case .ivf: ["vp8", "vp9", "av1", "h264"]
      case .mp4: ["h264"]
      }
    }
  }

  /// A media file that an export wrote, and the part of the take that it covers.
  package struct Written: Sendable {
    package var path: String
    package var track: Track
    package var frames = 0
    /// The beginning of the first frame, and the beginning of the last video frame or the end of
    /// the audio, in nanoseconds since the take began.
    package var from: Int64 = 0
    package var to: Int64 = 0
    /// The duration of audio that was lost or not sent, and is replaced with packets without data,
    /// in nanoseconds.
    package var concealed: Int64 = 0
    /// The duration cut from pauses, in nanoseconds.
    package var leftOut: Int64 = 0
    /// The number of frames left out: frames before the first key frame, and duplicate, late or
    /// invalid frames.
    package var dropped = 0
    /// The sizes that the video had, in order.
    package var sizes: [String] = []
  }

  /// One direction of a track with one codec.
  package struct Track: Hashable, Sendable {
    package var peer: Int64
    package var label: String
    package var number: Int64
    package var isVideo: Bool
    package var isSent: Bool
    package var codec: String
    /// The SSRC of a sent track, which may have several encodings; nil for received tracks.
    package var ssrc: Int64?
    var channels: Int
    /// Whether the peer has another track with the same number, direction and kind.
    var isOneOfSeveral = false
  }

  private struct Frame {
    var at: Int64
    var time: UInt32
    var isKey: Bool
    var width: Int
    var height: Int
    var bytes: [UInt8]
  }

  /// Makes an MP4 file from an IVF file without decoding it; returns the reason if it could not.
  package typealias Mux = (_ ivf: String, _ mp4: String) -> String?

  private let take: String
  private let peer: Int64?
  private let window: ClosedRange<Int64>
  private let present: WholeFile.Present
  private let withSent: Bool

  /// - Parameter withSent: whether sent frames are written as well as received ones.
  package init(
    take: String, peer: Int64?, window: ClosedRange<Int64>, present: WholeFile.Present,
    withSent: Bool
  ) {
    self.take = take
    self.peer = peer
    self.window = window
    self.present = present
    self.withSent = withSent
  }

  /// Writes a file for each track whose codec the container supports.
  package func write(
    _ container: Container, into folder: String, mux: Mux, progress: (String) -> Void
  ) throws(ExportFailure) -> [Written] {
    let connection = try ExportFailure.reading { () throws(TapeError) in
      try TakeFile.openForQueries(take)
    }
    let header = try ExportFailure.reading { () throws(TapeError) in
      try TakeHeader.read(from: connection, path: take)
    }
    guard header.keepsMedia else {
      return try withCopy(header, in: folder, progress) { (copy) throws(ExportFailure) in
        try copy.write(container, into: folder, mux: mux, progress: progress)
      }
    }
    let tracks = try ExportFailure.asking(take) { () throws(SQLiteError) in
      try list(connection, container)
    }
    var written: [Written] = []
    for track in tracks {
      progress("track \(track.number) of peer \(track.peer)")
      let name = Self.name(track, container)
      let path = folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
      if let file = try write(track, container, to: path, connection, mux) { written.append(file) }
    }
    return written
  }

  /// Exports from a temporary take whose frames the stack assembles from the packets again.
  private func withCopy(
    _ header: TakeHeader, in folder: String, _ progress: (String) -> Void,
    _ use: (FrameExport) throws(ExportFailure) -> [Written]
  ) throws(ExportFailure) -> [Written] {
    let file: WholeFile
    do throws(WholeFile.Failure) {
      let name = folder.hasSuffix("/") ? folder + "frames.take" : "\(folder)/frames.take"
      file = try WholeFile(name, .replaced, isTake: true)
    } catch {
      throw .file(error)
    }
    return try withExtendedLifetime(file) { () throws(ExportFailure) in
      try ExportFailure.reading { () throws(TapeError) in
        let substitution = try Substitution(of: take, header, by: .current(for: take))
        guard header.redacted?.isFactsOnly != true else {
          throw TapeError(
            path: take, place: "", reason: "it has no stored media and cannot be replayed")
        }
        var options = Redrive.Options()
        options.skipsCodecs = substitution.skipsCodecs
        options.security = substitution.security
        var header = header
        header.keepsMedia = true
        options.header = header
        let redrive = try Redrive(
          path: take, output: file.temporary, options: options, codecs: { LibraryCodecs() },
          peer: TakeVerification.stack)
        _ = try redrive.run { progress("assembling frames, \($0.wholeSeconds) s") }
      }
      return try use(
        FrameExport(
          take: file.temporary, peer: peer, window: window, present: present, withSent: withSent))
    }
  }

  // MARK: Tracks

  private func list(
    _ connection: borrowing SQLiteConnection, _ container: Container
  ) throws(SQLiteError) -> [Track] {
    let codecs = container.codecs.map { "'\($0)'" }.joined(separator: ", ")
    let rows = try connection.prepare(
      """
      SELECT format.peer, peer.label, track, kind = 'video', direction = 'out', codec,
        iif(direction = 'out', ssrc, NULL), max(coalesce(channels, 0))
      FROM format JOIN peer ON peer.peer = format.peer
      WHERE kind IN ('audio', 'video') AND codec IN (\(codecs))
        AND outcome NOT IN ('undecodable', 'concealed', 'recovered')
      GROUP BY 1, 3, 4, 5, 6, 7 ORDER BY 1, 3, 4, 5, 6, 7
      """)
    var found: [Track] = []
    while try rows.step() {
      let (number, label, track, isVideo, isSent) = rows.values(
        Int64.self, String.self, Int64.self, Int64.self, Int64.self)
      let (codec, ssrc, channels) = rows.values(
        from: 5, String.self, Int64?.self, Int.self)
      guard peer == nil || peer == number, withSent || isSent == 0 else { continue }
      found.append(
        Track(
          peer: number, label: label, number: track, isVideo: isVideo == 1, isSent: isSent == 1,
          codec: codec, ssrc: ssrc, channels: channels))
    }
    for place in found.indices {
      found[place].isOneOfSeveral =
        found.count {
          $0.peer == found[place].peer && $0.number == found[place].number
            && $0.isSent == found[place].isSent && $0.isVideo == found[place].isVideo
        } > 1
    }
    return found
  }

  private static func name(_ track: Track, _ container: Container) -> String {
    var name = "peer\(track.peer)-\(FileNamePart.plain(track.label))-track\(track.number)-"
    name += track.isVideo ? "video" : "audio"
    if track.isSent { name += "-sent" }
    if track.isOneOfSeveral {
      name += "-\(track.codec)" + (track.ssrc.map { "-\($0)" } ?? "")
    }
    return "\(name).\(container.rawValue)"
  }

  /// Calls a closure with each of a track's frames, starting where a decoder can start.
  ///
  /// Video starts at the last key frame before the window, and audio a tenth of a second before the
  /// window.
  private func each(
    of track: Track, _ connection: borrowing SQLiteConnection,
    _ use: (Frame) throws(MediaFileError) -> Void
  ) throws(ExportFailure) {
    let from =
      !track.isVideo || window.lowerBound == .min
      ? "at_ns >= \(window.lowerBound == .min ? .min : window.lowerBound -| Self.preroll)"
      : """
      row >= coalesce((
        SELECT max(frame_store.row) FROM frame_store JOIN format USING (format)
        WHERE \(Self.choice(track)) AND key = 1 AND at_ns <= \(window.lowerBound)
      ), 0)
      """
    var failure: MediaFileError?
    try ExportFailure.asking(take) { () throws(SQLiteError) in
      let rows = try connection.prepare(
        """
        SELECT at_ns, rtp_time, key, coalesce(width, 0), coalesce(height, 0), bytes FROM frame
        WHERE \(Self.choice(track)) AND size > 0 AND bytes IS NOT NULL
          AND at_ns <= \(window.upperBound) AND \(from)
        ORDER BY row
        """)
      while failure == nil, try rows.step() {
        let (at, time, isKey, width, height) = rows.values(
          Int64.self, UInt32.self, Int64.self, Int.self, Int.self)
        let frame = Frame(
          at: at, time: time, isKey: isKey == 1, width: width, height: height,
          bytes: rows.bytes(5))
        do throws(MediaFileError) {
          try use(frame)
        } catch {
          failure = error
        }
      }
    }
    if let failure { throw .media(failure.description) }
  }

  private static let preroll: Int64 = 100_000_000

  private static func choice(_ track: Track) -> String {
    let source = track.ssrc.map { " AND ssrc = \($0)" } ?? ""
    return """
      peer = \(track.peer) AND track = \(track.number)
        AND kind = '\(track.isVideo ? "video" : "audio")'
        AND direction = '\(track.isSent ? "out" : "in")' AND codec = '\(track.codec)'
        AND outcome NOT IN ('undecodable', 'concealed', 'recovered')\(source)
      """
  }

  // MARK: Files

  /// Writes a track's file, which gets its name when it is complete; returns nil if the track has
  /// no frames for the file.
  private func write(
    _ track: Track, _ container: Container, to path: String,
    _ connection: borrowing SQLiteConnection, _ mux: Mux
  ) throws(ExportFailure) -> Written? {
    var written = Written(path: path, track: track)
    let whole = try ExportFailure.writing { () throws(WholeFile.Failure) in
      try WholeFile(path, present)
    }
    // An MP4 file starts as an IVF file beside it, which is removed afterwards.
    let first =
      container == .mp4
      ? try ExportFailure.writing { () throws(WholeFile.Failure) in
        try WholeFile(path + ".ivf", .replaced)
      } : whole
    let descriptor = try ExportFailure.writing { () throws(WholeFile.Failure) in
      try first.open()
    }
    let file = MediaFile(descriptor: descriptor, path: first.temporary)
    do throws(ExportFailure) {
      if track.isVideo {
        try writeVideo(&written, container, file, connection)
      } else {
        try writeAudio(&written, container, file, connection)
      }
    } catch {
      guard case .media(let words) = error else { throw error }
      throw .media(words.replacing(first.temporary, with: path))
    }
    guard written.frames > 0 else { return nil }
    if container == .mp4 {
      FileDescriptor(
        try ExportFailure.writing { () throws(WholeFile.Failure) in try whole.open() }
      ).close()
      // The first file is removed when its owner is released.
      let words = withExtendedLifetime(first) { mux(first.temporary, whole.temporary) }
      if let words { throw .media("\(path) is not written: \(words)") }
    }
    try ExportFailure.writing { () throws(WholeFile.Failure) in try whole.finish() }
    return written
  }

  private func writeVideo(
    _ written: inout Written, _ container: Container, _ file: MediaFile,
    _ connection: borrowing SQLiteConnection
  ) throws(ExportFailure) {
    let track = written.track
    var webM: WebMFile?
    var ivf: IVFFile?
    var state = written
    try each(of: track, connection) { frame throws(MediaFileError) in
      if state.frames == 0 {
        guard frame.isKey else {
          state.dropped += 1
          return
        }
        state.from = frame.at
      }
      let size = Self.size(of: frame, track.codec)
      if size.width > 0, frame.isKey, state.sizes.last != "\(size.width)x\(size.height)" {
        state.sizes.append("\(size.width)x\(size.height)")
      }
      let passed = max(0, frame.at - state.from)
      if container == .webm {
        let isAV1 = track.codec == "av1"
        if webM == nil {
          webM = try WebMFile(
            file,
            .video(
              codec: WebMWriter.videoCodec(track.codec) ?? "", width: size.width,
              height: size.height),
            configuration: isAV1 ? AV1File.configuration(frame.bytes) : [])
        }
        let bytes = isAV1 ? AV1File.withoutDelimiter(frame.bytes) : frame.bytes
        try webM?.add(bytes, at: passed / 1_000_000, isKey: frame.isKey)
      } else {
        if ivf == nil {
          ivf = IVFFile(file, fourCC: Self.fourCC(track.codec), size: size)
        }
        try ivf?.add(frame.bytes, atNanoseconds: passed)
      }
      state.frames += 1
      state.to = frame.at
    }
    written = state
    do throws(MediaFileError) {
      let length = written.frames > 1 ? (written.to - written.from) / Int64(written.frames - 1) : 0
      try webM?.finish(lastFrame: length / 1_000_000)
      try ivf?.finish()
    } catch {
      throw .media(error.description)
    }
  }

  private func writeAudio(
    _ written: inout Written, _ container: Container, _ file: MediaFile,
    _ connection: borrowing SQLiteConnection
  ) throws(ExportFailure) {
    var audio = FrameAudioFile(file, container, window)
    var state = written
    try each(of: written.track, connection) { frame throws(MediaFileError) in
      if state.frames == 0 { state.from = max(frame.at, window.lowerBound) }
      // Packets before the window are written too, but players skip them, so they do not count.
      if frame.at >= window.lowerBound { state.frames += 1 }
      state.to = frame.at
      try audio.add(
        frame.bytes, time: frame.time, atNanoseconds: frame.at, channels: state.track.channels)
    }
    written = state
    guard written.frames > 0 else { return }
    do throws(MediaFileError) {
      try audio.finish()
    } catch {
      throw .media(error.description)
    }
    written.to = written.from +| audio.nanoseconds
    written.concealed = audio.timeline.concealed * 1_000_000 / 48
    written.leftOut = audio.timeline.leftOut * 1_000_000 / 48
    written.dropped += audio.timeline.dropped
  }

  private static func fourCC(_ codec: String) -> String {
    ["vp8": "VP80", "vp9": "VP90", "av1": "AV01"][codec] ?? "H264"
  }

  /// Returns a video frame's size; if no decoder recorded it, reads it from a key frame's bytes.
  private static func size(of frame: Frame, _ codec: String) -> (width: Int, height: Int) {
    if frame.width > 0 { return (frame.width, frame.height) }
    guard frame.isKey else { return (0, 0) }
    return Codec.named(codec)?.look?(frame.bytes.span.bytes).size ?? (0, 0)
  }
}

/// Encoded video frames in an IVF file, with their times at 90 kHz.
private struct IVFFile {
  private let file: MediaFile
  private let fourCC: String
  private let size: (width: Int, height: Int)
  private var frameCount = 0
  private var last: Int64 = -1
  private var isBegun = false

  init(_ file: MediaFile, fourCC: String, size: (width: Int, height: Int)) {
    self.file = file
    self.fourCC = fourCC
    self.size = size
  }

  /// The header, which states the file's duration in ticks where libvpx writes the number of
  /// frames.
  ///
  /// ffmpeg writes and reads that field in the same way; other programs ignore it.
  private var header: [UInt8] {
    let length = frameCount > 1 ? last + last / Int64(frameCount - 1) : Int64(frameCount)
    return IVFWriter.header(
      fourCC: fourCC, width: size.width, height: size.height, ticksPerSecond: 90_000,
      frameCount: Int(clamping: length))
  }

  mutating func add(_ frame: [UInt8], atNanoseconds nanoseconds: Int64) throws(MediaFileError) {
    if !isBegun { try file.write(header) }
    isBegun = true
    // No two frames may have the same time.
    last = max(last + 1, nanoseconds / 100_000 * 9)
    try file.write(IVFWriter.frameHeader(byteCount: frame.count, time: UInt64(last)))
    try file.write(frame)
    frameCount += 1
  }

  func finish() throws(MediaFileError) { try file.write(header, at: 0) }
}
