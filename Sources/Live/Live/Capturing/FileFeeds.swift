import Dispatch
import Media
public import MediaFiles
import Peer
import Synchronization
public import Wire

/// Sends files on transceivers whose source is `.application`, each file at its own pace.
///
/// A feed starts when its connection is established and ends with the connection, the file, or this
/// object.
public final class FileFeeds: Sendable {
  private let tasks = Mutex<[Task<Void, Never>]>([])
  private let failures = Mutex<[MediaFileError]>([])
  private let onFailure: @Sendable (MediaFileError) -> Void

  /// Creates an empty set of feeds.
  /// - Parameter onFailure: is called from any thread when a running feed fails; the connection and
  ///   other feeds continue.
  public init(onFailure: @escaping @Sendable (MediaFileError) -> Void = { _ in }) {
    self.onFailure = onFailure
  }

  deinit { stop() }

  /// Errors of feeds that failed while running.
  public var errors: [MediaFileError] { failures.withLock { $0 } }

  /// Opens a Y4M, H.264 or WAV file and sends it on a transceiver, repeatedly if `loops`.
  /// - Parameter framesPerSecond: the frame rate of an H.264 file; nil for the rate that the file
  ///   states, or 30 if it states none.
  /// - Throws: `MediaFileError` if the file cannot be read or has no media.
  public func start(
    _ path: String, format: MediaFileFormat, on transceiver: UInt32, of connection: PeerConnection,
    loops: Bool = true, framesPerSecond: Double? = nil
  ) throws(MediaFileError) {
    switch format {
    case .wav:
      start(try WAVFileSource(path: path, loops: loops), on: transceiver, of: connection)
    case .y4m:
      start(try Y4MFileSource(path: path, loops: loops), on: transceiver, of: connection)
    case .h264:
      start(
        try H264FileSource(path: path, loops: loops, framesPerSecond: framesPerSecond),
        on: transceiver, of: connection)
    }
  }

  /// Sends timed media on a transceiver until the media ends or fails, or `stop` is called.
  func start(
    _ source: sending some TimedMedia, on transceiver: UInt32, of connection: PeerConnection
  ) {
    let target = Target(connection)
    let task = Task.detached(priority: .high) { [weak self] in
      do throws(MediaFileError) {
        var source = source
        try await FileFeeds.run(&source, on: transceiver, of: target)
      } catch {
        guard let self else { return }
        failures.withLock { $0.append(error) }
        onFailure(error)
      }
    }
    tasks.withLock { $0.append(task) }
  }

  /// Ends all feeds.
  public func stop() {
    let running = tasks.withLock { tasks in
      defer { tasks = [] }
      return tasks
    }
    for task in running { task.cancel() }
  }

  private static func run(
    _ source: inout some TimedMedia, on transceiver: UInt32, of target: Target
  ) async throws(MediaFileError) {
    guard let changes = target.connection?.stateChanges else { return }
    for await states in changes {
      if states.connection == .closed { return }
      if states.connection == .connected { break }
    }
    var zero = ContinuousClock.now
    var requests: Int?
    while let (next, nanoseconds) = try source.next() {
      var media = next
      let due = zero + .nanoseconds(nanoseconds)
      let late = due.duration(to: .now)
      if late > FileFeeds.lateMaximum {
        // The machine stalled: continue from here instead of catching up.
        zero += late
      } else if late < .zero {
        guard (try? await Task.sleep(until: due, tolerance: .zero)) != nil else { return }
      }
      guard let connection = target.connection, connection.connectionState != .closed else {
        return
      }
      // Start with a key frame, and send another whenever the peer requests one.
      let asked = connection.keyframeRequests(on: transceiver)
      if asked == nil || asked != requests ?? asked, case .encodedVideo(let videoFrame) = media,
        !videoFrame.isKey, let other = try source.nextKeyFrame()
      {
        media = other
      }
      requests = asked
      switch media {
      case .audio(let block): connection.send(block, on: transceiver)
      case .videoFrame(let videoFrame): connection.send(videoFrame, on: transceiver)
      case .encodedVideo(let videoFrame): connection.send(videoFrame, on: transceiver)
      }
      if Task.isCancelled { return }
    }
  }

  /// A weak reference to a feed's connection.
  private final class Target: Sendable {
    weak let connection: PeerConnection?

    init(_ connection: PeerConnection) { self.connection = connection }
  }

  private static let lateMaximum = Duration.milliseconds(500)
}

// MARK: - FileSink

/// Writes a transceiver's received media into a file, without blocking the loop's thread.
///
/// Video is written into a YUV4MPEG2 file with a constant frame rate and the first frame's size,
/// and audio into a WAV file. Either file starts with the first frame. If the disk is too slow,
/// frames are dropped.
public final class FileSink: Sendable {
  private struct State {
    var waiting = 0
    var dropped = 0
    var subscription: MediaSubscription?
  }

  /// The maximum number of frames that may wait for the disk.
  private static let waitingMaximum = 256

  private let queue = DispatchQueue(label: "retake.sink")
  private let writer: Mutex<any FrameWriting>
  private let state = Mutex(State())

  /// Creates a file for audio or video and writes the media that a connection receives from now on.
  /// - Parameters:
  ///   - transceiver: the transceiver to record; nil for all transceivers of the kind.
  ///   - framesPerSecond: a video file's frame rate.
  public init(
    path: String, kind: MediaKind, from connection: PeerConnection, transceiver: UInt32? = nil,
    framesPerSecond: Int = 30
  ) throws(MediaFileError) {
    let file = try MediaFile(path, for: .writing)
    switch kind {
    case .audio: writer = Mutex(AudioWriter(file))
    case .video: writer = Mutex(VideoWriter(file, framesPerSecond: framesPerSecond))
    }
    let subscription = connection.onMedia { [weak self] media in
      if let transceiver, media.transceiver != transceiver { return }
      self?.write(media)
    }
    state.withLock { $0.subscription = subscription }
  }

  /// Queues media for the file; if the disk is too slow, drops and counts the media.
  func write(_ media: ReceivedMedia) {
    let isTaken = state.withLock { state in
      guard state.waiting < FileSink.waitingMaximum else {
        state.dropped += 1
        return false
      }
      state.waiting += 1
      return true
    }
    guard isTaken else { return }
    queue.async { [self] in
      writer.withLock { $0.write(media.content, at: media.at) }
      state.withLock { $0.waiting -= 1 }
    }
  }

  /// Stops writing and completes the file.
  /// - Returns: the numbers of frames written and dropped.
  public func finish() async throws(MediaFileError) -> (written: Int, dropped: Int) {
    let dropped = state.withLock { state in
      state.subscription = nil
      return state.dropped
    }
    let written = await withCheckedContinuation { continuation in
      queue.async { [self] in
        continuation.resume(returning: writer.withLock { $0.finish() })
      }
    }
    return (try written.get(), dropped)
  }
}
