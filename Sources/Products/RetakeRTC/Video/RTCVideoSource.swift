import Live
import Media
import Peer
import Synchronization
import Wire

/// A source for local video tracks, fed through `capturer(_:didCapture:)`.
///
/// If nothing feeds a source from a factory that was created with `init()` or `init(recordingTo:)`,
/// the machine's camera does.
public final class RTCVideoSource: RTCMediaSource, RTCVideoCapturerDelegate {
  private struct Feed: Sendable {
    weak var track: RTCVideoTrack?
  }

  private struct State: Sendable {
    var feeds: [Feed] = []
    var camera: DefaultCamera?
    /// The description, for takes, of the capturer that feeds the source; nil leaves the capturer
    /// out of takes.
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

  /// The content hint stored in takes: `detail` if the frames come from a screen.
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

  // MARK: Size

  /// Limits the sent and displayed frames from now on.
  ///
  /// Frames with another aspect ratio are cropped, larger frames are scaled down, and excess frames
  /// are dropped. Smaller frames are not scaled up, and lower frame rates are unchanged.
  /// - Parameters:
  ///   - width: a landscape frame's width; for a portrait frame, its height.
  ///   - fps: the maximum frame rate.
  nonisolated public func adaptOutputFormat(toWidth width: Int32, height: Int32, fps: Int32) {
    let output = OutputFormat(
      width: Int(width), height: Int(height), framesPerSecond: Int(fps))
    inside.withLock { $0.output = output }
  }

  // MARK: Default camera

  /// Lets the machine's camera feed the source while one of its tracks is sent, unless the
  /// application feeds the source.
  nonisolated func useDefaultCamera() {
    let camera = DefaultCamera(for: self)
    inside.withLock { $0.camera = camera }
  }

  /// Stops the default camera, because the application feeds the source.
  nonisolated func isFilled() {
    let camera = inside.withLock { state in
      defer { state.camera = nil }
      return state.camera
    }
    camera?.stop()
  }

  /// Handles a connection that starts or stops sending one of the source's tracks.
  nonisolated func outletChanged(_ place: TrackCore.Place, isSent: Bool) {
    let (note, camera) = inside.withLock { ($0.note, $0.camera) }
    if isSent, let note { place.post(.noteCapture(transceiver: place.transceiver, note)) }
    camera?.follow(isSent: tracks.contains { !$0.core.outlets.isEmpty })
  }

  // MARK: Frames

  /// Sends a frame on all of the source's tracks and displays it in their renderers.
  ///
  /// A connection that is too busy drops the frame.
  nonisolated public func capturer(_ capturer: RTCVideoCapturer, didCapture frame: RTCVideoFrame) {
    if !capturer.isOfMachine { isFilled() }
    report(capturer.note)
    let (isDue, output) = inside.withLock { state in
      (state.output?.admits(frame.timeStampNs) ?? true, state.output)
    }
    guard isDue else { return }
    // Convert the frame only once, no matter how many connections send it.
    let upright = frame.native?.upright
    let smaller = upright.flatMap { output?.cut($0) }
    let shown = smaller.map { RTCVideoFrame($0) } ?? frame
    for track in tracks { track.captured(shown, smaller ?? upright) }
  }

  /// Records the capturer in the takes of the connections whenever the capturer changes.
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

/// Limits on a source's frames.
struct OutputFormat: Sendable {
  private let width: Int
  private let height: Int
  private let interval: Int64
  private var next: Int64?

  /// How much earlier than due a frame may arrive without being dropped, in nanoseconds.
  private static let slack: Int64 = 2_000_000

  init(width: Int, height: Int, framesPerSecond: Int) {
    self.width = min(max(width, height, 1), VideoFrameBuffer.largestSide)
    self.height = min(max(min(width, height), 1), VideoFrameBuffer.largestSide)
    interval = 1_000_000_000 / Int64(max(1, framesPerSecond))
  }

  /// Returns whether a frame at this time stays within the frame rate.
  mutating func admits(_ time: Int64) -> Bool {
    var due = next ?? time
    // A restarted source's times may be unrelated to the earlier ones.
    if due &- time > 2 * interval { due = time }
    guard due &- time <= Self.slack else { return false }
    next = max(due, time &- interval) &+ interval
    return true
  }

  /// Returns a cropped and scaled-down copy of an upright frame; nil if the frame needs neither.
  func cut(_ frame: VideoFrame) -> VideoFrame? {
    let (columns, rows) = (frame.displayWidth, frame.displayHeight)
    let wanted = rows > columns ? (width: height, height: width) : (width: width, height: height)
    // The largest part with the target aspect ratio, at even offsets.
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
