public import MediaFiles

extension LocalMediaOptions {
  /// Makes the capturer that the options ask for; a camera or a file whose frames are turned gets a
  /// filter behind it.
  ///
  /// - Parameters:
  ///   - position: which camera; nil: the one of the options.
  ///   - orientation: how the device is held, where `rotationType` goes by that.
  /// - Throws: `MediaFileError` when the file cannot be read or holds no video frames.
  public func makeVideoCapturer(
    position: CameraPosition? = nil, orientation: DeviceOrientation = DeviceOrientation()
  ) throws(MediaFileError) -> any VideoCapturer {
    let capturer: any VideoCapturer
    switch source {
    case .camera: capturer = ProcessVideoCapturer.camera(position ?? self.position)
    case .bypass: capturer = PushedVideoCapturer(supportedFormats: [videoFormat])
    case .file: capturer = try FileVideoCapturer(path: fileName)
    }
    guard rotationType != .notAvailable else { return capturer }
    return FilteredVideoCapturer(
      capturer, filters: [OrientationFilter(orientation, by: rotationType)])
  }
}
