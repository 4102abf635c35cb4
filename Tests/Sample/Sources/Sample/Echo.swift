import Retake

/// A sample application: it answers an offer and echoes received media.
public struct Echo: Sendable {
  private let connection: PeerConnection

  /// Creates an echo on a connection made by the caller.
  public init(_ connection: PeerConnection) { self.connection = connection }

  /// Applies an offer and returns the answer.
  public func answer(_ offer: SessionDescription) async throws -> SessionDescription? {
    try await connection.setRemoteDescription(offer)
    for transceiver in try await connection.transceivers {
      try await connection.addTrack(transceiver.kind, source: .echo, streamIDs: ["retake"])
    }
    try await connection.setLocalDescription()
    return try await connection.localDescription
  }
}
