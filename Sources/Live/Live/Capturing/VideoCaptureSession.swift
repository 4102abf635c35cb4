import AudioSession
public import Media
import Peer
import Synchronization

/// Distributes one capturer's frames to any number of senders and renderers.
///
/// By default, it starts the capturer for the first sender and stops it after the last sender is
/// gone. Once the application calls `start` or `stop`, only the application starts and stops the
/// capturer. Frames that arrive after the end are dropped. Connections are notified of the start
/// and end of capturing, and of whether a screen is captured, so that their takes record it.
public final class VideoCaptureSession: EncodedVideoConsumer {
  /// Whether frames are captured, or why not.
  public enum State: Hashable, Sendable {
    /// Nothing is captured.
    case stopped
    /// The capturer was started and has not reported yet.
    case starting
    /// Frames arrive.
    case started
    /// The capturer could not start.
    case failed
  }

  /// The capturer that supplies the frames.
  public let capturer: any VideoCapturer
  private let permissions: CameraPermissions?
  private let inside: Mutex<Inside>

  private struct Sender {
    weak let connection: PeerConnection?
    var transceiver: UInt32
  }

  private struct Fed {
    weak let source: VideoSource?
  }

  private struct Inside {
    var state = State.stopped
    var format: VideoFormat?
    var senders: [Sender] = []
    var fed: [Fed] = []
    var renderers: [(id: Int, feed: RendererFeed)] = []
    var lastRenderer = 0
    var waiting: [CheckedContinuation<Bool, Never>] = []
    var frames = 0
    var ignored = 0
    /// Whether senders start and stop the capturer; false once the application has started or
    /// stopped it.
    var isAutomatic: Bool
    /// Whether there was a sender when `followSenders` last checked.
    var isSent = false
    /// The number of times that capturing was stopped; if it changes during a start, that start was
    /// cancelled.
    var stops = 0

    /// Whether any sender still exists.
    var hasSenders: Bool {
      senders.contains { $0.connection != nil }
        || fed.contains { $0.source?.hub.isSent ?? false }
    }

    /// Ends capturing, and returns the previous state.
    mutating func end() -> Inside {
      defer {
        state = .stopped
        stops += 1
        waiting = []
      }
      return self
    }
  }

  /// Creates a stopped session.
  /// - Parameters:
  ///   - permissions: checked before the capturer starts; nil to start without a check.
  ///   - startsWhenSent: whether senders start and stop the capturer until the application starts
  ///     or stops it; if false, only the application does.
  public init(
    _ capturer: any VideoCapturer, permissions: CameraPermissions? = nil,
    startsWhenSent: Bool = true
  ) {
    self.capturer = capturer
    self.permissions = permissions
    inside = Mutex(Inside(isAutomatic: startsWhenSent))
  }

  deinit { capturer.stopCapture() }

  /// Whether frames are being captured, or why not.
  public var state: State { inside.withLock { $0.state } }
  /// The captured format; nil before the start.
  public var format: VideoFormat? { inside.withLock { $0.format } }
  /// The number of distributed frames, and of frames ignored before the start or after the end.
  public var counts: (frames: Int, ignored: Int) { inside.withLock { ($0.frames, $0.ignored) } }

  // MARK: Starting and stopping

  /// Starts capturing in the supported format nearest to `wish`, or in the preferred format if
  /// `wish` is nil; from then on, senders no longer stop the capturer.
  /// - Returns: whether the capturer started.
  @discardableResult
  public func start(_ wish: VideoFormat? = nil) async -> Bool {
    let isOther = inside.withLock { inside in
      defer { inside.isAutomatic = false }
      let format = wish.map { capturer.supportedFormat(nearest: $0) } ?? inside.format
      let runs = inside.state == .started || inside.state == .starting
      return inside.isAutomatic && runs && format != inside.format
    }
    // Senders started the capturer in another format, so it has to start again.
    if isOther { end() }
    return await begin(wish)
  }

  /// Starts and stops the capturer as senders appear and leave, until the application starts or
  /// stops it.
  func followSenders() {
    let isSent = inside.withLock { inside -> Bool? in
      let isSent = inside.hasSenders
      guard inside.isAutomatic, isSent != inside.isSent else { return nil }
      inside.isSent = isSent
      return isSent
    }
    switch isSent {
    case true?:
      Task { [weak self] in
        guard let self, inside.withLock({ $0.isAutomatic && $0.isSent }) else { return }
        _ = await begin(nil)
      }
    case false?: end()
    case nil: break
    }
  }

  private func begin(_ wish: VideoFormat?) async -> Bool {
    if let permissions {
      let stops = inside.withLock { $0.stops }
      let isGranted = await permissions.request() == .granted
      // Capturing may have been stopped while the user was asked.
      guard inside.withLock({ $0.stops == stops }) else { return false }
      guard isGranted else {
        inside.withLock { $0.state = .failed }
        record(.denied)
        return false
      }
    }
    let known =
      wish.map { capturer.supportedFormat(nearest: $0) } ?? capturer.supportedFormats.first
    guard let format = known else {
      inside.withLock { $0.state = .failed }
      record(.failed)
      return false
    }
    return await withCheckedContinuation { continuation in
      let (begins, stops) = inside.withLock { inside -> (Bool?, Int) in
        guard inside.state != .started else { return (nil, inside.stops) }
        inside.waiting.append(continuation)
        guard inside.state != .starting else { return (false, inside.stops) }
        inside.state = .starting
        inside.format = format
        return (true, inside.stops)
      }
      switch begins {
      case true?: capturer.startCapture(format, consumer: SourceInlet(self, stops))
      case false?: break
      case nil: continuation.resume(returning: true)
      }
    }
  }

  /// Stops capturing; renderers are cleared.
  ///
  /// Senders do not start the capturer again.
  public func stop() {
    inside.withLock { $0.isAutomatic = false }
    end()
  }

  private func end() {
    let before = inside.withLock { $0.end() }
    capturer.stopCapture()
    report(before)
  }

  /// Handles the end of a capture, unless capturing has been stopped since the capture began.
  fileprivate func captureDidEnd(after stops: Int) {
    if let before = inside.withLock({ $0.stops == stops ? $0.end() : nil }) { report(before) }
  }

  /// Reports the end of capturing to waiting tasks, renderers and takes.
  private func report(_ before: Inside) {
    for continuation in before.waiting { continuation.resume(returning: false) }
    guard before.state != .stopped else { return }
    record(.stopped)
    for renderer in before.renderers { renderer.feed.show(nil) }
  }

  /// Waits until the capturer has started; returns false if it fails or takes longer.
  package func hasStarted(within limit: Duration) async -> Bool {
    let deadline = ContinuousClock.now + limit
    while ContinuousClock.now < deadline {
      switch state {
      case .started: return true
      case .failed: return false
      case .stopped, .starting: break
      }
      guard (try? await Task.sleep(for: .milliseconds(50))) != nil else { return false }
    }
    return state == .started
  }

  // MARK: Receivers

  /// Also sends the frames on a transceiver whose source is `.application`.
  ///
  /// The session holds the connection weakly.
  public func send(on transceiver: UInt32, of connection: PeerConnection) {
    let state = inside.withLock { inside in
      inside.senders.removeAll { $0.connection == nil }
      inside.senders.append(Sender(connection: connection, transceiver: transceiver))
      return inside.state
    }
    if state == .started { record(.started, to: connection, transceiver) }
    followSenders()
  }

  /// Stops sending the frames on a transceiver.
  public func endSending(on transceiver: UInt32, of connection: PeerConnection) {
    inside.withLock { inside in
      inside.senders.removeAll { $0.connection === connection && $0.transceiver == transceiver }
    }
    followSenders()
  }

  /// Also passes the frames to a track source, which is held weakly.
  public func feed(_ source: VideoSource) {
    let state = inside.withLock { inside in
      inside.fed.removeAll { $0.source == nil }
      inside.fed.append(Fed(source: source))
      return inside.state
    }
    if state == .started { source.hub.record(captureNote(.started)) }
    source.hub.watch(self)
    followSenders()
  }

  /// Also renders the frames, until the result is released.
  public func addRenderer(_ renderer: some VideoRenderer) -> MediaSubscription {
    let id = inside.withLock { inside in
      inside.lastRenderer += 1
      inside.renderers.append((inside.lastRenderer, RendererFeed(renderer)))
      return inside.lastRenderer
    }
    return MediaSubscription { [weak self] in
      self?.inside.withLock { inside in inside.renderers.removeAll { $0.id == id } }
    }
  }

  // MARK: Capturer callbacks

  /// Handles the capturer's report that it has started, or failed to start.
  public func captureDidStart(_ isStarted: Bool) {
    let waiting = inside.withLock { inside -> [CheckedContinuation<Bool, Never>]? in
      guard inside.state == .starting else { return nil }
      inside.state = isStarted ? .started : .failed
      defer { inside.waiting = [] }
      return inside.waiting
    }
    guard let waiting else { return }
    record(isStarted ? .started : .failed)
    for continuation in waiting { continuation.resume(returning: isStarted) }
  }

  /// Handles the capturer's report that it has ended by itself, as `stop` does, but lets senders
  /// start the capturer again.
  public func captureDidEnd() { captureDidEnd(after: inside.withLock { $0.stops }) }

  /// Distributes a frame; ignores it before the start and after the end.
  public func consumeCapturedFrame(_ frame: VideoFrame) {
    guard let (senders, sources, renderers) = receivers() else { return }
    // A sender whose connection was released without being closed disappears without notice.
    followSenders()
    // Convert once for all senders.
    let upright = senders.isEmpty && sources.isEmpty ? nil : frame.upright
    if let upright {
      for sender in senders { sender.connection?.send(upright, on: sender.transceiver) }
      for fed in sources { fed.source?.capture(upright) }
    }
    for renderer in renderers { renderer.feed.show(frame) }
  }

  /// Passes an encoded frame to the senders; renderers cannot show it.
  public func consumeEncodedVideo(_ videoFrame: EncodedVideoChunk) {
    guard let (senders, sources, _) = receivers() else { return }
    for sender in senders { sender.connection?.send(videoFrame, on: sender.transceiver) }
    for fed in sources { fed.source?.capture(videoFrame) }
  }

  private func receivers() -> ([Sender], [Fed], [(id: Int, feed: RendererFeed)])? {
    inside.withLock { inside in
      guard inside.state == .started else {
        inside.ignored += 1
        return nil
      }
      inside.frames += 1
      return (inside.senders, inside.fed, inside.renderers)
    }
  }

  // MARK: Recording

  private func record(_ event: CaptureNote.Event) {
    let (senders, sources) = inside.withLock { ($0.senders, $0.fed) }
    for sender in senders {
      if let connection = sender.connection { record(event, to: connection, sender.transceiver) }
    }
    for fed in sources { fed.source?.hub.record(captureNote(event)) }
  }

  private func record(
    _ event: CaptureNote.Event, to connection: PeerConnection, _ transceiver: UInt32
  ) {
    connection.record(captureNote(event), of: transceiver)
  }

  private func captureNote(_ event: CaptureNote.Event) -> CaptureNote {
    let format = inside.withLock { $0.format }
    let rate = format?.framesPerSecond ?? 0
    return CaptureNote(
      event: event, isScreencast: capturer.isScreencast, width: format?.width ?? 0,
      height: format?.height ?? 0, framesPerSecond: rate.isFinite ? rate : 0,
      pixelFormat: format?.pixelFormat ?? .i420)
  }
}

/// Connects a capturer to its session without keeping the session alive.
private final class SourceInlet: EncodedVideoConsumer {
  private weak let source: VideoCaptureSession?
  /// The session's number of stops when this capture began, so that a late report does not end a
  /// later capture.
  private let stops: Int

  init(_ source: VideoCaptureSession, _ stops: Int) { (self.source, self.stops) = (source, stops) }

  func captureDidStart(_ isStarted: Bool) { source?.captureDidStart(isStarted) }
  func captureDidEnd() { source?.captureDidEnd(after: stops) }
  func consumeCapturedFrame(_ frame: VideoFrame) { source?.consumeCapturedFrame(frame) }
  func consumeEncodedVideo(_ videoFrame: EncodedVideoChunk) {
    source?.consumeEncodedVideo(videoFrame)
  }
}
