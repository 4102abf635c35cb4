import Retake

/// An application as it might be: it answers an offer and sends back what it gets.
public struct Echo: Sendable {
  private let connection: PeerConnection

  /// An echo on a connection that the caller made.
  public init(_ connection: PeerConnection) { self.connection = connection }

  /// Answers an offer and returns the answer.
  public func answer(_ offer: SessionDescription) async throws -> SessionDescription? {
    try await connection.setRemoteDescription(offer)
    for transceiver in try await connection.transceivers {
      try await connection.addTrack(transceiver.kind, source: .echo, streamIDs: ["retake"])
    }
    try await connection.setLocalDescription()
    return try await connection.localDescription
  }
}
