import Foundation
import Peer

/// The domain of errors that a connection gives.
public let kRTCPeerConnectionErrorDomain = "org.webrtc.RTCPeerConnection"
/// The code of errors about descriptions.
public let kRTCSessionDescriptionErrorCode: Int32 = -1

/// Why a connection refused a call.
public struct RTCPeerConnectionError: LocalizedError, CustomNSError, Hashable {
  /// The DOMException name that W3C prescribes: `InvalidStateError`, ...
  public let name: String
  /// What is wrong, in words.
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
  /// The error of a refused call; nil when it was done.
  var failure: RTCPeerConnectionError? {
    if case .failure(let error) = self { RTCPeerConnectionError(error) } else { nil }
  }
}
