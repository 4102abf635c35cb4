import Foundation
import Peer

/// The domain of the errors of a connection.
public let kRTCPeerConnectionErrorDomain = "org.webrtc.RTCPeerConnection"
/// The code of errors about descriptions.
public let kRTCSessionDescriptionErrorCode: Int32 = -1

/// Why a call of a connection failed.
public struct RTCPeerConnectionError: LocalizedError, CustomNSError, Hashable {
  /// The DOMException name that W3C prescribes: `InvalidStateError`, ...
  public let name: String
  /// A description of the error.
  public let message: String

  init(_ error: PeerError) {
    name = error.name
    message = error.message
  }

  /// `name: message`.
  public var errorDescription: String? { "\(name): \(message)" }
  /// `kRTCPeerConnectionErrorDomain`.
  public static var errorDomain: String { kRTCPeerConnectionErrorDomain }
  /// `kRTCSessionDescriptionErrorCode`.
  public var errorCode: Int { Int(kRTCSessionDescriptionErrorCode) }
}

extension PeerReply {
  /// The error of a failed call; nil on success.
  var failure: RTCPeerConnectionError? {
    if case .failure(let error) = self { RTCPeerConnectionError(error) } else { nil }
  }
}
