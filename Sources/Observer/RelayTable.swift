import ICE
import Wire

/// Follows TURN between clients and servers (RFC 8656), so that relayed packets can be processed as
/// if they travelled between the relayed address and the peer.
struct RelayTable {
  /// The contents of a TURN message.
  enum Content {
    /// The datagram inside, with its addresses.
    ///
    /// If the channel's binding was not seen, the peer is 0.0.0.0 with the channel number as its
    /// port. If the allocation was not seen, the client's own address replaces the relayed one.
    case inner(FiveTuple, Range<Int>, peerIsKnown: Bool)
    /// A channel was bound to a peer.
    ///
    /// Earlier data on the channel was recorded under these placeholder addresses; `peer` is the
    /// real address.
    case bound(FiveTuple, peer: SocketAddress)
    case control
    case none
  }

  private struct Relay {
    var client: SocketAddress
    var server: SocketAddress
    var transport: TransportProtocol
    /// The relayed address; until it is seen, the client's own address.
    var relayed: SocketAddress
    var channels: [UInt16: SocketAddress] = [:]
    /// ChannelBind requests without a response.
    var asked: [(transaction: STUNTransactionID, channel: UInt16, peer: SocketAddress)] = []
    /// Whether it was guessed, from addresses and ports, which end is the relay.
    var isGuessed = false
  }

  /// A relay whose client and server had been confused.
  struct Correction {
    var client: SocketAddress
    var server: SocketAddress
  }

  private static let relaysMaximum = 4096
  private static let channelsMaximum = 4096

  private var relays: [Relay] = []
  private var places: [PathKey: Int] = [:]
  /// The clients by relayed address, and the clients whose relayed address was not seen.
  private var clients: [SocketAddress: SocketAddress] = [:]
  private var bareClients: Set<SocketAddress> = []
  /// The IP addresses of known relays.
  private var servers: Set<IPAddress> = []
  /// Whether a wrong guess about which end is the relay is corrected; false in older takes.
  private let corrects: Bool
  private var corrections: [Correction] = []

  init(corrects: Bool = true) { self.corrects = corrects }

  /// Returns and removes the corrections since the last call.
  mutating func removeCorrections() -> [Correction] {
    guard !corrections.isEmpty else { return [] }
    defer { corrections = [] }
    return corrections
  }

  /// Returns whether the address was allocated to a client that was seen.
  func isRelayed(_ address: SocketAddress) -> Bool { clients[address] != nil }

  /// Returns the client behind an address, which is its relayed address or, if that was not seen,
  /// its own; nil if there is none.
  func client(behind address: SocketAddress) -> SocketAddress? {
    clients[address] ?? (bareClients.contains(address) ? address : nil)
  }

  /// Returns whether a host is known to be a relay.
  func isServer(_ ip: IPAddress) -> Bool { servers.contains(ip) }

  /// Returns whether a path is between a client and its server.
  func isRelayPath(_ tuple: FiveTuple) -> Bool { places[PathKey.of(tuple).key] != nil }

  /// Returns whether the address is a placeholder for a peer that was not seen.
  static func isPlaceholder(_ address: SocketAddress) -> Bool {
    address.ip == IPAddress(ipv4: 0)
  }

  /// Records a relayed address that the other end's responses revealed, without changing how data
  /// is processed.
  mutating func record(relayed: SocketAddress, of client: SocketAddress) {
    guard clients.count < 4 * Self.relaysMaximum else { return }
    clients[relayed] = clients[relayed] ?? client
  }

  /// Drops a client's relayed address, because that end of the path turned out to be the peer.
  mutating func forget(relayed: SocketAddress, of client: SocketAddress) {
    if clients[relayed] == client { clients[relayed] = nil }
  }

  /// Handles a STUN message with a TURN method (RFC 8656).
  mutating func receive(_ message: STUNMessage, _ tuple: FiveTuple) -> Content {
    switch (message.method, message.messageClass) {
    case (.allocate, .request), (.refresh, .request), (.createPermission, .request):
      _ = index(client: tuple.source, server: tuple.destination, tuple.transport)
    case (.allocate, .success), (.refresh, .success), (.createPermission, .success):
      guard let place = index(client: tuple.destination, server: tuple.source, tuple.transport),
        let relayed = message.relayedAddress
      else { return .control }
      learn(relayed, place)
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
      return bind(bound.channel, to: bound.peer, place)
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

  /// Handles a known relay's channel data (RFC 8656 section 12.4).
  func receive(channelData bytes: RawSpan, _ tuple: FiveTuple, isTruncated: Bool) -> Content {
    guard let (channel, range) = ChannelData.readAny(bytes, isTruncated: isTruncated),
      let place = places[PathKey.of(tuple).key]
    else { return .none }
    let relay = relays[place]
    let known = relay.channels[channel]
    let peer = known ?? SocketAddress(IPAddress(ipv4: 0), port: channel)
    let isSent = relay.client == tuple.source
    return .inner(
      isSent ? FiveTuple(from: relay.relayed, to: peer) : FiveTuple(from: peer, to: relay.relayed),
      range, peerIsKnown: known != nil)
  }

  /// Starts following a relay whose allocation was not seen; returns false if there are too many.
  mutating func assume(_ tuple: FiveTuple) -> Bool {
    if isRelayPath(tuple) { return true }
    let shared = corrects ? sharedEnd(tuple) : nil
    let (isToServer, isSure) = Self.serverIsDestination(tuple, servers)
    let server = shared ?? (isToServer ? tuple.destination : tuple.source)
    let client = server == tuple.destination ? tuple.source : tuple.destination
    guard let place = index(client: client, server: server, tuple.transport) else { return false }
    relays[place].isGuessed = corrects && shared == nil && !isSure
    return true
  }

  /// Returns the end that this TCP connection shares with a known relay's connection; nil if there
  /// is none.
  ///
  /// The shared end is the server, because a client opens a new port for each connection. Over UDP,
  /// a client may use one port for several servers. If a known relay's client turns out to be the
  /// server, that guess is corrected.
  private mutating func sharedEnd(_ tuple: FiveTuple) -> SocketAddress? {
    guard tuple.transport == .tcp, tuple.source != tuple.destination else { return nil }
    for place in relays.indices where relays[place].transport == .tcp {
      let (client, server) = (relays[place].client, relays[place].server)
      for end in [tuple.source, tuple.destination] where end == client || end == server {
        if relays[place].isGuessed { settle(place, client: end == client ? server : client) }
        return relays[place].server == end ? end : nil
      }
    }
    return nil
  }

  /// Settles which end of a relay's path is the client, if that was only a guess.
  private mutating func settle(_ place: Int, client: SocketAddress) {
    guard relays[place].isGuessed else { return }
    relays[place].isGuessed = false
    let (former, server) = (relays[place].client, relays[place].server)
    guard client == server else { return }
    (relays[place].client, relays[place].server) = (server, former)
    bareClients.remove(former)
    if relays[place].relayed == former {
      relays[place].relayed = server
      bareClients.insert(server)
    }
    servers.insert(former.ip)
    if !relays.contains(where: { $0.server.ip == server.ip }) { servers.remove(server.ip) }
    corrections.append(Correction(client: server, server: former))
  }

  /// Learns the address at which one end of a relayed path is seen by the other end.
  ///
  /// A relayed address belongs to the server's host. So if a client is seen at its own address, or
  /// a peer at the client's host, the relay was guessed at the wrong end.
  ///
  /// - Parameters:
  ///   - client: the relay's client, if known.
  ///   - isOfClient: whether the address is the client's; otherwise it is the peer's.
  mutating func see(_ mapped: SocketAddress, client: SocketAddress, isOfClient: Bool) {
    guard
      let place = relays.firstIndex(where: {
        $0.isGuessed && $0.client == client && $0.client.ip != $0.server.ip
      })
    else { return }
    if isOfClient, mapped.ip == relays[place].server.ip {
      relays[place].isGuessed = false
    } else if !isOfClient, mapped.ip == client.ip {
      settle(place, client: relays[place].server)
    }
  }

  /// Returns whether a datagram to or from a well-known relay port may be channel data of a call,
  /// although no allocation was seen.
  static func mayBeRelayed(_ bytes: RawSpan, _ tuple: FiveTuple, isTruncated: Bool) -> Bool {
    guard isServer(tuple.source.port) != isServer(tuple.destination.port),
      let (_, data) = ChannelData.readAny(bytes, isTruncated: isTruncated)
    else { return false }
    var evidence = ContentEvidence()
    return evidence.add(bytes.extracting(data)) || isTruncated
  }

  /// Decides which of two hosts is the relay.
  ///
  /// A known relay takes precedence over a well-known port (3478 and 5349, RFC 8656 section 4, or
  /// 80 and 443, which pass firewalls). Otherwise, the relay is the host with a public address, or
  /// else the host with the lower port. The last two rules are guesses, which the relayed packets
  /// may refute.
  private static func serverIsDestination(
    _ tuple: FiveTuple, _ servers: Set<IPAddress>
  ) -> (Bool, isSure: Bool) {
    let (source, destination) = (tuple.source, tuple.destination)
    for (rule, isSure) in [
      ({ servers.contains($0.ip) }, true), ({ isServer($0.port) }, true),
      ({ !$0.ip.isOfPrivateNetwork }, false),
    ] as [((SocketAddress) -> Bool, Bool)] where rule(source) != rule(destination) {
      return (rule(destination), isSure)
    }
    return (destination.port <= source.port, false)
  }

  private static func isServer(_ port: UInt16) -> Bool { [3478, 5349, 80, 443].contains(port) }

  private mutating func bind(_ channel: UInt16, to peer: SocketAddress, _ place: Int) -> Content {
    let relay = relays[place]
    guard relay.channels[channel] != peer, relay.channels.count < Self.channelsMaximum else {
      return .control
    }
    relays[place].channels[channel] = peer
    guard relay.channels[channel] == nil else { return .control }
    let unknown = SocketAddress(IPAddress(ipv4: 0), port: channel)
    return .bound(FiveTuple(from: relay.relayed, to: unknown), peer: peer)
  }

  private mutating func learn(_ relayed: SocketAddress, _ place: Int) {
    guard clients[relayed] != nil || clients.count < 4 * Self.relaysMaximum else { return }
    bareClients.remove(relays[place].client)
    relays[place].relayed = relayed
    clients[relayed] = relays[place].client
    servers.insert(relayed.ip)
  }

  private mutating func index(
    client: SocketAddress, server: SocketAddress, _ transport: TransportProtocol
  ) -> Int? {
    let key = PathKey.of(FiveTuple(transport, from: client, to: server)).key
    if let known = places[key] {
      settle(known, client: client)
      return known
    }
    guard relays.count < Self.relaysMaximum else { return nil }
    relays.append(Relay(client: client, server: server, transport: transport, relayed: client))
    places[key] = relays.count - 1
    bareClients.insert(client)
    servers.insert(server.ip)
    return relays.count - 1
  }
}
