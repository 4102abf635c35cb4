public import Room

/// Why a room refused a call, or what went wrong in it.
public struct RoomError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The error code.
  public var code: RoomErrorCode
  /// What happened, as a sentence.
  public var message: String
  /// Whether the room cannot continue; it is disconnected next.
  public var isCritical: Bool
  /// The video or audio concerned, if any.
  public var mediaID: Int?

  /// Creates an error.
  public init(
    _ code: RoomErrorCode, _ message: String, isCritical: Bool = false, mediaID: Int? = nil
  ) {
    self.code = code
    self.message = message
    self.isCritical = isCritical
    self.mediaID = mediaID
  }

  init(_ failure: SignalingFailure) {
    self.init(
      failure.code, failure.message, isCritical: failure.isCritical,
      mediaID: failure.media.map { Int($0.number) })
  }

  /// The code and the message.
  public var description: String { "\(code.rawValue): \(message)" }
}
