import FoundationEssentials
public import MediaFiles

extension LocalMediaOptions {
  /// Creates the capturer for the options; frames of a camera or file are rotated by a filter if
  /// requested.
  /// - Parameters:
  ///   - position: which camera; nil for that of the options.
  ///   - orientation: the device's orientation, if `rotationType` refers to it.
  ///   - program: the ffmpeg that reads cameras and files.
  /// - Throws: `MediaFileError` if the file cannot be read or has no video.
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

  /// Creates the capturer of `fileName`: YUV4MPEG2, IVF and H.264 byte streams are read directly,
  /// everything else by ffmpeg.
  /// - Throws: `MediaFileError` if the file cannot be read or has no video.
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
