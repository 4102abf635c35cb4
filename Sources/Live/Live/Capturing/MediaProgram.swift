import FoundationEssentials

/// The ffmpeg that reads cameras, screens and files.
public struct MediaProgram: Hashable, Sendable {
  /// The first `ffmpeg` in the PATH of the process.
  public static let system = MediaProgram()

  private let file: String?
  private let searchPath: String?

  /// Selects a program.
  /// - Parameters:
  ///   - path: the file; nil to look for `ffmpeg`.
  ///   - searchPath: folders to search, separated by colons; nil for the PATH of the process.
  public init(path: String? = nil, searchPath: String? = nil) {
    file = path
    self.searchPath = searchPath
  }

  /// The executable file; nil if there is none.
  var path: String? {
    let folders = searchPath ?? ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    let candidates = file.map { [$0] } ?? folders.split(separator: ":").map { "\($0)/ffmpeg" }
    return candidates.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Why there is none, with the way out.
  var missing: String {
    file.map { "\($0) is no program that may be run" }
      ?? "there is no ffmpeg: install the package ffmpeg"
  }
}
