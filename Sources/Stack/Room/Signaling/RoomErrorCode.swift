/// A room's error code; any number is allowed, so that a service's own codes are preserved.
///
/// The codes come from the room SDK whose names the API follows. If a protocol has no codes, its
/// errors get the closest code.
public struct RoomErrorCode: RawRepresentable, Hashable, Sendable, Codable {
  /// The number of the error in the room SDK or the service.
  public let rawValue: Int
  /// Creates an error code from its number, which need not be a known one.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// No error: the result of a successful sign-in.
  public static let none = RoomErrorCode(rawValue: 0)

  // Signing in.
  /// The service identifier, the secret or the token is missing or malformed.
  public static let signInIncomplete = RoomErrorCode(rawValue: 1101)
  /// The sign-in could not reach the service.
  public static let signInUnreachable = RoomErrorCode(rawValue: 1102)
  /// The service refused the key and the secret.
  public static let signInRefused = RoomErrorCode(rawValue: 1103)
  /// The service's answer to the sign-in was unreadable.
  public static let signInUnreadable = RoomErrorCode(rawValue: 1104)
  /// The token is no longer valid.
  public static let tokenExpired = RoomErrorCode(rawValue: 1105)
  /// The call needs a token, but there was no sign-in.
  public static let notSignedIn = RoomErrorCode(rawValue: 1106)

  // Local media.
  /// The camera could not be opened.
  public static let cameraFailed = RoomErrorCode(rawValue: 1201)
  /// Local media was started without a capturer.
  public static let capturerMissing = RoomErrorCode(rawValue: 1202)

  /// The room identifier does not consist of 1 to 32 letters, digits and hyphens.
  public static let invalidRoomID = RoomErrorCode(rawValue: 1301)

  // Received video.
  /// The video is already subscribed to.
  public static let alreadySubscribed = RoomErrorCode(rawValue: 1321)
  /// The room may not receive any more videos.
  public static let receiversExhausted = RoomErrorCode(rawValue: 1322)
  /// The list contains nothing to subscribe to.
  public static let nothingToSubscribe = RoomErrorCode(rawValue: 1323)
  /// The list contains nothing to unsubscribe from.
  public static let nothingToUnsubscribe = RoomErrorCode(rawValue: 1324)
  /// There is no receiving connection, because the room is not connected.
  public static let noDownConnection = RoomErrorCode(rawValue: 1325)
  /// No receiver is free until the service has confirmed an earlier unsubscription.
  public static let noFreeReceiver = RoomErrorCode(rawValue: 1326)
  /// The video is not subscribed to.
  public static let notSubscribed = RoomErrorCode(rawValue: 1327)
  /// No participant publishes the video.
  public static let noSuchMedia = RoomErrorCode(rawValue: 1328)
  /// The service did not add the receiver.
  public static let subscribeFailed = RoomErrorCode(rawValue: 1329)
  /// The service did not remove the receiver.
  public static let unsubscribeFailed = RoomErrorCode(rawValue: 1330)
  /// The service did not answer in time.
  public static let subscribeTimedOut = RoomErrorCode(rawValue: 1331)
  /// The service refused the profile.
  public static let profileFailed = RoomErrorCode(rawValue: 1351)
  /// The video has no profiles to choose from.
  public static let noProfiles = RoomErrorCode(rawValue: 1352)
  /// The service refused to pause or resume the video.
  public static let pauseFailed = RoomErrorCode(rawValue: 1353)
  /// The video cannot be paused.
  public static let cannotPause = RoomErrorCode(rawValue: 1354)

  // Signaling and sessions.
  /// The service could not be reached.
  public static let unreachable = RoomErrorCode(rawValue: 1401)
  /// The service refused to admit the participant to the room.
  public static let joinRefused = RoomErrorCode(rawValue: 1402)
  /// A message to participants could not be sent.
  public static let messageFailed = RoomErrorCode(rawValue: 1403)
  /// A connection found no path, even after several ICE restarts.
  public static let connectionFailed = RoomErrorCode(rawValue: 1411)
  /// The remote peer or the server closed a connection.
  public static let connectionClosed = RoomErrorCode(rawValue: 1412)
  /// The server refused a connection's ICE restart, or did not answer it.
  public static let pathLost = RoomErrorCode(rawValue: 1413)
  /// No offer could be created.
  public static let offerFailed = RoomErrorCode(rawValue: 1431)
  /// No answer could be created, or the server refused it.
  public static let answerFailed = RoomErrorCode(rawValue: 1432)
  /// The local description could not be applied.
  public static let localDescriptionFailed = RoomErrorCode(rawValue: 1433)
  /// The service's description could not be applied.
  public static let remoteDescriptionFailed = RoomErrorCode(rawValue: 1434)
  /// A candidate could not be added.
  public static let candidateFailed = RoomErrorCode(rawValue: 1435)
  /// Local media could not be added.
  public static let publishFailed = RoomErrorCode(rawValue: 1441)
  /// Local media could not be unpublished.
  public static let unpublishFailed = RoomErrorCode(rawValue: 1446)
  /// Local media could not be changed.
  public static let updateFailed = RoomErrorCode(rawValue: 1449)
  /// Received media could not be assigned a receiver.
  public static let assignFailed = RoomErrorCode(rawValue: 1452)
  /// A message from the service was unreadable.
  public static let unreadableMessage = RoomErrorCode(rawValue: 1461)
  /// A user message is unreadable or has no valid addressee.
  public static let userMessageInvalid = RoomErrorCode(rawValue: 1471)
  /// The service reported an error that has no other code here.
  public static let serviceError = RoomErrorCode(rawValue: 1487)

  // General.
  /// The call is not valid in the room's state.
  public static let invalidState = RoomErrorCode(rawValue: 1901)
  /// An argument of the call is invalid, such as the identifier of unknown media.
  public static let invalidArgument = RoomErrorCode(rawValue: 1902)
  /// The room's protocol does not support the operation.
  public static let notSupported = RoomErrorCode(rawValue: 1903)
  /// An error inside the client, which neither the call nor the service caused.
  public static let internalError = RoomErrorCode(rawValue: 1904)
  /// A frame could not be encoded for the screen sharing socket.
  public static let shareEncodingFailed = RoomErrorCode(rawValue: 1905)
  /// The screen sharing process could not be started or has crashed, or its room is gone.
  public static let shareUnreachable = RoomErrorCode(rawValue: 1906)
  /// The screen sharing process found no room that accepts its frames, or did not connect in time.
  public static let shareRoomMissing = RoomErrorCode(rawValue: 1907)

  /// The code's meaning as a sentence; for an unknown code in a known range, the meaning of the
  /// range.
  public var meaning: String {
    RoomErrorCode.meanings.first { $0.code == rawValue }?.meaning
      ?? RoomErrorCode.ranges.first { $0.range.contains(rawValue) }?.meaning
      ?? "The service reports error \(rawValue)."
  }

  /// All codes with their own meaning, in order.
  package static var known: [RoomErrorCode] { meanings.map { RoomErrorCode(rawValue: $0.code) } }

  private static let ranges: [(range: ClosedRange<Int>, meaning: String)] = [
    (1101...1106, "Signing in failed."),
    (1201...1299, "Local media could not be captured."),
    (1301...1320, "The room cannot be entered."),
    (1321...1331, "A video could not be subscribed to or unsubscribed from."),
    (1351...1354, "The profile or the pause of a video could not be set."),
    (1401...1410, "The signaling with the service failed."),
    (1411...1413, "A connection of the room failed."),
    (1431...1435, "A session description or candidate could not be used."),
    (1441...1454, "A stream could not be added, removed or assigned."),
    (1461...1487, "A message of the session could not be read."),
    (1901...1907, "The call could not be carried out."),
  ]

  private static let meanings: [(code: Int, meaning: String)] = [
    (1101, "Neither a service nor a token was named."),
    (1102, "The sign-in could not reach the service."),
    (1103, "The service refused the key and the secret."),
    (1104, "The service's answer to the sign-in could not be read."),
    (1105, "The token is no longer valid."),
    (1106, "Nobody has signed in."),
    (1201, "The camera could not be opened."),
    (1202, "The local media has no capturer yet."),
    (1301, "The identifier of a room has 1 to 32 letters, digits and hyphens."),
    (1321, "The video is subscribed to already."),
    (1322, "The room may not receive more videos; unsubscribe from one first."),
    (1323, "The list has no video to subscribe to."),
    (1324, "The list has no video to unsubscribe from."),
    (1325, "There is no receiving connection."),
    (1326, "No receiver is free; unsubscribe from a video first."),
    (1327, "The video is not subscribed to."),
    (1328, "Nobody publishes such a video."),
    (1329, "The service did not add the receiver."),
    (1330, "The service did not remove the receiver."),
    (1331, "The service did not answer in time."),
    (1351, "The service refused the profile."),
    (1352, "The video has no profiles to choose from."),
    (1353, "The service refused to pause or resume the video."),
    (1354, "The video cannot be paused."),
    (1401, "The service could not be reached."),
    (1402, "The service refused the room."),
    (1403, "The message could not be sent."),
    (1411, "A connection failed."),
    (1412, "A connection was closed by the remote peer."),
    (1413, "A connection lost its path."),
    (1431, "No offer could be made."),
    (1432, "No answer could be made."),
    (1433, "The local description could not be applied."),
    (1434, "The service's description could not be applied."),
    (1435, "A candidate could not be added."),
    (1441, "Local media could not be added."),
    (1446, "Local media could not be removed."),
    (1449, "Local media could not be changed."),
    (1452, "No receiver could be assigned to received media."),
    (1461, "A message of the service could not be read."),
    (1471, "The user message could not be read or has no valid addressee."),
    (1487, "The service reported an error."),
    (1901, "The call does not fit the state of the room."),
    (1902, "An argument is invalid."),
    (1903, "The protocol of the room cannot do that."),
    (1904, "An internal error occurred."),
    (1905, "A shared frame could not be encoded."),
    (1906, "The helper and the room cannot reach each other."),
    (1907, "No room uses the helper's frames."),
  ]
}
