import ICE
import Wire

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

  /// Returns the key of a correctly authenticated request; refuses others.
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
