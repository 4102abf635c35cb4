import FoundationEssentials

/// The ffmpeg that reads cameras, screens and files.
public struct MediaProgram: Hashable, Sendable {
  /// The first `ffmpeg` of the PATH of the process.
  public static let system = MediaProgram()

  private let file: String?
  private let searchPath: String?

  /// Names a program.
  ///
  /// - Parameters:
  ///   - path: the file; nil looks for `ffmpeg`.
  ///   - searchPath: folders, separated by colons, in which it is looked for; nil: the PATH of the
  ///     process.
  public init(path: String? = nil, searchPath: String? = nil) {
    file = path
    self.searchPath = searchPath
  }

  /// The file that runs; nil if there is none that may be run.
  var path: String? {
    let folders = searchPath ?? ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    let candidates = file.map { [$0] } ?? folders.split(separator: ":").map { "\($0)/ffmpeg" }
    return candidates.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Why there is none, and the way out.
  var missing: String {
    file.map { "\($0) is no program that may be run" }
      ?? "there is no ffmpeg: install the package ffmpeg"
  }
}
