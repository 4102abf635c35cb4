/// What a track carries.
public enum MediaKind: String, Hashable, Sendable, Codable {
  /// Sound.
  case audio
  /// Pictures.
  case video
}
