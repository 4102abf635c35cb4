public import Foundation
package import Live
import Media
import MediaFiles
import Peer
import Synchronization

/// Receives a capturer's frames, as a video source or a filter does.
public protocol RTCVideoCapturerDelegate: AnyObject {
  /// Handles a frame, on the capturer's thread.
  func capturer(_ capturer: RTCVideoCapturer, didCapture frame: RTCVideoFrame)
}

/// A source of frames: a subclass captures them, or a caller passes them to the delegate.
open class RTCVideoCapturer {
  /// Receives the frames; held weakly.
  public weak var delegate: (any RTCVideoCapturerDelegate)?
  /// Describes the capturer in takes; nil leaves the capturer out of takes.
  var note: CaptureNote?
  /// Whether this is the machine's default camera, which yields to every other capturer.
  var isOfMachine = false

  /// Creates a capturer that captures nothing by itself.
  public init(delegate: any RTCVideoCapturerDelegate) {
    self.delegate = delegate
    (delegate as? RTCVideoSource)?.isFilled()
  }

  /// Creates the object that represents the stack's capturer to a delegate.
  init(of delegate: any RTCVideoCapturerDelegate, note: CaptureNote?, isOfMachine: Bool) {
    self.delegate = delegate
    self.note = note
    self.isOfMachine = isOfMachine
  }
}

// MARK: - CaptureRun

/// Passes frames from a capturer in the stack to the delegate of a capturer in this module.
///
/// It runs on a separate thread, so the delegate sees a different capturer object from the one that
/// was started.
final class CaptureRun: VideoConsumer {
  private let delegate: WeakDelegate<any RTCVideoCapturerDelegate>
  private let note: CaptureNote?
  private let isOfMachine: Bool
  private let started: Mutex<(@Sendable (Bool) -> Void)?>
  /// The minimum time between frames, in nanoseconds, and when the next frame is due.
  private let interval: Int64
  private let next = Mutex<Int64?>(nil)

  /// How much earlier than due a frame may arrive without being dropped, in nanoseconds.
  private static let slack: Int64 = 2_000_000

  /// - Parameters:
  ///   - framesPerSecond: the maximum frame rate.
  ///   - note: describes the capturer in takes.
  ///   - isOfMachine: whether this is the machine's default camera, which yields to other
  ///     capturers.
  ///   - started: called once, with whether capturing started.
  init(
    _ delegate: (any RTCVideoCapturerDelegate)?, framesPerSecond: Int = .max, note: CaptureNote?,
    isOfMachine: Bool = false, started: @escaping @Sendable (Bool) -> Void
  ) {
    self.delegate = WeakDelegate { [weak delegate] in delegate }
    self.note = note
    self.isOfMachine = isOfMachine
    self.started = Mutex(started)
    interval = 1_000_000_000 / Int64(max(1, framesPerSecond))
  }

  func captureDidStart(_ isStarted: Bool) {
    let tell = started.withLock { started in
      defer { started = nil }
      return started
    }
    tell?(isStarted)
  }

  func consumeCapturedFrame(_ frame: VideoFrame) {
    guard let delegate = delegate.value, isDue(frame.timestampNanoseconds) else { return }
    delegate.capturer(
      RTCVideoCapturer(of: delegate, note: note, isOfMachine: isOfMachine),
      didCapture: RTCVideoFrame(frame))
  }

  /// Returns whether a frame is due at the requested frame rate.
  private func isDue(_ time: Int64) -> Bool {
    next.withLock { next in
      var due = next ?? time
      // A source that restarts may have unrelated times.
      if due &- time > 2 &* interval { due = time }
      guard due &- time <= Self.slack else { return false }
      // After a pause, the source does not catch up on the frames it missed.
      next = max(due, time &- interval) &+ interval
      return true
    }
  }
}

// MARK: - RTCCameraVideoCapturer

/// Captures a camera in one of its formats, once the user has permitted it.
public final class RTCCameraVideoCapturer: RTCVideoCapturer {
  private var device: AVCaptureDevice?

  /// Returns the system's cameras, or those that `AVCaptureDevice.useDevices` set.
  public static func captureDevices() -> [AVCaptureDevice] { AVCaptureDevice.all }

  /// Returns a camera's formats, the preferred one first.
  public static func supportedFormats(for device: AVCaptureDevice) -> [AVCaptureDevice.Format] {
    device.formats
  }

  /// Starts capturing, replacing a running capture.
  ///
  /// If necessary, permission for the camera is requested first. Capturing fails if permission is
  /// denied, or if the application's `Info.plist` has no usage description for the camera.
  /// - Parameters:
  ///   - fps: the maximum frame rate.
  ///   - completionHandler: receives the result, on the capturer's thread.
  public func startCapture(
    with device: AVCaptureDevice, format: AVCaptureDevice.Format, fps: Int,
    completionHandler: (((any Error)?) -> Void)? = nil
  ) {
    self.device?.capturer.stopCapture()
    self.device = nil
    let access = CaptureAccess.shared
    guard access.isAllowed(.video) else {
      let reason =
        access.isDeclared(.video)
        ? "the user refused the camera" : "Info.plist has no NSCameraUsageDescription"
      completionHandler?(CaptureFailure(of: device.localizedName, because: reason))
      return
    }
    self.device = device
    device.isClaimed()
    let note = CaptureNote(device.capturer, format.native, device: device.uniqueID)
    let told = Handed(completionHandler)
    device.capturer.startCapture(
      format.native,
      consumer: CaptureRun(delegate, framesPerSecond: fps, note: note) { isStarted in
        told.value?(isStarted ? nil : CaptureFailure(of: device.localizedName))
      })
  }

  /// Stops capturing, then calls the closure.
  public func stopCapture(completionHandler: (() -> Void)? = nil) {
    device?.capturer.stopCapture()
    device = nil
    completionHandler?()
  }

  deinit { device?.capturer.stopCapture() }
}

// MARK: - RTCFileVideoCapturer

/// Captures a video file in a loop: YUV4MPEG2, or VP8 or VP9 in IVF.
public final class RTCFileVideoCapturer: RTCVideoCapturer {
  private var capturer: FileVideoCapturer?

  /// Starts at the beginning of the file.
  /// - Parameters:
  ///   - nameOfFile: a path, relative to the working directory.
  ///   - errorBlock: receives the reason if capturing cannot start.
  public func startCapturing(
    fromFileNamed nameOfFile: String, onError errorBlock: ((any Error) -> Void)?
  ) {
    stopCapture()
    let told = Handed(errorBlock)
    do throws(MediaFileError) {
      let capturer = try FileVideoCapturer(path: nameOfFile)
      guard let format = capturer.supportedFormats.first else { return }
      self.capturer = capturer
      capturer.startCapture(
        format,
        consumer: CaptureRun(
          delegate, note: CaptureNote(capturer, format, device: nameOfFile)
        ) { isStarted in
          if !isStarted { told.value?(CaptureFailure(of: nameOfFile)) }
        })
    } catch {
      errorBlock?(error)
    }
  }

  /// Stops capturing; a later start begins at the start of the file.
  public func stopCapture() {
    capturer?.stopCapture()
    capturer = nil
  }

  deinit { capturer?.stopCapture() }
}

/// An error for a device or file that cannot be captured.
public struct CaptureFailure: LocalizedError, Hashable {
  private let name: String
  private let reason: String

  init(of name: String, because reason: String = "it does not start") {
    (self.name, self.reason) = (name, reason)
  }

  /// The reason in one sentence.
  public var errorDescription: String? { "\(name) cannot be captured: \(reason)" }
}

// MARK: - DefaultCamera

/// Feeds a source that has no capturer, while one of the source's tracks is sent.
///
/// The frames come from the machine's camera; without a camera, they are black.
final class DefaultCamera: Sendable {
  private struct State {
    weak var source: RTCVideoSource?
    var capturer: (any VideoCapturer)?
    var isOver = false
  }

  private let state = Mutex(State())

  init(for source: RTCVideoSource) { state.withLock { $0.source = source } }

  deinit { stop() }

  func follow(isSent: Bool) {
    if isSent { start() } else { end() }
  }

  /// Permanently stops the camera, because the application feeds the source.
  func stop() {
    state.withLock { $0.isOver = true }
    end()
  }

  private func end() {
    let capturer = state.withLock { state in
      defer { state.capturer = nil }
      return state.capturer
    }
    capturer?.stopCapture()
  }

  private func start() {
    let device = CaptureAccess.shared.isAllowed(.video) ? AVCaptureDevice.default(for: .video) : nil
    let chosen = device.flatMap { $0.begin(for: self) ? $0.capturer : nil } ?? BlackVideoCapturer()
    let source = state.withLock { state -> RTCVideoSource? in
      guard !state.isOver, state.capturer == nil else { return nil }
      state.capturer = chosen
      return state.source
    }
    guard let source, let format = chosen.supportedFormats.first else { return }
    let note = CaptureNote(chosen, format, device: device?.uniqueID ?? "no camera: black")
    chosen.startCapture(
      format,
      consumer: CaptureRun(source, note: note, isOfMachine: true) { [weak source] isStarted in
        var note = note
        if !isStarted { note.event = .failed }
        source?.report(note)
      })
  }
}

/// Captures black frames at a low rate, to replace a missing camera.
package final class BlackVideoCapturer: VideoCapturer {
  package let supportedFormats = [VideoFormat(width: 640, height: 480, framesPerSecond: 5)]
  package var isScreencast: Bool { false }
  private let timer = SystemCaptureTimer()

  package init() {}

  package func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
    consumer.captureDidStart(true)
    let black = RTCI420Buffer(width: Int32(format.width), height: Int32(format.height))
    timer.start(everyNanoseconds: Int64(1e9 / format.framesPerSecond)) { now in
      guard let pixels = black.native else { return }
      let frame = try? VideoFrame(buffer: pixels, timestampNanoseconds: now)
      if let frame { consumer.consumeCapturedFrame(frame) }
    }
  }

  package func stopCapture() { timer.stop() }
}

extension CaptureNote {
  /// Describes a capturer that is starting.
  init(_ capturer: any VideoCapturer, _ format: VideoFormat, device: String?) {
    let rate = format.framesPerSecond
    self.init(
      event: .started, isScreencast: capturer.isScreencast, width: format.width,
      height: format.height, framesPerSecond: rate.isFinite ? rate : 0,
      pixelFormat: format.pixelFormat, device: device)
  }
}
