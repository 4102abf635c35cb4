package import Wire

/// One allocation on a TURN server over one transport (RFC 8656), without I/O.
///
/// The caller transports messages between the client and the server; `begin` requests the
/// allocation. Data for a peer is sent in indications until `bind` has led to a channel; until the
/// server permits the peer, the data waits.
package struct TURNClient: Machine {
  private typealias Purpose = ServerTransactions.Purpose

  package private(set) var deadline: Instant?

  private let entropy: EntropyStream
  private var authentication: ServerAuthentication
  private var allocation: Allocation
  private var transactions: ServerTransactions
  private var permissions = Permissions()
  private var channels = Channels()
  private var mapping: MappingKeeper
  /// The current step's instant and outputs.
  private var now = Instant.zero
  private var outbox = Outbox<Output>()

  /// Creates a client that waits for `begin`.
  package init(
    credentials: TURNCredentials, isReliable: Bool = false, wantsIPv6: Bool = false,
    entropy: EntropyStream
  ) {
    authentication = ServerAuthentication(credentials)
    allocation = Allocation(wantsIPv6: wantsIPv6)
    transactions = ServerTransactions(isReliable: isReliable)
    mapping = MappingKeeper(isReliable: isReliable)
    self.entropy = entropy
  }

  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    guard !allocation.isOver else { return }
    self.now = now
    swap(&self.outbox, &outbox)
    switch input {
    case .begin: if allocation.begin() { request(.allocate) }
    case .received(let bytes): receive(bytes)
    case .permit(let ip): _ = permit(ip)
    case .bind(let peer): bind(peer)
    case .send(let bytes, let peer): send(bytes, to: peer)
    case .verify: verify()
    case .deadline: runTimers()
    case .close: close()
    }
    swap(&self.outbox, &outbox)
  }

  /// The relayed address; nil unless the allocation exists.
  package var relayed: SocketAddress? { allocation.relayed }

  /// Whether the allocation is still pending.
  package var isAllocating: Bool { allocation.isOpen }

  package var isAllocated: Bool { allocation.isThere }

  private mutating func updateDeadline() {
    deadline = earliest(
      earliest(earliest(allocation.refreshAt, mapping.deadline), transactions.deadline),
      earliest(permissions.deadline, channels.deadline))
  }

  // MARK: - Data

  private mutating func send(_ bytes: [UInt8], to peer: SocketAddress) {
    guard allocation.isThere else { return }
    if let number = channels.bound(to: peer) {
      transmit(ChannelData.frame(bytes, channel: number))
      return
    }
    guard permit(peer.ip), permissions.send(bytes, to: peer, at: now) == .granted else { return }
    indicate(bytes, to: peer)
  }

  private mutating func indicate(_ bytes: [UInt8], to peer: SocketAddress) {
    var writer = STUNWriter(
      .indication, method: .send, transactionID: STUNTransactionID(from: entropy))
    writer.xorPeerAddress(peer)
    writer.attribute(.data, bytes)
    transmit(writer.finish(fingerprint: false))
  }

  private mutating func transmit(_ bytes: [UInt8]) {
    mapping.recordSent(at: now)
    outbox.append(.send(bytes))
  }

  private mutating func receive(_ bytes: [UInt8]) {
    if let (number, range) = ChannelData.read(bytes.span.bytes) {
      guard let peer = channels.peer(of: number) else { return }
      outbox.append(.received(Array(bytes[range]), from: peer))
      return
    }
    guard let message = try? STUNMessage(bytes), message.hasValidFingerprint != false else {
      return
    }
    switch (message.messageClass, message.method) {
    case (.indication, .data):
      guard let peer = message.peerAddress, let data = message.data,
        permissions.receive(from: peer.ip, at: now)
      else { return }
      outbox.append(.received(data, from: peer))
    case (.success, _), (.error, _): handleResponse(message)
    default: break
    }
  }

  // MARK: - Requests

  /// Permits an address, requesting permission if necessary; returns false if there is no
  /// allocation, or no room for another permission.
  private mutating func permit(_ ip: IPAddress) -> Bool {
    if permissions.has(ip) { return true }
    guard allocation.isThere, permissions.add(ip, at: now) else { return false }
    request(.permission(ip))
    return true
  }

  /// Requests a channel, which also permits the peer (RFC 8656 section 12).
  private mutating func bind(_ peer: SocketAddress) {
    guard allocation.isThere, channels.mayAdd(peer), permit(peer.ip) else { return }
    request(.channel(channels.add(peer)))
  }

  /// Refreshes the allocation early: a server that lost the allocation answers with an error.
  private mutating func verify() {
    guard allocation.isThere, !transactions.contains(.refresh) else { return }
    allocation.hasten()
    request(.refresh)
  }

  /// Sends a request and waits for its response.
  private mutating func request(_ purpose: Purpose, renewals: Int = 0) {
    let id = STUNTransactionID(from: entropy)
    let bytes = message(purpose, id)
    transactions.begin(purpose, id, bytes, renewals: renewals, at: now)
    transmit(bytes)
    updateDeadline()
  }

  private func message(
    _ purpose: Purpose, _ id: STUNTransactionID, lifetime: UInt32? = nil
  ) -> [UInt8] {
    var writer: STUNWriter
    switch purpose {
    case .allocate:
      writer = STUNWriter(.request, method: .allocate, transactionID: id)
      writer.requestedTransportUDP()
      if allocation.wantsIPv6 { writer.requestedFamily(isIPv4: false) }
    case .refresh:
      writer = STUNWriter(.request, method: .refresh, transactionID: id)
      if let lifetime { writer.lifetime(lifetime) }
    case .permission(let ip):
      writer = STUNWriter(.request, method: .createPermission, transactionID: id)
      writer.xorPeerAddress(SocketAddress(ip, port: 0))
    case .channel(let number):
      writer = STUNWriter(.request, method: .channelBind, transactionID: id)
      writer.channelNumber(number)
      if let peer = channels.peer(of: number) { writer.xorPeerAddress(peer) }
    }
    return authentication.finish(writer)
  }

  // MARK: - Responses

  private mutating func handleResponse(_ message: STUNMessage) {
    let isSuccess = message.messageClass == .success
    let error = isSuccess ? nil : message.errorCode
    guard transactions.contains(message.transactionID), authentication.accepts(message),
      isSuccess || error != nil, let transaction = transactions.remove(message.transactionID)
    else { return }
    if let error {
      handleError(error, transaction, message)
    } else {
      succeed(transaction.purpose, message)
    }
    updateDeadline()
  }

  private mutating func succeed(_ purpose: Purpose, _ message: STUNMessage) {
    switch purpose {
    case .allocate:
      guard let relayed = message.relayedAddress,
        allocation.apply(relayed, lifetime: message.lifetime, at: now)
      else {
        fail(.allocate, code: 0, reason: "the server gives no address")
        return
      }
      mapping.begin(at: now)
      outbox.append(.allocated(relayed: relayed, mapped: message.mappedAddress))
    case .refresh: allocation.prolong(message.lifetime, at: now)
    case .permission(let ip):
      for entry in permissions.grant(ip, at: now) { indicate(entry.bytes, to: entry.peer) }
    case .channel(let number):
      if let peer = channels.bind(number, at: now) { permissions.use(peer.ip, at: now) }
    }
  }

  private mutating func handleError(
    _ error: STUNErrorCode, _ transaction: ServerTransactions.Transaction, _ message: STUNMessage
  ) {
    let purpose = transaction.purpose
    if transaction.mayRenew, authentication.learn(error.code, message) {
      request(purpose, renewals: transaction.renewals + 1)
      return
    }
    switch error.code {
    case 440 where purpose == .allocate && allocation.fallBackToIPv4():
      request(.allocate, renewals: transaction.renewals)
    // The server has lost the allocation (RFC 8656 sections 8, 10, 12).
    case 437 where allocation.isThere:
      end()
      outbox.append(.failed(code: error.code, reason: error.reason))
    case 300 where purpose == .allocate:
      guard let server = message.alternateServer, server.port != 0 else {
        fail(.allocate, code: error.code, reason: error.reason)
        return
      }
      end()
      outbox.append(.redirected(server))
    default: fail(purpose, code: error.code, reason: error.reason)
    }
  }

  private mutating func fail(_ purpose: Purpose, code: UInt16, reason: String) {
    switch purpose {
    case .allocate, .refresh:
      end()
      outbox.append(.failed(code: code, reason: reason))
    case .permission(let ip): if permissions.refuse(ip) { outbox.append(.refused(ip)) }
    case .channel(let number): channels.refuse(number)
    }
  }

  // MARK: - Timers and closing

  /// Retransmits requests or gives them up, and refreshes the allocation and the permissions and
  /// channels in use.
  private mutating func runTimers() {
    let (again, silent) = transactions.retransmitDue(at: now)
    for bytes in again { transmit(bytes) }
    for purpose in silent { fail(purpose, code: 0, reason: "the server does not answer") }
    updateDeadline()
    guard allocation.isThere else { return }
    if allocation.consumeDue(at: now) { request(.refresh) }
    let prolonged = permissions.refreshDue(at: now) { [channels] in channels.reach($0) }
    for ip in prolonged { request(.permission(ip)) }
    for number in channels.refreshDue(at: now) { request(.channel(number)) }
    refreshMapping()
    updateDeadline()
  }

  private mutating func refreshMapping() {
    guard mapping.isDue(at: now) else { return }
    if mapping.isSilent(at: now) {
      transmit(STUNWriter(.indication, transactionID: STUNTransactionID(from: entropy)).finish())
    }
    mapping.settle()
  }

  /// Informs the server that the allocation is no longer needed; if the message is lost, the
  /// allocation expires.
  private mutating func close() {
    if allocation.isThere {
      transmit(message(.refresh, STUNTransactionID(from: entropy), lifetime: 0))
    }
    end()
  }

  private mutating func end() {
    allocation.end()
    transactions.removeAll()
    permissions.removeAll()
    channels.removeAll()
    mapping.end()
    deadline = nil
  }
}

// MARK: - Interface

/// The user name and password for a TURN server (RFC 8489 section 9.2).
package struct TURNCredentials: Hashable, Sendable {
  package var username: String
  package var password: String

  package init(username: String, password: String) {
    self.username = username
    self.password = password
  }
}

extension TURNClient {
  package enum Input {
    /// Request the allocation.
    case begin
    /// A message from the server: STUN other than Binding, or channel data.
    case received([UInt8])
    /// Permit a peer before anything is sent to it.
    case permit(IPAddress)
    /// Request a channel to a peer, because much data will be sent to it.
    case bind(SocketAddress)
    /// Send data to a peer, on a channel if one is bound, otherwise in an indication.
    case send([UInt8], to: SocketAddress)
    /// Verify that the allocation still exists, because peers are silent.
    case verify
    case deadline
    /// Ask the server to end the allocation, and stop.
    case close
  }

  /// A request or event from the client.
  package enum Output {
    /// Send a message to the server.
    case send([UInt8])
    /// The allocation exists: its address, and the local address as seen by the server.
    case allocated(relayed: SocketAddress, mapped: SocketAddress?)
    /// Data from a peer, unwrapped from channel data or an indication.
    case received([UInt8], from: SocketAddress)
    /// The server refuses permission for this peer.
    case refused(IPAddress)
    /// Another server should be used over the same transport, with a new client.
    case redirected(SocketAddress)
    /// The allocation failed or ended; the code is 0 unless the server answered with an error.
    case failed(code: UInt16, reason: String)
  }
}

/// Intervals for clients of STUN and TURN servers.
package enum TURNTiming {
  /// The time that each request waits for its response: 250 ms, doubling to 2 s.
  package static let queryWaits = [250, 500, 1000, 2000, 2000, 2000, 2000]
    .map { Interval.milliseconds($0) }
  /// The time after which a permission or channel is refreshed; permissions last 5 minutes
  /// (RFC 8656 section 9).
  static let permissionRefresh = Interval.seconds(240)
  /// The time between two keep-alive messages to a server while there is nothing to relay.
  static let keepAlive = Interval.seconds(25)
}
