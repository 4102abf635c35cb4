import Dispatch
import FoundationEssentials
import Glibc
public import Media
public import MediaFiles
public import Peer
import Synchronization
import Tape
import Wire

/// Passes frames to a renderer and reports each change of size before the first frame of that size.
final class RendererFeed: Sendable {
  private let renderer: any VideoRenderer
  private let size = Mutex<(width: Int, height: Int)?>(nil)

  init(_ renderer: some VideoRenderer) { self.renderer = renderer }

  func show(_ frame: VideoFrame?) {
    if let frame {
      let next = (frame.displayWidth, frame.displayHeight)
      let changes = size.withLock { size in
        defer { size = next }
        return size.map { $0 != next } ?? true
      }
      if changes { renderer.setSize(width: next.0, height: next.1) }
    }
    renderer.renderFrame(frame)
  }
}

// MARK: - Renderers

/// Records digests of rendered frames: equal pictures have equal digests.
public final class DigestRenderer: VideoRenderer {
  /// A rendered frame.
  public struct Shown: Hashable, Sendable {
    /// The width in pixels.
    public var width: Int
    /// The height in pixels.
    public var height: Int
    /// XXH3 of the upright I420 samples, in hexadecimal digits.
    public var digest: String
  }

  private struct Inside {
    var shown: [Shown] = []
    var sizes: [VideoRectangle] = []
    var isBlank = true
  }

  private let inside = Mutex(Inside())
  private let limit: Int

  /// Creates a renderer that keeps at most the last `limit` frames.
  public init(limit: Int = 10_000) { self.limit = max(1, limit) }

  /// The rendered frames in order.
  public var shown: [Shown] { inside.withLock { $0.shown } }
  /// The reported sizes, in order.
  public var sizes: [VideoRectangle] { inside.withLock { $0.sizes } }
  /// Whether the renderer has no frame, because none was rendered or the last one was cleared.
  public var isBlank: Bool { inside.withLock { $0.isBlank } }

  /// Appends to `sizes`.
  public func setSize(width: Int, height: Int) {
    inside.withLock { $0.sizes.append(VideoRectangle(width: width, height: height)) }
  }

  /// Appends the frame's digest to `shown`; nil clears the renderer.
  public func renderFrame(_ frame: VideoFrame?) {
    guard let videoFrame = frame?.videoFrame() else {
      inside.withLock { $0.isBlank = true }
      return
    }
    let digest = hexadecimal(DecodedMedia.videoFrame(videoFrame).digest ?? [])
    inside.withLock { inside in
      inside.isBlank = false
      if inside.shown.count == limit { inside.shown.removeFirst() }
      inside.shown.append(Shown(width: videoFrame.width, height: videoFrame.height, digest: digest))
    }
  }
}

/// Compares rendered frames with a reference (luma PSNR).
public final class PSNRRenderer: VideoRenderer {
  private let reference: @Sendable (Int, VideoFrame) -> VideoFrame?
  private let values = Mutex<(count: Int, decibels: [Double])>((0, []))

  /// Creates a renderer that compares each frame with a reference.
  /// - Parameter reference: returns the expected frame by number, from 0 on; nil skips the
  ///   comparison.
  public init(reference: @escaping @Sendable (Int, VideoFrame) -> VideoFrame?) {
    self.reference = reference
  }

  /// Each compared frame's PSNR in decibels; 128 for identical frames.
  public var decibels: [Double] { values.withLock { $0.decibels } }

  /// Does nothing: only frames are compared.
  public func setSize(width: Int, height: Int) {}

  /// Compares a frame with its reference.
  public func renderFrame(_ frame: VideoFrame?) {
    guard let frame else { return }
    let number = values.withLock { values in
      defer { values.count += 1 }
      return values.count
    }
    guard let wanted = reference(number, frame),
      let value = PSNRRenderer.decibels(frame.videoFrame(), wanted.videoFrame())
    else { return }
    values.withLock { $0.decibels.append(value) }
  }

  private static func decibels(_ left: I420Buffer, _ right: I420Buffer) -> Double? {
    guard let error = left.squaredError(to: right) else { return nil }
    guard error > 0 else { return 128 }
    let mean = Double(error) / Double(left.width * left.height)
    return min(128, 10 * log10(255 * 255 / mean))
  }
}

/// Writes rendered frames into a YUV4MPEG2 file, or each frame into its own PNG file.
public final class DumpRenderer: VideoRenderer {
  private struct Inside {
    var movie: VideoWriter?
    /// The last frame's timestamp and its position in the movie, in nanoseconds.
    var last: (timestamp: Int64, place: Int64)?
    var numbering: (path: String, count: Int)?
    var failure: MediaFileError?

    /// Returns a frame's position in the movie; timestamps may start anywhere and jump.
    mutating func place(of timestamp: Int64) -> Int64 {
      var place: Int64 = 0
      if let last {
        let step = timestamp.subtractingReportingOverflow(last.timestamp)
        let longest = DumpRenderer.longestFrame
        place = last.place &+ (step.overflow ? 0 : min(max(0, step.partialValue), longest))
      }
      last = (timestamp, place)
      return place
    }
  }

  /// The longest time that the movie shows a frame, in nanoseconds.
  private static let longestFrame: Int64 = 10_000_000_000

  /// Frames are written on this queue, and dropped if the disk is too slow.
  private let queue = DispatchQueue(label: "retake.dump")
  private let inside: Mutex<Inside>
  private let waiting = Mutex(0)

  private static let waitingMaximum = 16

  /// Creates a renderer that writes a YUV4MPEG2 file with a constant frame rate and the first
  /// frame's size.
  public init(movie path: String, framesPerSecond: Int = 30) throws(MediaFileError) {
    let file = try MediaFile(path, for: .writing)
    inside = Mutex(Inside(movie: VideoWriter(file, framesPerSecond: framesPerSecond)))
  }

  /// Creates a renderer that writes a PNG file for each frame: `path` with a number before its
  /// extension, from 1 on.
  public init(images path: String) { inside = Mutex(Inside(numbering: (path, 0))) }

  /// Does nothing: a movie keeps its first frame's size, and each image has its own.
  public func setSize(width: Int, height: Int) {}

  /// Queues a frame for writing.
  public func renderFrame(_ frame: VideoFrame?) {
    guard let frame else { return }
    let isTaken = waiting.withLock { waiting in
      guard waiting < DumpRenderer.waitingMaximum else { return false }
      waiting += 1
      return true
    }
    guard isTaken else { return }
    queue.async { [self] in
      write(frame)
      waiting.withLock { $0 -= 1 }
    }
  }

  /// Completes the files and returns the number of frames in them.
  public func finish() throws(MediaFileError) -> Int {
    let result = queue.sync {
      inside.withLock { inside -> Result<Int, MediaFileError> in
        if let failure = inside.failure { return .failure(failure) }
        if inside.movie != nil { return inside.movie?.finish() ?? .success(0) }
        return .success(inside.numbering?.count ?? 0)
      }
    }
    return try result.get()
  }

  private func write(_ frame: VideoFrame) {
    let videoFrame = frame.videoFrame()
    inside.withLock { inside in
      let place = inside.place(of: frame.timestampNanoseconds)
      inside.movie?.write(.videoFrame(videoFrame), at: Instant(nanoseconds: place))
      guard let (path, count) = inside.numbering, inside.failure == nil else { return }
      do throws(MediaFileError) {
        try MediaFile(DumpRenderer.path(path, count + 1), for: .writing).write(PNG.file(videoFrame))
        inside.numbering = (path, count + 1)
      } catch {
        inside.failure = error
      }
    }
  }

  /// Returns an image's path, such as `folder/name-12.png`.
  private static func path(_ path: String, _ number: Int) -> String {
    let url = URL(fileURLWithPath: path)
    let ending = url.pathExtension.isEmpty ? "png" : url.pathExtension
    return url.deletingPathExtension().path + "-\(number).\(ending)"
  }
}

// MARK: - PeerConnection: Frames

// Sends frames from cameras and screens, and renders received frames.
extension PeerConnection {
  /// Sends a frame on a transceiver whose source is `.application`.
  ///
  /// The frame is converted to upright I420 before it is recorded, so neither the encoder nor a
  /// replay converts it again. Its timestamp, not the time of the call, determines the interval
  /// from the previous frame.
  /// - Returns: false if the loop is too busy to accept the frame or has ended.
  @discardableResult
  public func send(_ frame: VideoFrame, on transceiver: UInt32) -> Bool {
    send(on: transceiver) {
      .frame(frame.videoFrame(), timestamp: frame.timestampNanoseconds)
    }
  }

  /// Sets a sender's content hint (W3C MediaStreamTrack.contentHint).
  ///
  /// Unless the parameters say otherwise, the hint determines what is reduced first: a screen keeps
  /// its size and loses frame rate.
  public func setContentHint(_ hint: ContentHint, of transceiver: UInt32) async throws(PeerError) {
    try await perform(.setContentHint(transceiver: transceiver, hint))
  }

  /// Renders received video until the result is released.
  ///
  /// The renderer is called on the loop's thread and must not block.
  /// - Parameter transceiver: the transceiver to render; nil for all.
  public func addRenderer(_ renderer: some VideoRenderer, of transceiver: UInt32? = nil)
    -> MediaSubscription
  {
    let feed = RendererFeed(renderer)
    return onMedia { media in
      if let transceiver, media.transceiver != transceiver { return }
      if let frame = media.frame { feed.show(frame) }
    }
  }
}

extension PeerConnection {
  /// Records a capturer event for a sender in the take.
  func record(_ note: CaptureNote, of transceiver: UInt32) {
    post(.noteCapture(transceiver: transceiver, note))
  }
}

extension ReceivedMedia {
  /// The received video as a frame that shares its samples, timestamped with its playout time; nil
  /// for audio, and for video that is not decoded here.
  public var frame: VideoFrame? {
    guard case .videoFrame(let videoFrame) = content else { return nil }
    return try? VideoFrame(videoFrame, timestampNanoseconds: at.nanoseconds)
  }
}
