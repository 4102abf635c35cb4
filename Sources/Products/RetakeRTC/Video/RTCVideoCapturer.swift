public import Foundation
package import Live
import Media
import MediaFiles
import Peer
import Synchronization

/// Receives the frames of a capturer: a source, or a filter before it.
public protocol RTCVideoCapturerDelegate: AnyObject {
  /// Handles a frame, on the capturer's thread.
  func capturer(_ capturer: RTCVideoCapturer, didCapture frame: RTCVideoFrame)
}

/// A source of frames: a subclass, or a caller that passes frames to the delegate.
open class RTCVideoCapturer {
  /// Receives the frames; held weakly.
  public weak var delegate: (any RTCVideoCapturerDelegate)?
  /// Records the events of the capturer; nil for none.
  var note: CaptureNote?
  /// Whether it is the machine's default camera, over which every other capturer takes precedence.
  var isOfMachine = false

  /// Creates a capturer that captures nothing by itself.
  public init(delegate: any RTCVideoCapturerDelegate) {
    self.delegate = delegate
    (delegate as? RTCVideoSource)?.isFilled()
  }

  /// Represents a capturer of the stack, for the delegate.
  init(of delegate: any RTCVideoCapturerDelegate, note: CaptureNote?, isOfMachine: Bool) {
    self.delegate = delegate
    self.note = note
    self.isOfMachine = isOfMachine
  }
}

// MARK: - CaptureRun

/// Passes the frames of a stack capturer to the delegate of one of this module.
///
/// It runs on a thread of its own, so the delegate sees another capturer object than the one that
/// was started.
final class CaptureRun: VideoConsumer {
  private let delegate: WeakDelegate<any RTCVideoCapturerDelegate>
  private let note: CaptureNote?
  private let isOfMachine: Bool
  private let started: Mutex<(@Sendable (Bool) -> Void)?>
  /// The minimum nanoseconds between frames, and when the next one is due.
  private let interval: Int64
  private let next = Mutex<Int64?>(nil)

  /// How much too early a frame may be.
  private static let slack: Int64 = 2_000_000

  /// - Parameters:
  ///   - framesPerSecond: the maximum frame rate.
  ///   - note: what takes record of the capturer.
  ///   - isOfMachine: whether every other capturer takes precedence.
  ///   - started: receives once whether capturing started.
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

  /// Whether a frame is due at the requested frame rate.
  private func isDue(_ time: Int64) -> Bool {
    next.withLock { next in
      let due = next ?? time
      guard time >= due - Self.slack else { return false }
      // A source that paused does not catch up.
      next = max(due, time - interval) + interval
      return true
    }
  }
}

// MARK: - RTCCameraVideoCapturer

/// A capturer of a camera.
public final class RTCCameraVideoCapturer: RTCVideoCapturer {
  private var device: AVCaptureDevice?

  /// The cameras.
  public static func captureDevices() -> [AVCaptureDevice] { AVCaptureDevice.all }

  /// The formats of a camera.
  public static func supportedFormats(for device: AVCaptureDevice) -> [AVCaptureDevice.Format] {
    device.formats
  }

  /// Starts capturing, in place of a running capture.
  ///
  /// Permission for the camera is requested if that was not done yet. It fails when permission is
  /// denied, or when the application's `Info.plist` has no usage description for the camera.
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

  /// Stops capturing.
  public func stopCapture(completionHandler: (() -> Void)? = nil) {
    device?.capturer.stopCapture()
    device = nil
    completionHandler?()
  }

  deinit { device?.capturer.stopCapture() }
}

// MARK: - RTCFileVideoCapturer

/// A capturer of a video file, in a loop: YUV4MPEG2, or VP8 or VP9 in IVF.
public final class RTCFileVideoCapturer: RTCVideoCapturer {
  private var capturer: FileVideoCapturer?

  /// Starts from the beginning of the file.
  /// - Parameters:
  ///   - nameOfFile: a path, relative to the working directory.
  ///   - errorBlock: receives the reason why it cannot start.
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

  /// Stops capturing.
  public func stopCapture() {
    capturer?.stopCapture()
    capturer = nil
  }

  deinit { capturer?.stopCapture() }
}

/// A device or file could not be captured.
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

/// The machine's camera for a source without a capturer, or black frames without a camera: it runs
/// while a track of the source is sent.
final class DefaultCamera: Sendable {
  private struct State {
    weak var source: RTCVideoSource?
    /// The running capturer.
    var capturer: (any VideoCapturer)?
    var isOver = false
  }

  private let state = Mutex(State())

  init(for source: RTCVideoSource) { state.withLock { $0.source = source } }

  deinit { stop() }

  func follow(isSent: Bool) {
    if isSent { start() } else { end() }
  }

  /// Stops for good: the application fills the source.
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

/// Black frames at a low rate, in place of a camera.
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
  /// Creates the record of a capturer that starts.
  init(_ capturer: any VideoCapturer, _ format: VideoFormat, device: String?) {
    let rate = format.framesPerSecond
    self.init(
      event: .started, isScreencast: capturer.isScreencast, width: format.width,
      height: format.height, framesPerSecond: rate.isFinite ? rate : 0,
      pixelFormat: format.pixelFormat, device: device)
  }
}
