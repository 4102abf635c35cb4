/// A codec provided by the application in place of a library's, as named in genesis.
public struct OwnCodec: Hashable, Sendable, Codable {
  /// Whether it encodes or decodes.
  public enum Role: String, Hashable, Sendable, Codable {
    /// Encodes frames.
    case encoder
    /// Decodes frames.
    case decoder
  }

  /// Its encoding name in lower case: `vp8`.
  public var codec: String
  /// Whether it encodes or decodes.
  public var role: Role
  /// The application's name for it.
  public var implementation: String

  /// Names a codec.
  public init(codec: String, role: Role, implementation: String) {
    self.codec = codec
    self.role = role
    self.implementation = implementation
  }
}
