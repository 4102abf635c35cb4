import Peer

/// A server that gave no candidate.
public final class RTCIceCandidateErrorEvent: Sendable {
  /// The local address from which the server was asked; empty when it was not.
  public let address: String
  /// The own port; 0 when the server was not asked.
  public let port: Int32
  /// The server.
  public let url: String
  /// What STUN answered, or 701 when the server cannot be reached.
  public let errorCode: Int32
  /// The same in words.
  public let errorText: String

  init(_ error: GatheringError) {
    address = error.address ?? ""
    port = Int32(error.port ?? 0)
    url = error.url
    errorCode = Int32(error.errorCode)
    errorText = error.errorText
  }
}
