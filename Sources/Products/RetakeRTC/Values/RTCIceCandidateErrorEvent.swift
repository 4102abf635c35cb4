import Peer

/// A failure to get a candidate from a server.
public final class RTCIceCandidateErrorEvent: Sendable {
  /// The local address of the request; empty when none was sent.
  public let address: String
  /// The local port; 0 when no request was sent.
  public let port: Int32
  /// The server.
  public let url: String
  /// The STUN error code, or 701 when the server cannot be reached.
  public let errorCode: Int32
  /// The reason.
  public let errorText: String

  init(_ error: GatheringError) {
    address = error.address ?? ""
    port = Int32(error.port ?? 0)
    url = error.url
    errorCode = Int32(error.errorCode)
    errorText = error.errorText
  }
}
