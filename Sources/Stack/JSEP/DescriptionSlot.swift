/// The description attributes of a W3C connection.
public enum DescriptionSlot: String, Hashable, Sendable, Codable, CaseIterable {
  /// W3C currentLocalDescription: set by the last completed exchange.
  case currentLocal
  /// W3C pendingLocalDescription: set by the exchange under way.
  case pendingLocal
  /// W3C remoteDescription: the pending or else the current one.
  case remote
  /// W3C currentRemoteDescription.
  case currentRemote
  /// W3C pendingRemoteDescription.
  case pendingRemote
}
