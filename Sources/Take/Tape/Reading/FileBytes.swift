import Glibc
import Wire

/// Files as their bytes, by names that need not be UTF-8.
package enum FileBytes {
  /// Opens a file for reading.
  package static func open(_ path: String) -> Result<Int32, SystemCode> {
    let descriptor = Glibc.open(path.systemPath, O_RDONLY | O_CLOEXEC)
    return descriptor < 0 ? .failure(SystemCode(errno)) : .success(descriptor)
  }

  /// Reads a file from its beginning.
  ///
  /// - Parameter limit: how many bytes are read at most.
  package static func read(_ path: String, atMost limit: Int = .max)
    -> Result<[UInt8], SystemCode>
  {
    let descriptor: Int32
    switch open(path) {
    case .success(let opened): descriptor = opened
    case .failure(let code): return .failure(code)
    }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    while bytes.count < limit {
      var code: Int32 = 0
      let wanted = min(limit - bytes.count, pieceBytes)
      let piece = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
        let got = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        code = got < 0 ? errno : 0
        count = max(0, got)
      }
      if code == EINTR { continue }
      guard code == 0 else { return .failure(SystemCode(code)) }
      if piece.isEmpty { break }
      bytes += piece
    }
    return .success(bytes)
  }

  private static let pieceBytes = 256 << 10

  /// What stands under a name, links followed.
  package enum Kind: Hashable, Sendable {
    case file, folder
    /// A device, a pipe or a socket.
    case other
  }

  /// What stands under a name; nil for nothing.
  package static func kind(of path: String) -> Kind? {
    var status = stat()
    guard stat(path.systemPath, &status) == 0 else { return nil }
    return switch status.st_mode & S_IFMT {
    case S_IFREG: .file
    case S_IFDIR: .folder
    default: .other
    }
  }

  /// The size of a file in bytes; 0 when it is not there.
  package static func size(of path: String) -> Int {
    var status = stat()
    return stat(path.systemPath, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Removes a file that may be there.
  package static func remove(_ path: String) { unlink(path.systemPath) }

  /// The names of all files below a folder, with the folders between, in order.
  ///
  /// Links to folders are not followed.
  package static func names(below folder: String) -> [String] {
    var found: [String] = []
    var waiting = [""]
    while let next = waiting.popLast() {
      for name in FolderListing.names(in: next.isEmpty ? folder : "\(folder)/\(next)") {
        let path = next.isEmpty ? name : "\(next)/\(name)"
        var status = stat()
        guard lstat("\(folder)/\(path)".systemPath, &status) == 0 else { continue }
        if status.st_mode & S_IFMT == S_IFDIR {
          waiting.append(path)
        } else {
          found.append(path)
        }
      }
    }
    return found.sorted()
  }

  /// The last part of a path.
  package static func name(of path: String) -> String {
    String(path.split(separator: "/").last ?? "")
  }

  /// The last part of a path without what stands behind its last dot.
  package static func stem(of path: String) -> String {
    let name = name(of: path)
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return name }
    return String(name[..<dot])
  }

  /// The folder of a path as it is written, without a slash at its end; empty for a mere name.
  package static func folder(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
