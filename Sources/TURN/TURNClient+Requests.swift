import STUN
import Wire

// Transactions with the server: credentials, retransmission, and what responses mean.
extension TURNClient {
  /// How often one request is made anew with other credentials before it counts as refused.
  private static let renewalsMaximum = 3
  /// How long a server may take over a transport that loses nothing.
  private static let reliableWait = Interval.milliseconds(9500)
  /// An allocation that lasts longer is refreshed after this time nonetheless.
  private static let lifetimeMaximum: UInt32 = 3600

  mutating func allocate() {
    state = .allocating
    request(.allocate)
  }

  /// Sends a request and waits for its response (RFC 8489 section 6.2).
  mutating func request(_ purpose: Purpose, renewals: Int = 0) {
    let id = STUNTransactionID(from: entropy)
    let bytes = message(purpose, id)
    let wait = isReliable ? TURNClient.reliableWait : TURNTiming.queryWaits[0]
    transactions.removeAll { $0.purpose == purpose }
    transactions.append(
      Transaction(purpose: purpose, id: id, bytes: bytes, dueAt: now + wait, renewals: renewals))
    transmit(bytes)
    updateDeadline()
  }

  /// Sends again what was not answered in time, and gives up what was sent often enough.
  mutating func runTransactions() {
    for index in transactions.indices where transactions[index].dueAt <= now {
      let attempts = transactions[index].attempts
      guard !isReliable, attempts < TURNTiming.queryWaits.count else { continue }
      transactions[index].attempts += 1
      transactions[index].dueAt = now + TURNTiming.queryWaits[attempts]
      transmit(transactions[index].bytes)
    }
    let silent = transactions.filter { $0.dueAt <= now }.map(\.purpose)
    transactions.removeAll { $0.dueAt <= now }
    for purpose in silent { fail(purpose, code: 0, reason: "the server does not answer") }
  }

  mutating func takeResponse(_ message: STUNMessage) {
    guard let index = transactions.firstIndex(where: { $0.id == message.transactionID }) else {
      return
    }
    let transaction = transactions[index]
    // A success must prove that the server knows the password; an error that is wrong about it is
    // not believed either (RFC 8489 section 9.2.5).
    if let key, message.hasIntegrity || message.messageClass == .success {
      guard message.verifiesIntegrity(key: key) else { return }
    }
    guard message.messageClass == .success || message.errorCode != nil else { return }
    transactions.remove(at: index)
    if message.messageClass == .success {
      succeed(transaction.purpose, message)
    } else if let error = message.errorCode {
      takeError(error, transaction, message)
    }
    updateDeadline()
  }

  /// A refresh before its time: a server that has forgotten the allocation says so.
  mutating func verify() {
    guard state == .allocated, !transactions.contains(where: { $0.purpose == .refresh }) else {
      return
    }
    refreshAt = nil
    request(.refresh)
  }

  /// Tells the server once that the allocation is no longer needed; it ends by itself otherwise.
  mutating func close() {
    if state == .allocated {
      transmit(message(.refresh, STUNTransactionID(from: entropy), lifetime: 0))
    }
    end()
  }

  mutating func updateDeadline() {
    var next = earliest(refreshAt, keepAliveAt)
    for transaction in transactions { next = earliest(next, transaction.dueAt) }
    for permission in permissions { next = earliest(next, permission.refreshAt) }
    for channel in channels { next = earliest(next, channel.refreshAt) }
    deadline = next
  }

  // MARK: Messages

  private func message(
    _ purpose: Purpose, _ id: STUNTransactionID, lifetime: UInt32? = nil
  ) -> [UInt8] {
    var writer: STUNWriter
    switch purpose {
    case .allocate:
      writer = STUNWriter(.request, method: .allocate, transactionID: id)
      writer.requestedTransportUDP()
      if wantsIPv6 { writer.requestedFamily(isIPv4: false) }
    case .refresh:
      writer = STUNWriter(.request, method: .refresh, transactionID: id)
      if let lifetime { writer.lifetime(lifetime) }
    case .permission(let ip):
      writer = STUNWriter(.request, method: .createPermission, transactionID: id)
      writer.xorPeerAddress(SocketAddress(ip, port: 0))
    case .channel(let number):
      writer = STUNWriter(.request, method: .channelBind, transactionID: id)
      writer.channelNumber(number)
      for channel in channels where channel.number == number {
        writer.xorPeerAddress(channel.peer)
      }
    }
    if key != nil, let realm {
      writer.username(credentials.username)
      writer.attribute(.realm, Array(realm.utf8))
      writer.attribute(.nonce, nonce)
    }
    return writer.finish(key: key)
  }

  // MARK: Responses

  private mutating func succeed(_ purpose: Purpose, _ message: STUNMessage) {
    switch purpose {
    case .allocate:
      guard let relayed = message.relayedAddress, relayed.port != 0, !relayed.ip.isUnspecified
      else {
        fail(.allocate, code: 0, reason: "the server gives no address")
        return
      }
      state = .allocated
      self.relayed = relayed
      if !isReliable { keepAliveAt = now + TURNTiming.keepAlive }
      scheduleRefresh(message.lifetime)
      outbox.append(.allocated(relayed: relayed, mapped: message.mappedAddress))
    case .refresh: scheduleRefresh(message.lifetime)
    case .permission(let ip): grant(ip)
    case .channel(let number): bound(number)
    }
  }

  private mutating func scheduleRefresh(_ lifetime: UInt32?) {
    let seconds = Int64(min(lifetime ?? 600, TURNClient.lifetimeMaximum))
    refreshAt = now + .seconds(max(seconds - 60, seconds / 2, 1))
  }

  private mutating func takeError(
    _ error: STUNErrorCode, _ transaction: Transaction, _ message: STUNMessage
  ) {
    let mayRenew = transaction.renewals < TURNClient.renewalsMaximum
    switch error.code {
    // The first 401 tells the realm; a further one with the same realm is the server's last word.
    case 401 where mayRenew && message.realm != nil && message.realm != realm:
      learn(message)
      request(transaction.purpose, renewals: transaction.renewals + 1)
    case 438 where mayRenew && message.nonce != nil:
      learn(message)
      request(transaction.purpose, renewals: transaction.renewals + 1)
    case 440 where transaction.purpose == .allocate && wantsIPv6:
      wantsIPv6 = false
      request(.allocate, renewals: transaction.renewals)
    // The server knows no allocation, whatever was asked about it (RFC 8656 sections 8, 10, 12).
    case 437 where state == .allocated:
      end()
      outbox.append(.failed(code: error.code, reason: error.reason))
    case 300 where transaction.purpose == .allocate:
      guard let server = message.alternateServer, server.port != 0 else {
        fail(.allocate, code: error.code, reason: error.reason)
        return
      }
      end()
      outbox.append(.redirected(server))
    default: fail(transaction.purpose, code: error.code, reason: error.reason)
    }
  }

  private mutating func learn(_ message: STUNMessage) {
    if let told = message.realm, told != realm {
      realm = told
      key = stunLongTermKey(
        username: credentials.username, realm: told, password: credentials.password)
    }
    if let told = message.nonce { nonce = told }
  }

  private mutating func fail(_ purpose: Purpose, code: UInt16, reason: String) {
    switch purpose {
    case .allocate, .refresh:
      end()
      outbox.append(.failed(code: code, reason: reason))
    case .permission(let ip): refuse(ip)
    case .channel(let number):
      // Indications go on to work without it.
      channels.removeAll { $0.number == number && !$0.isBound }
      for index in channels.indices where channels[index].number == number {
        channels[index].isBound = false
        channels[index].refreshAt = nil
      }
    }
  }

  private mutating func end() {
    state = .over
    relayed = nil
    transactions = []
    permissions = []
    channels = []
    refreshAt = nil
    keepAliveAt = nil
    deadline = nil
  }
}
