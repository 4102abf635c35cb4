import STUN
import TURN
import Wire

/// Follows TURN between clients and servers (RFC 8656), to read what goes through it as if it went
/// between the relayed address and the peer.
struct RelayTable {
  /// What a message of TURN brings.
  enum Content {
    /// A datagram inside, and between whom it goes. The peer of a channel that was not seen to be
    /// bound has the address 0.0.0.0, with the channel as its port.
    case inner(FiveTuple, Range<Int>, peerIsKnown: Bool)
    case control
    /// It is not TURN.
    case none
  }

  private struct Relay {
    var client: SocketAddress
    var server: SocketAddress
    var transport: TransportProtocol
    /// The address that the server gave; its own as long as that was not seen.
    var relayed: SocketAddress
    var channels: [UInt16: SocketAddress] = [:]
    /// Channels that were asked for and not granted yet.
    var asked: [(transaction: STUNTransactionID, channel: UInt16, peer: SocketAddress)] = []
  }

  private static let relaysMaximum = 4096
  private static let channelsMaximum = 4096

  private var relays: [Relay] = []
  private var places: [PathKey: Int] = [:]
  private var relayedAddresses: Set<SocketAddress> = []

  /// Whether a server gave this address to a client that was seen.
  func isRelayed(_ address: SocketAddress) -> Bool { relayedAddresses.contains(address) }

  /// Whether a path is one between a client and its server.
  func isRelayPath(_ tuple: FiveTuple) -> Bool { places[PathKey.of(tuple).key] != nil }

  /// Takes a message that is no Binding.
  mutating func take(_ message: STUNMessage, _ tuple: FiveTuple) -> Content {
    switch (message.method, message.messageClass) {
    case (.allocate, .request), (.refresh, .request), (.createPermission, .request):
      _ = index(client: tuple.source, server: tuple.destination, tuple.transport)
    case (.allocate, .success):
      guard let place = index(client: tuple.destination, server: tuple.source, tuple.transport),
        let relayed = message.relayedAddress
      else { return .control }
      relays[place].relayed = relayed
      relayedAddresses.insert(relayed)
    case (.channelBind, .request):
      guard let place = index(client: tuple.source, server: tuple.destination, tuple.transport),
        let channel = message.channelNumber, let peer = message.peerAddress
      else { return .control }
      if relays[place].asked.count > 64 { relays[place].asked.removeFirst() }
      relays[place].asked.append((message.transactionID, channel, peer))
    case (.channelBind, .success):
      guard let place = index(client: tuple.destination, server: tuple.source, tuple.transport),
        let asked = relays[place].asked.firstIndex(where: {
          $0.transaction == message.transactionID
        })
      else { return .control }
      let bound = relays[place].asked.remove(at: asked)
      if relays[place].channels.count < Self.channelsMaximum {
        relays[place].channels[bound.channel] = bound.peer
      }
    case (.send, .indication), (.data, .indication):
      let isSent = message.method == .send
      let (client, server) =
        isSent ? (tuple.source, tuple.destination) : (tuple.destination, tuple.source)
      guard let place = index(client: client, server: server, tuple.transport),
        let peer = message.peerAddress, let data = message.attribute(.data)
      else { return .control }
      let relayed = relays[place].relayed
      return .inner(
        isSent ? FiveTuple(from: relayed, to: peer) : FiveTuple(from: peer, to: relayed),
        data.range, peerIsKnown: true)
    case (.binding, _): return .none
    default: break
    }
    return .control
  }

  /// Takes channel data (RFC 8656 section 12.4).
  mutating func take(channelData bytes: RawSpan, _ tuple: FiveTuple) -> Content {
    guard let (channel, range) = ChannelData.read(bytes) else { return .none }
    var place = places[PathKey.of(tuple).key]
    if place == nil {
      // Without the allocation, the well-known ports tell who the server is (RFC 8656 section 4).
      guard Self.mayBeRelayed(bytes, tuple) else { return .none }
      place =
        Self.isServer(tuple.destination.port)
        ? index(client: tuple.source, server: tuple.destination, tuple.transport)
        : index(client: tuple.destination, server: tuple.source, tuple.transport)
    }
    guard let place else { return .none }
    let relay = relays[place]
    let known = relay.channels[channel]
    let peer = known ?? SocketAddress(IPAddress(ipv4: 0), port: channel)
    let isSent = relay.client == tuple.source
    return .inner(
      isSent ? FiveTuple(from: relay.relayed, to: peer) : FiveTuple(from: peer, to: relay.relayed),
      range, peerIsKnown: known != nil)
  }

  /// Whether channel data goes to or from a well-known port of relays, where no allocation was
  /// seen.
  static func mayBeRelayed(_ bytes: RawSpan, _ tuple: FiveTuple) -> Bool {
    guard let (channel, _) = ChannelData.read(bytes), ChannelData.numbers.contains(channel) else {
      return false
    }
    return isServer(tuple.source.port) != isServer(tuple.destination.port)
  }

  /// RFC 8656 section 4, and what lets it through firewalls.
  private static func isServer(_ port: UInt16) -> Bool { [3478, 5349, 80, 443].contains(port) }

  private mutating func index(
    client: SocketAddress, server: SocketAddress, _ transport: TransportProtocol
  ) -> Int? {
    let key = PathKey.of(FiveTuple(transport, from: client, to: server)).key
    if let known = places[key] { return known }
    guard relays.count < Self.relaysMaximum else { return nil }
    relays.append(Relay(client: client, server: server, transport: transport, relayed: server))
    places[key] = relays.count - 1
    return relays.count - 1
  }
}
