/// An event that is reported only if genesis asks for it: older takes do not have it, and replay
/// without it.
public struct PeerNotice: RawRepresentable, Hashable, Sendable, Codable {
  /// The name of the notice in genesis.
  public var rawValue: String

  /// Creates a notice by its name; one unknown to this version is never reported.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Mute, unmute and the end of received tracks, with reasons.
  public static let tracks = PeerNotice(rawValue: "tracks")
  /// Signaled local candidates that became invalid.
  public static let removedCandidates = PeerNotice(rawValue: "removed-candidates")
  /// W3C icecandidateerror.
  public static let gatheringErrors = PeerNotice(rawValue: "gathering-errors")
  /// W3C RTCIceTransport selectedcandidatepairchange, with the reason.
  public static let selectedPair = PeerNotice(rawValue: "selected-pair")
  /// Speech into a disabled track.
  public static let mutedSpeech = PeerNotice(rawValue: "muted-speech")
  /// Why the connection ended.
  public static let connectionEnd = PeerNotice(rawValue: "connection-end")

  /// All notices of this version.
  public static let all: [PeerNotice] = [
    .tracks, .removedCandidates, .gatheringErrors, .selectedPair, .mutedSpeech, .connectionEnd,
  ]
}

/// A server that provided no candidate (W3C RTCPeerConnectionIceErrorEvent).
public struct GatheringError: Hashable, Sendable, Codable {
  /// The server's URI; empty if unknown.
  public var url: String
  /// The STUN error code, or 701 if the server cannot be reached.
  public var errorCode: UInt16
  /// The error as text.
  public var errorText: String
  /// The local address that the request was sent from, if any.
  public var address: String?
  /// The local port.
  public var port: UInt16?

  /// Creates an error.
  public init(
    url: String, errorCode: UInt16, errorText: String, address: String? = nil, port: UInt16? = nil
  ) {
    self.url = url
    self.errorCode = errorCode
    self.errorText = errorText
    self.address = address
    self.port = port
  }

  /// The code for an unreachable server.
  public static let unreachable: UInt16 = 701
}

/// A change of the selected candidate pair.
public struct SelectedPairChange: Hashable, Sendable, Codable {
  /// The reason for a change.
  public enum Reason: String, Hashable, Sendable, Codable {
    /// The first pair that works.
    case first
    /// The previous pair no longer works.
    case lost
    /// The controlling side nominated it (RFC 8445 section 8.1.1).
    case nominated
    /// ICE was restarted.
    case restart
    /// The pair is better than the previous one.
    case preferred
  }

  /// The number of the transport.
  public var transport: Int
  /// The local candidate.
  public var local: String
  /// The remote candidate.
  public var remote: String
  /// The reason.
  public var reason: Reason
  /// When media or data was last received over the previous pair, in milliseconds ago; nil if
  /// never.
  public var lastReceivedMilliseconds: Int64?

  /// Creates a change.
  public init(
    transport: Int, local: String, remote: String, reason: Reason, lastReceivedMilliseconds: Int64?
  ) {
    self.transport = transport
    self.local = local
    self.remote = remote
    self.reason = reason
    self.lastReceivedMilliseconds = lastReceivedMilliseconds
  }
}

/// Why a connection ended.
public enum ConnectionEnd: String, Hashable, Sendable, Codable {
  /// The application closed it.
  case application
  /// The peer closed the association (DTLS close_notify).
  case peer
  /// No candidate pair works; a restart may help.
  case iceFailed = "ice-failed"
  /// The handshake failed, or the certificate does not match the signaled fingerprint.
  case dtlsFailed = "dtls-failed"
}
