import Live
import Peer

/// A capturer of a camera.
public final class RTCCameraVideoCapturer: RTCVideoCapturer {
  private var device: AVCaptureDevice?

  /// The cameras.
  public static func captureDevices() -> [AVCaptureDevice] { AVCaptureDevice.all }

  /// What a camera can give.
  public static func supportedFormats(for device: AVCaptureDevice) -> [AVCaptureDevice.Format] {
    device.formats
  }

  /// Starts to capture; a capture that runs ends.
  ///
  /// Who has not been asked for the camera yet is asked now. It fails where the camera is refused,
  /// or where the application has an `Info.plist` that does not say what the camera is for.
  /// - Parameters:
  ///   - fps: how many frames of those of the format are handed on at most.
  ///   - completionHandler: told on the capturer's thread whether it began.
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

  /// Ends capturing.
  public func stopCapture(completionHandler: (() -> Void)? = nil) {
    device?.capturer.stopCapture()
    device = nil
    completionHandler?()
  }

  deinit { device?.capturer.stopCapture() }
}
