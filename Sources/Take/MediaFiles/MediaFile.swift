import Glibc
public import Media
public import Wire

/// An error in a media file: one sentence that states the file and the position in it.
public struct MediaFileError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of fault.
  public enum Cause: String, Hashable, Sendable {
    /// The file contains no media, or content that cannot be read or sent.
    case content
    /// There is no such file.
    case missing
    /// The system could not open, read or write the file.
    case system
  }

  /// The file's path.
  public var path: String
  /// The reason, and usually the remedy, as a sentence.
  public var reason: String
  /// Whether the content, a missing file or the system caused the error.
  public var cause: Cause
  /// The video frame that could not be read, counted from 1 in the file; nil for audio, and if the
  /// fault is not about a frame.
  public var videoFrame: Int?
  /// The byte offset in the file; nil if the fault concerns the entire file.
  public var byteOffset: Int?

  package init(
    path: String, reason: String, cause: Cause = .content, videoFrame: Int? = nil,
    byteOffset: Int? = nil
  ) {
    self.path = path
    self.reason = reason
    self.cause = cause
    self.videoFrame = videoFrame
    self.byteOffset = byteOffset
  }

  /// The error as `path: reason (video frame 3, byte 4711)`.
  public var description: String {
    let place = [videoFrame.map { "video frame \($0)" }, byteOffset.map { "byte \($0)" }]
      .compactMap(\.self).joined(separator: ", ")
    return "\(path): \(reason)" + (place.isEmpty ? "" : " (\(place))")
  }
}

/// A file that is open for reading or writing; it is closed when its last reference is released.
package final class MediaFile {
  /// Whether a file is opened for reading or for writing.
  package enum Access {
    case reading
    /// Creates the file or empties it.
    case writing
  }

  package let path: String
  private let descriptor: Int32

  /// The number of bytes read since the start.
  private var position = 0

  private static let pieceBytes = 256 << 10

  package init(_ path: String, for access: Access) throws(MediaFileError) {
    self.path = path
    let flags =
      switch access {
      // Opening a pipe without a writer would block; pipes are refused below.
      case .reading: O_RDONLY | O_NONBLOCK
      case .writing: O_WRONLY | O_CREAT | O_TRUNC
      }
    descriptor = open(path.systemPath, flags | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw MediaFileError(path: path, code: errno) }
    if access == .reading { try check("the file is empty: name one with media in it") }
  }

  /// Adopts a descriptor that is open for writing; it is closed when this object is released.
  package init(descriptor: Int32, path: String) {
    self.path = path
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }

  /// Refuses files that cannot be rewound, and refuses empty files with the given message.
  private func check(_ emptiness: String) throws(MediaFileError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw MediaFileError(path: path, code: errno) }
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFDIR: throw MediaFileError(path: path, reason: "it is a folder: name a file in it")
    default:
      throw MediaFileError(
        path: path,
        reason: "it is not a regular file and cannot be read repeatedly: copy it into one"
      )
    }
    if status.st_size == 0 { throw MediaFileError(path: path, reason: emptiness) }
  }

  /// Returns the next bytes; nil at the end of the file.
  func read() throws(MediaFileError) -> [UInt8]? {
    while true {
      var result = 0
      var code: Int32 = 0
      let piece = [UInt8](unsafeUninitializedCapacity: MediaFile.pieceBytes) { buffer, count in
        result = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        code = result < 0 ? errno : 0
        count = max(0, result)
      }
      position += max(0, result)
      if result > 0 { return piece }
      if result == 0 { return nil }
      if code != EINTR { throw MediaFileError(path: path, code: code, byteOffset: position) }
    }
  }

  func rewind() throws(MediaFileError) {
    guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw MediaFileError(path: path, code: errno) }
    position = 0
    try check("the file became empty while it was being sent: do not change it until the end")
  }

  /// Overwrites bytes at an offset from the start.
  package func write(_ bytes: [UInt8], at offset: Int) throws(MediaFileError) {
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes {
        pwrite(
          descriptor, $0.baseAddress.map { $0 + written }, bytes.count - written, offset + written)
      }
      let code = count < 0 ? errno : 0
      if code == EINTR { continue }
      guard count > 0 else { throw MediaFileError(path: path, code: code == 0 ? EIO : code) }
      written += count
    }
  }

  /// Writes all bytes at the current position.
  package func write(_ bytes: [UInt8]) throws(MediaFileError) {
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress.map { $0 + written }, bytes.count - written)
      }
      let code = count < 0 ? errno : 0
      if code == EINTR { continue }
      guard count > 0 else { throw MediaFileError(path: path, code: code == 0 ? EIO : code) }
      written += count
    }
  }
}

extension MediaFileError {
  /// Creates the error for a system error number.
  package init(path: String, code: Int32, byteOffset: Int? = nil) {
    self.init(
      path: path, reason: String(cString: strerror(code)),
      cause: code == ENOENT ? .missing : .system, byteOffset: byteOffset)
  }
}

/// The formats of files that can be sent.
public enum MediaFileFormat: String, CaseIterable, Hashable, Sendable {
  /// Uncompressed video frames (YUV4MPEG2).
  case y4m
  /// An H.264 byte stream (annex B), sent without decoding.
  case h264
  /// Audio (RIFF WAVE).
  case wav

  /// Detects a file's format by its extension; fails for an unknown extension.
  public init?(path: String) {
    let name = path.split(separator: "/").last ?? ""
    guard let dot = name.lastIndex(of: ".") else { return nil }
    switch name[name.index(after: dot)...].lowercased() {
    case "y4m": self = .y4m
    case "h264", "264": self = .h264
    case "wav": self = .wav
    default: return nil
    }
  }

  /// The kind of media that the format contains.
  public var kind: MediaKind { self == .wav ? .audio : .video }
}

/// Media in time order, ready to be sent.
public protocol TimedMedia: SendableMetatype {
  /// Returns the next video frame or block, and its time in nanoseconds after the first one; nil at
  /// the end.
  mutating func next() throws(MediaFileError) -> (media: MediaContent, nanoseconds: Int64)?
  /// Returns the next key frame, to be sent instead of the last frame from `next`; nil if there is
  /// none, or if any frame will do.
  mutating func nextKeyFrame() throws(MediaFileError) -> MediaContent?
}

extension TimedMedia {
  /// Returns nil, because any frame of media that is encoded while being sent can become a key
  /// frame.
  public mutating func nextKeyFrame() -> MediaContent? { nil }
}
