package import Wire

/// Temporary outages of a virtual network.
package struct VirtualOutage: Hashable, Sendable {
  /// Addresses whose link is down in both directions.
  package var dead: [IPAddress] = []
  /// Addresses that can receive but not send.
  package var mute: [IPAddress] = []

  package init() {}

  /// Whether a datagram between two addresses is dropped.
  func swallows(from source: IPAddress, to destination: IPAddress) -> Bool {
    dead.contains(source) || dead.contains(destination) || mute.contains(source)
  }
}
