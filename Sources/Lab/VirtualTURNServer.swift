package import ICE
package import Wire

/// A STUN and TURN server in virtual time (RFC 8489, RFC 8656) that enforces the rules for clients
/// about credentials, fresh nonces, permissions and channels.
package struct VirtualTURNServer {
  /// A datagram that the server sends, from its own endpoint or from a relayed address.
  package struct Departure: Sendable {
    package var source: SocketAddress
    package var destination: SocketAddress
    package var bytes: [UInt8]
  }

  /// A client's relayed address, with its permissions and channels (RFC 8656 section 5).
  package struct Allocation: Sendable {
    package let client: SocketAddress
    package let relayed: SocketAddress
    package internal(set) var expiresAt: Instant
    package internal(set) var permissions: [(ip: IPAddress, expiresAt: Instant)] = []
    package internal(set) var channels: [(number: UInt16, peer: SocketAddress)] = []
  }

  package let address: SocketAddress
  package let realm = "lab.example"
  package var username = "user"
  package var password = "password"
  /// The lifetime of a nonce; nil for unlimited.
  package var nonceLifetime: Interval?
  /// The alternate server to which clients are redirected; nil if there is none.
  package var alternate: SocketAddress?
  /// Peers that are never permitted.
  package var forbidden: [IPAddress] = []
  /// The lifetime of an allocation without a refresh.
  package var lifetimeSeconds: UInt32 = 600
  /// The error for every correctly authenticated Allocate request; nil to accept them.
  package var refusal: STUNErrorCode?

  package internal(set) var allocations: [Allocation] = []
  /// The numbers of datagrams that were relayed in channels and in indications.
  package private(set) var relayedByChannel = 0
  package private(set) var relayedByIndication = 0

  private var nonces: [(bytes: [UInt8], at: Instant)] = []
  private var nextPort: UInt16 = 50_000
  var departures: [Departure] = []
  var now = Instant.zero

  package init(address: SocketAddress) { self.address = address }

  /// Handles a datagram at any of the server's endpoints and returns what the server sends.
  package mutating func receive(
    _ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress, at now: Instant
  ) -> [Departure] {
    self.now = now
    departures = []
    allocations.removeAll { $0.expiresAt < now }
    if destination == address {
      if let (number, range) = ChannelData.read(bytes.span.bytes) {
        handleChannelData(number, Array(bytes[range]), from: source)
      } else if let message = try? STUNMessage(bytes) {
        handle(message, from: source)
      }
    } else {
      handlePeerData(bytes, from: source, to: destination)
    }
    return departures
  }

  package mutating func restart() {
    allocations = []
    nonces = []
  }

  // MARK: Data

  private mutating func handleChannelData(
    _ number: UInt16, _ data: [UInt8], from client: SocketAddress
  ) {
    guard let allocation = allocations.first(where: { $0.client == client }),
      let channel = allocation.channels.first(where: { $0.number == number }),
      isPermitted(channel.peer.ip, allocation)
    else { return }
    relayedByChannel += 1
    departures.append(
      Departure(source: allocation.relayed, destination: channel.peer, bytes: data))
  }

  private mutating func handlePeerData(
    _ bytes: [UInt8], from peer: SocketAddress, to relayed: SocketAddress
  ) {
    guard let allocation = allocations.first(where: { $0.relayed == relayed }),
      isPermitted(peer.ip, allocation)
    else { return }
    var data: [UInt8]
    if let channel = allocation.channels.first(where: { $0.peer == peer }) {
      relayedByChannel += 1
      data = ChannelData.frame(bytes, channel: channel.number)
    } else {
      relayedByIndication += 1
      // The transaction ID need not be random, since indications are not answered.
      var writer = STUNWriter(
        .indication, method: .data, transactionID: STUNTransactionID(high: 0, low: 0))
      writer.xorPeerAddress(peer)
      writer.attribute(.data, bytes)
      data = writer.finish(fingerprint: false)
    }
    departures.append(Departure(source: address, destination: allocation.client, bytes: data))
  }

  func isPermitted(_ ip: IPAddress, _ allocation: Allocation) -> Bool {
    allocation.permissions.contains { $0.ip == ip && $0.expiresAt >= now }
  }

  mutating func relay(_ data: [UInt8], of allocation: Allocation, to peer: SocketAddress) {
    guard isPermitted(peer.ip, allocation) else { return }
    relayedByIndication += 1
    departures.append(Departure(source: allocation.relayed, destination: peer, bytes: data))
  }

  // MARK: Credentials

  mutating func nonce() -> [UInt8] {
    if let last = nonces.last, isFresh(last.at) { return last.bytes }
    nonces.append((Array("nonce-\(nonces.count)".utf8), now))
    return nonces[nonces.count - 1].bytes
  }

  func isFresh(_ nonce: [UInt8]) -> Bool {
    nonces.contains { $0.bytes == nonce && isFresh($0.at) }
  }

  private func isFresh(_ madeAt: Instant) -> Bool {
    nonceLifetime.map { madeAt + $0 > now } ?? true
  }

  mutating func newPort() -> UInt16 {
    nextPort += 1
    return nextPort
  }
}

// MARK: - Requests

extension VirtualTURNServer {
  /// Permissions last 5 minutes (RFC 8656 section 9).
  private static let permissionLifetime = Interval.seconds(300)

  mutating func handle(_ message: STUNMessage, from client: SocketAddress) {
    if message.messageClass == .indication {
      guard message.method == .send, let peer = message.peerAddress, let data = message.data,
        let allocation = allocations.first(where: { $0.client == client })
      else { return }
      relay(data, of: allocation, to: peer)
      return
    }
    guard message.messageClass == .request else { return }
    if message.method == .binding {
      answer(message, to: client, key: nil) { $0.xorMappedAddress(client) }
      return
    }
    guard let key = authenticate(message, from: client) else { return }
    switch message.method {
    case .allocate: allocate(message, client, key)
    case .refresh: refresh(message, client, key)
    case .createPermission: permit(message, client, key)
    case .channelBind: bind(message, client, key)
    default: refuse(message, client, .badRequest, key)
    }
  }

  /// Returns the key of a correctly authenticated request; answers any other request with an error
  /// and returns nil.
  private mutating func authenticate(_ message: STUNMessage, from client: SocketAddress)
    -> [UInt8]?
  {
    let key = stunLongTermKey(username: username, realm: realm, password: password)
    guard message.hasIntegrity, let given = message.nonce else {
      challenge(message, client, .unauthenticated)
      return nil
    }
    guard message.username == username, message.realm == realm, message.verifiesIntegrity(key: key)
    else {
      challenge(message, client, .unauthenticated)
      return nil
    }
    guard isFresh(given) else {
      challenge(message, client, .staleNonce)
      return nil
    }
    return key
  }

  private mutating func allocate(_ message: STUNMessage, _ client: SocketAddress, _ key: [UInt8]) {
    if let alternate {
      answer(message, .error, to: client, key: key) {
        $0.errorCode(.tryAlternate)
        $0.alternateServer(alternate)
      }
      return
    }
    if let refusal { return refuse(message, client, refusal, key) }
    guard message.requestedTransport == 17 else {
      return refuse(message, client, .badRequest, key)
    }
    guard (message.requestedFamily == 2) != address.ip.isIPv4 else {
      return refuse(message, client, .unsupportedFamily, key)
    }
    guard !allocations.contains(where: { $0.client == client }) else {
      return refuse(message, client, .allocationMismatch, key)
    }
    let relayed = SocketAddress(address.ip, port: newPort())
    allocations.append(
      Allocation(
        client: client, relayed: relayed, expiresAt: now + .seconds(Int64(lifetimeSeconds))))
    let lifetime = lifetimeSeconds
    answer(message, to: client, key: key) {
      $0.xorRelayedAddress(relayed)
      $0.xorMappedAddress(client)
      $0.lifetime(lifetime)
    }
  }

  private mutating func refresh(_ message: STUNMessage, _ client: SocketAddress, _ key: [UInt8]) {
    guard let index = allocations.firstIndex(where: { $0.client == client }) else {
      return refuse(message, client, .allocationMismatch, key)
    }
    let lifetime = min(message.lifetime ?? lifetimeSeconds, lifetimeSeconds)
    if lifetime == 0 {
      allocations.remove(at: index)
    } else {
      allocations[index].expiresAt = now + .seconds(Int64(lifetime))
    }
    answer(message, to: client, key: key) { $0.lifetime(lifetime) }
  }

  private mutating func permit(_ message: STUNMessage, _ client: SocketAddress, _ key: [UInt8]) {
    guard let index = allocations.firstIndex(where: { $0.client == client }),
      !message.peerAddresses.isEmpty
    else { return refuse(message, client, .allocationMismatch, key) }
    guard !message.peerAddresses.contains(where: { forbidden.contains($0.ip) }) else {
      return refuse(message, client, .forbidden, key)
    }
    for peer in message.peerAddresses { permit(peer.ip, at: index) }
    answer(message, to: client, key: key) { _ in }
  }

  private mutating func permit(_ ip: IPAddress, at index: Int) {
    allocations[index].permissions.removeAll { $0.ip == ip }
    allocations[index].permissions.append((ip, now + VirtualTURNServer.permissionLifetime))
  }

  private mutating func bind(_ message: STUNMessage, _ client: SocketAddress, _ key: [UInt8]) {
    guard let index = allocations.firstIndex(where: { $0.client == client }),
      let number = message.channelNumber, let peer = message.peerAddress,
      ChannelData.numbers.contains(number)
    else { return refuse(message, client, .badRequest, key) }
    guard !forbidden.contains(peer.ip) else { return refuse(message, client, .forbidden, key) }
    let isOther = allocations[index].channels.contains {
      ($0.number == number) != ($0.peer == peer)
    }
    guard !isOther else { return refuse(message, client, .badRequest, key) }
    if !allocations[index].channels.contains(where: { $0.number == number }) {
      allocations[index].channels.append((number, peer))
    }
    permit(peer.ip, at: index)
    answer(message, to: client, key: key) { _ in }
  }

  // MARK: Responses

  private mutating func challenge(
    _ message: STUNMessage, _ client: SocketAddress, _ error: STUNErrorCode
  ) {
    let (realm, nonce) = (realm, nonce())
    answer(message, .error, to: client, key: nil) {
      $0.errorCode(error)
      $0.attribute(.realm, Array(realm.utf8))
      $0.attribute(.nonce, nonce)
    }
  }

  private mutating func refuse(
    _ message: STUNMessage, _ client: SocketAddress, _ error: STUNErrorCode, _ key: [UInt8]
  ) {
    answer(message, .error, to: client, key: key) { $0.errorCode(error) }
  }

  private mutating func answer(
    _ message: STUNMessage, _ messageClass: STUNClass = .success, to client: SocketAddress,
    key: [UInt8]?, _ body: (inout STUNWriter) -> Void
  ) {
    var writer = STUNWriter(
      messageClass, method: message.method, transactionID: message.transactionID)
    body(&writer)
    departures.append(
      Departure(source: address, destination: client, bytes: writer.finish(key: key)))
  }
}
