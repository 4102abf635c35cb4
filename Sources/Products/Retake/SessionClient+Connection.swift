public import Live
public import Peer
import SDP
public import Signaling

/// The reason that a WHIP or WHEP session did not start.
public enum SessionFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The endpoint refused or could not be reached.
  case refused(String)
  /// The connection rejected the endpoint's description.
  case connection(PeerError)

  /// The reason in one sentence.
  public var description: String {
    switch self {
    case .refused(let reason): reason
    case .connection(let error): "the session failed: \(error.message)"
    }
  }
}

extension SessionClient {
  /// Starts a session that sends (WHIP) or receives (WHEP) the connection's media.
  ///
  /// The offer includes all candidates. If the endpoint makes a counter-offer, the client answers
  /// it.
  ///
  ///     let client = SessionClient(.whip, endpoint: "https://live.example/whip/room")
  ///     try await connection.addTransceiver(.audio, direction: .sendonly, source: .echo)
  ///     let session = try await client.connect(connection)
  ///     // ...
  ///     try await client.close(session)
  ///
  /// - Throws: `SessionFailure` if the endpoint or the connection refuses, or if the endpoint
  ///   cannot be reached.
  public func connect(_ connection: PeerConnection) async throws(SessionFailure) -> Session {
    do {
      try await connection.setLocalDescription()
      let session = try await open(offer: try await gathered(connection))
      let remote = SessionDescription(
        type: session.isCounterOffer ? .offer : .answer, sdp: session.description)
      if session.isCounterOffer {
        // draft-ietf-wish-whep section 4.2: the server makes the offer instead.
        try await connection.setLocalDescription(SessionDescription(type: .rollback, sdp: ""))
        try await connection.setRemoteDescription(remote)
        try await connection.setLocalDescription()
        try await answer(try await gathered(connection), in: session)
      } else {
        try await connection.setRemoteDescription(remote)
      }
      return session
    } catch let error as HTTPError {
      throw .refused(error.reason)
    } catch let error as PeerError {
      throw .connection(error)
    } catch {
      throw .refused(String(describing: error))
    }
  }

  private func gathered(_ connection: PeerConnection) async throws -> String {
    try await connection.waitForGatheringComplete()
    guard let description = try await connection.localDescription else {
      throw PeerError(name: "OperationError", message: "no local description was created")
    }
    return description.sdp
  }
}
