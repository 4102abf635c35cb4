/// Something that is told only where genesis says so: takes from before it had none of it, and
/// replay without it.
public struct PeerNotice: RawRepresentable, Hashable, Sendable, Codable {
  /// The name of the notice in genesis.
  public var rawValue: String

  /// Creates a notice by its name; one that this version does not know is never told.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Mute, unmute and the end of received tracks, with reasons.
  public static let tracks = PeerNotice(rawValue: "tracks")
  /// Local candidates that were signaled and are gone.
  public static let removedCandidates = PeerNotice(rawValue: "removed-candidates")
  /// W3C icecandidateerror.
  public static let gatheringErrors = PeerNotice(rawValue: "gathering-errors")
  /// W3C RTCIceTransport selectedcandidatepairchange, with the reason.
  public static let selectedPair = PeerNotice(rawValue: "selected-pair")
  /// That somebody speaks into a track that is disabled.
  public static let mutedSpeech = PeerNotice(rawValue: "muted-speech")
  /// Why the connection ended.
  public static let connectionEnd = PeerNotice(rawValue: "connection-end")

  /// All that this version knows.
  public static let all: [PeerNotice] = [
    .tracks, .removedCandidates, .gatheringErrors, .selectedPair, .mutedSpeech, .connectionEnd,
  ]
}

/// A server that gave no candidate (W3C RTCPeerConnectionIceErrorEvent).
public struct GatheringError: Hashable, Sendable, Codable {
  /// The server's URI; empty when it is not known.
  public var url: String
  /// What STUN answered, or 701 when the server cannot be reached.
  public var errorCode: UInt16
  /// The same in words.
  public var errorText: String
  /// The local address from which the server was asked; nil when it was not asked.
  public var address: String?
  /// The own port.
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

  /// The code for a server that cannot be reached.
  public static let unreachable: UInt16 = 701
}

/// Another candidate pair carries the connection.
public struct SelectedPairChange: Hashable, Sendable, Codable {
  /// Why it does.
  public enum Reason: String, Hashable, Sendable, Codable {
    /// It is the first pair that works.
    case first
    /// The pair before no longer works.
    case lost
    /// The controlling side nominated it (RFC 8445 section 8.1.1).
    case nominated
    /// ICE was restarted.
    case restart
    /// It is better than the one before.
    case preferred
  }

  /// The transport that the pair belongs to, among those of the connection.
  public var transport: Int
  /// The local candidate.
  public var local: String
  /// The peer's candidate.
  public var remote: String
  /// Why it does.
  public var reason: Reason
  /// How long ago media or data last came over the pair, in milliseconds; nil: never.
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

/// Why a connection is over.
public enum ConnectionEnd: String, Hashable, Sendable, Codable {
  /// The application closed it.
  case application
  /// The peer closed the association (DTLS close_notify).
  case peer
  /// No candidate pair works; a restart may help.
  case iceFailed = "ice-failed"
  /// The handshake failed, or the certificate was another one than signaled.
  case dtlsFailed = "dtls-failed"
}
