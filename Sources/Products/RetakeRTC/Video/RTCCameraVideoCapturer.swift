import Live
import Peer

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
