package import Wire

/// What a virtual network does not carry at all, until it does again.
package struct VirtualOutage: Hashable, Sendable {
  /// Addresses whose link is down: nothing leaves them and nothing reaches them.
  package var dead: [IPAddress] = []
  /// Addresses that are still reached, but that nothing comes from.
  package var mute: [IPAddress] = []

  package init() {}

  /// Whether a datagram between two addresses is swallowed.
  func swallows(from source: IPAddress, to destination: IPAddress) -> Bool {
    dead.contains(source) || dead.contains(destination) || mute.contains(source)
  }
}
