import Live
import Media
import Peer
import Synchronization
import Wire

/// Where the video frames of local tracks come from: whatever calls `capturer(_:didCapture:)`, or
/// the camera of the machine where a factory made without arguments made the source and nobody else
/// fills it.
public final class RTCVideoSource: RTCMediaSource, RTCVideoCapturerDelegate {
  private struct Feed: Sendable {
    weak var track: RTCVideoTrack?
  }

  private struct State: Sendable {
    var feeds: [Feed] = []
    var camera: DefaultCamera?
    /// What is known of the capturer whose frames come.
    var note: CaptureNote?
    var output: OutputFormat?
  }

  nonisolated private let inside = Mutex(State())
  nonisolated private let isScreenCast: Bool

  nonisolated init(forScreenCast isScreenCast: Bool = false) {
    self.isScreenCast = isScreenCast
    super.init(received: nil)
  }

  nonisolated override init(received inlet: TrackCore.Place?) {
    isScreenCast = false
    super.init(received: inlet)
  }

  /// What the take notes of the video frames: whether a screen shows them.
  nonisolated var contentHint: ContentHint? { isScreenCast ? .detail : nil }

  nonisolated func feed(_ track: RTCVideoTrack) {
    inside.withLock { state in
      state.feeds.removeAll { $0.track == nil }
      state.feeds.append(Feed(track: track))
    }
  }

  nonisolated private var tracks: [RTCVideoTrack] {
    inside.withLock { $0.feeds.compactMap(\.track) }
  }

  // MARK: The size

  /// Sends and shows no more than this from now on.
  ///
  /// Video frames of another shape are cut to this one, larger ones made smaller, and more of them
  /// left out. Smaller and fewer stay as they are.
  ///
  /// - Parameters:
  ///   - width: of a picture that is wider than high; for one that is higher, the height.
  ///   - fps: how many in a second.
  nonisolated public func adaptOutputFormat(toWidth width: Int32, height: Int32, fps: Int32) {
    let output = OutputFormat(
      width: Int(width), height: Int(height), framesPerSecond: Int(fps))
    inside.withLock { $0.output = output }
  }

  // MARK: The camera of the machine

  /// Starts the camera of the machine once a track is sent, unless the application fills it.
  nonisolated func useDefaultCamera() {
    let camera = DefaultCamera(for: self)
    inside.withLock { $0.camera = camera }
  }

  /// The application fills the source: the camera of the machine stays out of it.
  nonisolated func isFilled() {
    let camera = inside.withLock { state in
      defer { state.camera = nil }
      return state.camera
    }
    camera?.stop()
  }

  /// A connection begins to send a track of the source, or sends it no longer.
  nonisolated func outletChanged(_ place: TrackCore.Place, isSent: Bool) {
    let (note, camera) = inside.withLock { ($0.note, $0.camera) }
    if isSent, let note { place.post(.noteCapture(transceiver: place.transceiver, note)) }
    camera?.follow(isSent: tracks.contains { !$0.core.outlets.isEmpty })
  }

  // MARK: Frames

  /// Sends a frame on all tracks of the source, and shows it to their renderers.
  ///
  /// A frame that a connection is too busy to take is left out.
  nonisolated public func capturer(_ capturer: RTCVideoCapturer, didCapture frame: RTCVideoFrame) {
    if !capturer.isOfMachine { isFilled() }
    report(capturer.note)
    let (isDue, output) = inside.withLock { state in
      (state.output?.admits(frame.timeStampNs) ?? true, state.output)
    }
    guard isDue else { return }
    // Converted once, however many connections there are.
    let upright = frame.native?.upright
    let smaller = upright.flatMap { output?.cut($0) }
    let shown = smaller.map { RTCVideoFrame($0) } ?? frame
    for track in tracks { track.captured(shown, smaller ?? upright) }
  }

  /// Keeps in the takes what gives the frames, where that changes.
  nonisolated func report(_ note: CaptureNote?) {
    let isNew = inside.withLock { state in
      defer { state.note = note ?? state.note }
      return note != nil && note != state.note
    }
    guard isNew, let note else { return }
    for place in tracks.flatMap(\.core.outlets) {
      place.post(.noteCapture(transceiver: place.transceiver, note))
    }
  }
}

/// What the video frames of a source are kept within.
struct OutputFormat: Sendable {
  private let width: Int
  private let height: Int
  private let interval: Int64
  private var next: Int64?

  /// How much earlier than its time a frame may come, in nanoseconds.
  private static let slack: Int64 = 2_000_000

  init(width: Int, height: Int, framesPerSecond: Int) {
    self.width = min(max(width, height, 1), VideoFrameBuffer.largestSide)
    self.height = min(max(min(width, height), 1), VideoFrameBuffer.largestSide)
    interval = 1_000_000_000 / Int64(max(1, framesPerSecond))
  }

  /// Whether a frame of this time is one of the pace.
  mutating func admits(_ time: Int64) -> Bool {
    var due = next ?? time
    // A source that begins anew has other times.
    if due &- time > 2 * interval { due = time }
    guard due &- time <= Self.slack else { return false }
    next = max(due, time &- interval) &+ interval
    return true
  }

  /// An upright frame cut and made smaller; nil if it stays as it is.
  func cut(_ frame: VideoFrame) -> VideoFrame? {
    let (columns, rows) = (frame.displayWidth, frame.displayHeight)
    let wanted = rows > columns ? (width: height, height: width) : (width: width, height: height)
    // The largest part of the wanted shape, from even places on.
    let part = VideoRectangle(
      x: max(0, columns - rows * wanted.width / wanted.height) / 4 * 2,
      y: max(0, rows - columns * wanted.height / wanted.width) / 4 * 2,
      width: max(1, min(columns, rows * wanted.width / wanted.height)),
      height: max(1, min(rows, columns * wanted.height / wanted.width)))
    let isLarge = part.width > wanted.width
    guard isLarge || part.width < columns || part.height < rows else { return nil }
    let cut = try? VideoFrame(
      buffer: frame.buffer, visibleRect: part, timestampNanoseconds: frame.timestampNanoseconds)
    guard let pixels = cut?.videoFrame() else { return nil }
    let scaled =
      isLarge
      ? VideoScaler.scaled(pixels, width: wanted.width, height: wanted.height) : pixels
    return try? VideoFrame(scaled, timestampNanoseconds: frame.timestampNanoseconds)
  }
}
