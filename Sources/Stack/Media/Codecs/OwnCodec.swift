/// A codec that an application brought in the place of a library's, as genesis names it.
public struct OwnCodec: Hashable, Sendable, Codable {
  /// What it does.
  public enum Role: String, Hashable, Sendable, Codable {
    /// It makes frames.
    case encoder
    /// It makes video frames.
    case decoder
  }

  /// What it encodes or decodes, by its encoding name in lower case: `vp8`.
  public var codec: String
  /// What it does.
  public var role: Role
  /// What the application calls it.
  public var implementation: String

  /// Names a codec.
  public init(codec: String, role: Role, implementation: String) {
    self.codec = codec
    self.role = role
    self.implementation = implementation
  }
}
