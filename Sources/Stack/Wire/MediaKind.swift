/// What a track carries.
public enum MediaKind: String, Hashable, Sendable, Codable {
  /// Audio.
  case audio
  /// Video frames.
  case video
}
