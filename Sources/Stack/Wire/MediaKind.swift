/// What a track carries.
public enum MediaKind: String, Hashable, Sendable, Codable {
  case audio
  case video
}
