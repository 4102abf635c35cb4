import Foundation
import ICE
import JSEP
import Peer
import SCTP
import SDP

/// A description's type (W3C RTCSdpType), numbered as in the Objective-C header.
public enum RTCSdpType: Int, Sendable {
  /// Proposes a session.
  case offer
  /// Answers provisionally.
  case prAnswer
  /// Answers finally.
  case answer
  /// Withdraws a proposal.
  case rollback

  init(_ type: SDPType) {
    self =
      switch type {
      case .offer: .offer
      case .pranswer: .prAnswer
      case .answer: .answer
      case .rollback: .rollback
      }
  }

  /// Converts to the stack's type.
  var native: SDPType {
    switch self {
    case .offer: .offer
    case .prAnswer: .pranswer
    case .answer: .answer
    case .rollback: .rollback
    }
  }
}

/// A session description: its SDP, and whether it is an offer or an answer.
public final class RTCSessionDescription: Sendable, CustomStringConvertible {
  /// The type: offer, answer, ...
  public let type: RTCSdpType
  /// The SDP text (RFC 8866).
  public let sdp: String

  /// Creates a description; the text is parsed when it is applied.
  public init(type: RTCSdpType, sdp: String) {
    self.type = type
    self.sdp = sdp
  }

  convenience init(_ description: SessionDescription) {
    self.init(type: RTCSdpType(description.type), sdp: description.sdp)
  }

  var native: SessionDescription { SessionDescription(type: type.native, sdp: sdp) }

  /// Returns a type's name in signaling: `offer`, `pranswer`, `answer`, `rollback`.
  public static func string(for type: RTCSdpType) -> String { type.native.rawValue }

  /// Returns the type for a name; an unknown name is an offer, as in libwebrtc.
  public static func type(for string: String) -> RTCSdpType {
    RTCSdpType(SDPType(rawValue: string) ?? .offer)
  }

  /// The type followed by the text.
  public var description: String {
    "RTCSessionDescription: \(RTCSessionDescription.string(for: type))\n\(sdp)"
  }
}

/// A candidate with its m-section.
public final class RTCIceCandidate: Sendable, CustomStringConvertible {
  /// The m-section's identifier; nil if only its index is known.
  public let sdpMid: String?
  /// The m-section's index from 0; also 0 if only its identifier is known.
  public let sdpMLineIndex: Int32
  /// The candidate's text, `candidate:...` (RFC 8839 section 5.1).
  public let sdp: String

  /// Creates a candidate received through signaling; the text is parsed when it is added.
  public init(sdp: String, sdpMLineIndex: Int32, sdpMid: String?) {
    self.sdp = sdp
    self.sdpMLineIndex = sdpMLineIndex
    self.sdpMid = sdpMid
  }

  convenience init(_ candidate: CandidateInit) {
    self.init(
      sdp: candidate.candidate, sdpMLineIndex: Int32(clamping: candidate.sdpMLineIndex ?? 0),
      sdpMid: candidate.sdpMid)
  }

  var native: CandidateInit {
    CandidateInit(candidate: sdp, sdpMid: sdpMid, sdpMLineIndex: Int(sdpMLineIndex))
  }

  /// The m-section's identifier and index, followed by the text.
  public var description: String {
    "RTCIceCandidate: \(sdpMid ?? "nil"), \(sdpMLineIndex)\n\(sdp)"
  }
}

/// A server's failure to provide a candidate.
public final class RTCIceCandidateErrorEvent: Sendable {
  /// The request's local address; empty if no request was sent.
  public let address: String
  /// The request's local port; 0 if no request was sent.
  public let port: Int32
  /// The URL of the STUN or TURN server.
  public let url: String
  /// The STUN error code, or 701 if the server cannot be reached.
  public let errorCode: Int32
  /// The reason that the server states, as text.
  public let errorText: String

  init(_ error: GatheringError) {
    address = error.address ?? ""
    port = Int32(error.port ?? 0)
    url = error.url
    errorCode = Int32(error.errorCode)
    errorText = error.errorText
  }
}

// MARK: - RTCStates

/// The state of the offer/answer exchange (W3C RTCSignalingState), numbered as in the Objective-C
/// header.
public enum RTCSignalingState: Int, Sendable {
  /// No exchange is in progress.
  case stable
  /// A local offer awaits its answer.
  case haveLocalOffer
  /// A local provisional answer was sent.
  case haveLocalPrAnswer
  /// A remote offer awaits its answer.
  case haveRemoteOffer
  /// A remote provisional answer was received.
  case haveRemotePrAnswer
  /// The connection was closed.
  case closed

  init(_ state: SignalingState) {
    self =
      switch state {
      case .stable: .stable
      case .haveLocalOffer: .haveLocalOffer
      case .haveLocalPranswer: .haveLocalPrAnswer
      case .haveRemoteOffer: .haveRemoteOffer
      case .haveRemotePranswer: .haveRemotePrAnswer
      case .closed: .closed
      }
  }
}

/// The state of the connectivity checks (W3C RTCIceConnectionState), numbered as in the Objective-C
/// header.
public enum RTCIceConnectionState: Int, Sendable {
  /// No checks have started.
  case new
  /// Candidate pairs are being checked.
  case checking
  /// A pair works; other pairs may still be checked.
  case connected
  /// A pair works and all checks have finished.
  case completed
  /// No pair works.
  case failed
  /// The selected pair does not answer.
  case disconnected
  /// The connection was closed.
  case closed
  /// The number of states; never a state itself.
  case count

  init(_ state: ICEConnectionState) {
    self =
      switch state {
      case .new: .new
      case .checking: .checking
      case .connected: .connected
      case .completed: .completed
      case .failed: .failed
      case .disconnected: .disconnected
      case .closed: .closed
      }
  }
}

/// The combined state of ICE and DTLS (W3C RTCPeerConnectionState), numbered as in the Objective-C
/// header.
public enum RTCPeerConnectionState: Int, Sendable {
  /// Nothing has started.
  case new
  /// ICE or DTLS is being established.
  case connecting
  /// Media can flow.
  case connected
  /// The path does not answer; it may recover.
  case disconnected
  /// A transport failed.
  case failed
  /// The connection was closed.
  case closed

  init(_ state: ConnectionState) {
    self =
      switch state {
      case .new: .new
      case .connecting: .connecting
      case .connected: .connected
      case .disconnected: .disconnected
      case .failed: .failed
      case .closed: .closed
      }
  }
}

/// The state of candidate gathering (W3C RTCIceGatheringState), numbered as in the Objective-C
/// header.
public enum RTCIceGatheringState: Int, Sendable {
  /// Gathering has not started.
  case new
  /// Candidates are being gathered.
  case gathering
  /// All candidates are known.
  case complete

  init(_ state: ICEGatheringState) {
    self =
      switch state {
      case .new: .new
      case .gathering: .gathering
      case .complete: .complete
      }
  }
}

/// The state of a data channel (W3C RTCDataChannelState), numbered as in the Objective-C header.
public enum RTCDataChannelState: Int, Sendable {
  /// There is no association yet.
  case connecting
  /// Messages can be sent.
  case open
  /// The channel is closing; messages in flight are still delivered.
  case closing
  /// The channel is closed.
  case closed

  init(_ state: DataChannelState) {
    self =
      switch state {
      case .connecting: .connecting
      case .open: .open
      case .closing: .closing
      case .closed: .closed
      }
  }
}

/// The domain of `RTCPeerConnectionError`.
public let kRTCPeerConnectionErrorDomain = "org.webrtc.RTCPeerConnection"
/// The code of every `RTCPeerConnectionError`.
public let kRTCSessionDescriptionErrorCode: Int32 = -1

/// An error from a call to a connection.
public struct RTCPeerConnectionError: LocalizedError, CustomNSError, Hashable {
  /// The DOMException name that W3C prescribes: `InvalidStateError`, ...
  public let name: String
  /// A description of what went wrong.
  public let message: String

  init(_ error: PeerError) {
    name = error.name
    message = error.message
  }

  /// The error as `name: message`.
  public var errorDescription: String? { "\(name): \(message)" }
  /// The error domain, always `kRTCPeerConnectionErrorDomain`.
  public static var errorDomain: String { kRTCPeerConnectionErrorDomain }
  /// The error's code, always `kRTCSessionDescriptionErrorCode`.
  public var errorCode: Int { Int(kRTCSessionDescriptionErrorCode) }
}

extension PeerReply {
  /// A failed call's error; nil on success.
  var failure: RTCPeerConnectionError? {
    if case .failure(let error) = self { RTCPeerConnectionError(error) } else { nil }
  }
}
