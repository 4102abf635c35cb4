public import MediaFiles

extension LocalMediaOptions {
  /// Makes what captures the video frames that the options ask for; nil when they ask for none.
  ///
  /// - Parameters:
  ///   - orientation: how the device is held, where `rotationType` goes by that.
  ///   - permissions: whether a camera may be used; nil: the right to open the device decides.
  /// - Throws: `MediaFileError` when the file cannot be read or holds no video frames.
  public func makeVideoCaptureSession(
    orientation: DeviceOrientation = DeviceOrientation(), permissions: CameraPermissions? = nil
  ) throws(MediaFileError) -> VideoCaptureSession? {
    guard hasVideo else { return nil }
    let capturer: any VideoCapturer
    switch source {
    case .camera:
      capturer = ProcessVideoCapturer.camera(position, supportedFormats: [videoFormat])
    case .bypass: capturer = PushedVideoCapturer(supportedFormats: [videoFormat])
    case .file: capturer = try FileVideoCapturer(path: fileName)
    }
    return VideoCaptureSession(
      rotationType == .notAvailable
        ? capturer
        : FilteredVideoCapturer(
          capturer, filters: [OrientationFilter(orientation, by: rotationType)]),
      permissions: source == .camera ? permissions : nil)
  }
}
