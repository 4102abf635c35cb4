public import Wire

/// The formats of files that can be sent.
public enum MediaFileFormat: String, CaseIterable, Hashable, Sendable {
  /// Video frames without compression (YUV4MPEG2).
  case y4m
  /// A byte stream of H.264 (annex B), which is sent as it is.
  case h264
  /// Audio (RIFF WAVE).
  case wav

  /// The format of a file by the end of its name; nil for an unknown one.
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

  /// Audio or video frames.
  public var kind: MediaKind { self == .wav ? .audio : .video }
}
