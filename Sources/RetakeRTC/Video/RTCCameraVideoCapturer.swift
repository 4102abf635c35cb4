import Live

/// A capturer of a camera.
public final class RTCCameraVideoCapturer: RTCVideoCapturer {
  private var device: AVCaptureDevice?

  /// The cameras.
  public static func captureDevices() -> [AVCaptureDevice] { AVCaptureDevice.all }

  /// What a camera can give.
  public static func supportedFormats(for device: AVCaptureDevice) -> [AVCaptureDevice.Format] {
    device.formats
  }

  /// Begins to capture; a capture that runs ends.
  ///
  /// - Parameters:
  ///   - fps: how many frames of those of the format are handed on at most.
  ///   - completionHandler: told on the capturer's thread whether it began.
  public func startCapture(
    with device: AVCaptureDevice, format: AVCaptureDevice.Format, fps: Int,
    completionHandler: (@Sendable ((any Error)?) -> Void)? = nil
  ) {
    self.device?.capturer.stopCapture()
    self.device = device
    device.capturer.startCapture(
      format.native,
      consumer: CaptureRun(delegate, framesPerSecond: fps) { isStarted in
        completionHandler?(isStarted ? nil : CaptureFailure(of: device.localizedName))
      })
  }

  /// Ends capturing.
  public func stopCapture(completionHandler: (@Sendable () -> Void)? = nil) {
    device?.capturer.stopCapture()
    device = nil
    completionHandler?()
  }

  deinit { device?.capturer.stopCapture() }
}
