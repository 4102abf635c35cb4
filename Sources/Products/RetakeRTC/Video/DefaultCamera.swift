package import Live
import Media
import Peer
import Synchronization

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
