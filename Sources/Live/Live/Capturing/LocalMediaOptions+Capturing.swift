import FoundationEssentials
public import MediaFiles

extension LocalMediaOptions {
  /// Creates the capturer that the options ask for; a camera or a file whose frames are turned gets
  /// a filter behind it.
  /// - Parameters:
  ///   - position: which camera; nil: the one of the options.
  ///   - orientation: how the device is held, where `rotationType` goes by that.
  ///   - program: the ffmpeg that reads cameras and files.
  /// - Throws: `MediaFileError` when the file cannot be read or holds no video frames.
  public func makeVideoCapturer(
    position: CameraPosition? = nil, orientation: DeviceOrientation = DeviceOrientation(),
    program: MediaProgram = .system
  ) throws(MediaFileError) -> any VideoCapturer {
    let capturer: any VideoCapturer
    switch source {
    case .camera:
      capturer = ProcessVideoCapturer.camera(position ?? self.position, program: program)
    case .bypass: capturer = PushedVideoCapturer(supportedFormats: [videoFormat])
    case .file: capturer = try makeFileCapturer(program)
    }
    guard rotationType != .notAvailable else { return capturer }
    return FilteredVideoCapturer(
      capturer, filters: [OrientationFilter(orientation, by: rotationType)])
  }

  /// Creates the capturer of `fileName`: Retake reads YUV4MPEG2, IVF and streams of H.264 by
  /// itself, ffmpeg the rest.
  /// - Throws: `MediaFileError` when the file cannot be read or holds no video frames.
  package func makeFileCapturer(_ program: MediaProgram = .system) throws(MediaFileError)
    -> any VideoCapturer
  {
    guard needsProgram else { return try FileVideoCapturer(path: fileName) }
    guard FileManager.default.isReadableFile(atPath: fileName) else {
      throw MediaFileError(
        path: fileName, reason: "the file is not there or cannot be read: check its name")
    }
    return ProcessVideoCapturer.file(fileName, supportedFormats: [videoFormat], program: program)
  }

  /// Whether ffmpeg has to read `fileName`.
  package var needsProgram: Bool {
    let name = fileName.lowercased()
    return ![".y4m", ".ivf", ".h264", ".264"].contains { name.hasSuffix($0) }
  }
}
