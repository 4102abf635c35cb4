package import Wire

/// What an agent may use.
package struct ICESettings: Hashable, Sendable {
  package var servers: [ICEServer]
  /// Whether nothing but TURN servers is spoken to (W3C iceTransportPolicy `relay`).
  package var relayOnly: Bool
  /// Whether host candidates over UDP are gathered; without, servers are not asked either.
  package var usesUDP: Bool
  /// Whether TCP candidates are gathered (RFC 6544).
  package var usesTCP: Bool
  /// Whether names stand for the local addresses in candidates
  /// (draft-ietf-mmusic-mdns-ice-candidates section 3.1.1).
  package var hidesAddresses: Bool
  /// How long the peer may not be heard before the path counts as disconnected; nil: 7 s.
  package var silence: Interval?

  package init(
    servers: [ICEServer] = [], relayOnly: Bool = false, usesUDP: Bool = true, usesTCP: Bool = false,
    hidesAddresses: Bool = false, silence: Interval? = nil
  ) {
    self.servers = servers
    self.relayOnly = relayOnly
    self.usesUDP = usesUDP
    self.usesTCP = usesTCP
    self.hidesAddresses = hidesAddresses
    self.silence = silence
  }
}
