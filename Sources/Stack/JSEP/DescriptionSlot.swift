/// The places that W3C gives to descriptions of a connection.
public enum DescriptionSlot: String, Hashable, Sendable, Codable, CaseIterable {
  /// W3C currentLocalDescription: what the last completed exchange set.
  case currentLocal
  /// W3C pendingLocalDescription: what the exchange under way set.
  case pendingLocal
  /// W3C remoteDescription: the pending or else the current one.
  case remote
  /// W3C currentRemoteDescription.
  case currentRemote
  /// W3C pendingRemoteDescription.
  case pendingRemote
}
