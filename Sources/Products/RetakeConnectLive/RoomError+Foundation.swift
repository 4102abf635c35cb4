public import Foundation
import Room
public import RoomClient

// For applications that handle only Foundation's errors.
extension RoomError: LocalizedError, CustomNSError {
  /// A description of the error.
  public var errorDescription: String? { message }
  /// The domain of the error codes.
  public static var errorDomain: String { "Retake.RoomError" }
  /// The error code.
  public var errorCode: Int { code.rawValue }
}
