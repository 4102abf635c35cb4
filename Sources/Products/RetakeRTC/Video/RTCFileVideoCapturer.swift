public import Foundation
import Live
import MediaFiles
import Peer

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
