public import Room

/// Why a room did not do what it was asked for, or what went wrong in it.
public struct RoomError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The number in the table of errors.
  public var code: RoomErrorCode
  /// What happened, in words.
  public var message: String
  /// Whether the room cannot continue: it is disconnected next.
  public var isCritical: Bool
  /// The video or audio that it is about; nil: none in particular.
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

  /// The number and the words.
  public var description: String { "\(code.rawValue): \(message)" }
}
