public import Foundation
import Live
import MediaFiles
import Peer

/// A capturer of a file of video frames, over and over: YUV4MPEG2, or VP8 or VP9 in IVF.
public final class RTCFileVideoCapturer: RTCVideoCapturer {
  private var capturer: FileVideoCapturer?

  /// Begins with the file anew.
  ///
  /// - Parameters:
  ///   - nameOfFile: a path; a relative one is looked for in the working directory.
  ///   - errorBlock: told why it cannot begin.
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

  /// Ends capturing.
  public func stopCapture() {
    capturer?.stopCapture()
    capturer = nil
  }

  deinit { capturer?.stopCapture() }
}

/// A device or a file that could not be captured.
public struct CaptureFailure: LocalizedError, Hashable {
  private let name: String
  private let reason: String

  init(of name: String, because reason: String = "it does not start") {
    (self.name, self.reason) = (name, reason)
  }

  /// The reason in one sentence.
  public var errorDescription: String? { "\(name) cannot be captured: \(reason)" }
}
