public import Foundation
import Room
public import RoomClient

// What an application reads that knows errors of Foundation alone.
extension RoomError: LocalizedError, CustomNSError {
  /// What happened, in words.
  public var errorDescription: String? { message }
  /// Where the numbers are from.
  public static var errorDomain: String { "Retake.RoomError" }
  /// The number in the table of errors.
  public var errorCode: Int { code.rawValue }
}
