import Glibc

/// Why a media file cannot be used: one sentence that names the file.
public struct MediaFileError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file.
  public var path: String
  /// What is wrong, in words.
  public var reason: String

  package init(path: String, reason: String) {
    self.path = path
    self.reason = reason
  }

  /// `path: reason`.
  public var description: String { "\(path): \(reason)" }
}

/// A file that is open for reading or writing; closed when nobody holds it any longer.
package final class MediaFile {
  /// What a file is opened for.
  package enum Access {
    case reading
    /// Creates the file or empties it.
    case writing
    /// Creates the file, which must not be there.
    case creating
  }

  package let path: String
  private let descriptor: Int32

  private static let pieceBytes = 256 << 10

  package init(_ path: String, for access: Access) throws(MediaFileError) {
    self.path = path
    let flags =
      switch access {
      case .reading: O_RDONLY
      case .writing: O_WRONLY | O_CREAT | O_TRUNC
      case .creating: O_WRONLY | O_CREAT | O_EXCL
      }
    descriptor = open(path, flags | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw MediaFileError(path: path, code: errno) }
  }

  deinit { close(descriptor) }

  /// The next bytes, nil at the end of the file.
  func read() throws(MediaFileError) -> [UInt8]? {
    while true {
      var result = 0
      let piece = [UInt8](unsafeUninitializedCapacity: MediaFile.pieceBytes) { buffer, count in
        result = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        count = max(0, result)
      }
      if result > 0 { return piece }
      if result == 0 { return nil }
      if errno != EINTR { throw MediaFileError(path: path, code: errno) }
    }
  }

  /// Goes back to the beginning.
  func rewind() throws(MediaFileError) {
    guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw MediaFileError(path: path, code: errno) }
  }

  /// Writes all bytes where the file stands.
  func write(_ bytes: [UInt8]) throws(MediaFileError) {
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress.map { $0 + written }, bytes.count - written)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw MediaFileError(path: path, code: errno) }
      written += count
    }
  }
}

extension MediaFileError {
  package init(path: String, code: Int32) {
    self.init(path: path, reason: String(cString: strerror(code)))
  }
}
