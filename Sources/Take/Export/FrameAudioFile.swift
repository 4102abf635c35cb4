import Media
import MediaFiles

/// Writes audio to a file; packets before the window are held back, because the file's header must
/// state how much audio players skip at the start.
struct FrameAudioFile {
  private let file: MediaFile
  private let container: FrameExport.Container
  private let window: ClosedRange<Int64>
  private var waiting: [OpusTimeline.Piece] = []
  private var isBegun = false
  private var webM: WebMFile?
  private var ogg: OggOpusFile?
  private var channels = 2
  private var preSkip: Int64 = 0
  var timeline = OpusTimeline()

  /// The delay that libopus, and so every browser, adds at the start of a stream, in samples.
  private static let lookahead: Int64 = 312

  init(_ file: MediaFile, _ container: FrameExport.Container, _ window: ClosedRange<Int64>) {
    self.file = file
    self.container = container
    self.window = window
  }

  /// The duration of the audio that players play, in nanoseconds.
  var nanoseconds: Int64 { max(0, timeline.end - preSkip) * 1_000_000 / 48 }

  mutating func add(
    _ packet: [UInt8], time: UInt32, atNanoseconds at: Int64, channels: Int
  ) throws(MediaFileError) {
    if timeline.end == 0, !isBegun {
      let isStereo = (packet.first ?? 0) & 4 != 0
      self.channels = channels > 0 ? min(channels, 2) : isStereo ? 2 : 1
    }
    var pieces: [OpusTimeline.Piece] = []
    var line = timeline
    try line.place(packet, time: time, atNanoseconds: at) { piece throws(MediaFileError) in
      pieces.append(piece)
      // A pause of hours yields many pieces, which are written a thousand at a time.
      guard isBegun, pieces.count >= 1_000 else { return }
      for piece in pieces { try put(piece) }
      pieces = []
    }
    timeline = line
    if !isBegun, at < window.lowerBound {
      waiting += pieces
      return
    }
    if !isBegun, let first = pieces.last { try begin(at: first.position) }
    for piece in pieces { try put(piece) }
  }

  private mutating func begin(at position: Int64) throws(MediaFileError) {
    isBegun = true
    preSkip = position > 0 ? position : Self.lookahead
    if container == .webm {
      webM = try WebMFile(file, .opus(channels: channels), preSkip: Int(clamping: preSkip))
    } else {
      ogg = try OggOpusFile(file, channels: channels, preSkip: Int(clamping: preSkip))
    }
    for piece in waiting { try put(piece) }
    waiting = []
  }

  private mutating func put(_ piece: OpusTimeline.Piece) throws(MediaFileError) {
    try webM?.add(piece.bytes, at: (piece.position + 24) / 48, isKey: true)
    try ogg?.add(piece.bytes, samples: piece.samples)
  }

  mutating func finish() throws(MediaFileError) {
    try webM?.finish(lastFrame: 20)
    try ogg?.finish()
  }
}
