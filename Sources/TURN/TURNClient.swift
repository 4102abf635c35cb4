import STUN
package import Wire

/// The name and password that a TURN server knows a client by (RFC 8489 section 9.2).
package struct TURNCredentials: Hashable, Sendable {
  package var username: String
  package var password: String

  package init(username: String, password: String) {
    self.username = username
    self.password = password
  }
}

/// One allocation on a TURN server over one transport (RFC 8656), without I/O.
///
/// Its owner carries messages between it and the server; the first one follows `begin`. Data to a
/// peer goes as an indication until `bind` has led to a channel; what is sent before the server
/// lets the peer in waits for that.
package struct TURNClient: Machine {
  /// What can happen to a client.
  package enum Input {
    /// Asks for the allocation.
    case begin
    /// A message from the server: STUN other than Binding, or channel data.
    case received([UInt8])
    /// Lets a peer in before anything is sent to it.
    case permit(IPAddress)
    /// Wants a channel to a peer, because much will be sent to it.
    case bind(SocketAddress)
    /// Data for a peer.
    case send([UInt8], to: SocketAddress)
    /// Asks the server whether the allocation is still there, because peers are silent.
    case verify
    /// The deadline was reached.
    case deadline
    /// Ends the allocation.
    case close
  }

  /// What a client wants done or tells.
  package enum Output {
    /// A message to the server.
    case send([UInt8])
    /// The allocation is there: its address, and the own address as the server saw it.
    case allocated(relayed: SocketAddress, mapped: SocketAddress?)
    /// Data of a peer.
    case received([UInt8], from: SocketAddress)
    /// The server does not let this peer in.
    case refused(IPAddress)
    /// Another server is to be asked instead, over the same transport; a new client does that.
    case redirected(SocketAddress)
    /// There is no allocation, or none any longer; the code is 0 for silence.
    case failed(code: UInt16, reason: String)
  }

  enum State {
    case idle, allocating, allocated, over
  }

  /// What a request is about.
  enum Purpose: Equatable {
    case allocate
    case refresh
    case permission(IPAddress)
    case channel(UInt16)
  }

  /// A request that waits for its response.
  struct Transaction {
    let purpose: Purpose
    let id: STUNTransactionID
    let bytes: [UInt8]
    /// How often it was sent.
    var attempts = 1
    /// When it is sent again, or given up.
    var dueAt: Instant
    /// How often it was made anew because of the credentials.
    let renewals: Int
  }

  /// An address whose traffic the server lets in.
  struct Permission {
    let ip: IPAddress
    var isGranted = false
    var isRefused = false
    /// When it is asked for again, if it is in use.
    var refreshAt: Instant?
    var usedAt: Instant
    /// Data that waits until the server has agreed.
    var waiting: [(bytes: [UInt8], peer: SocketAddress)] = []
  }

  /// A channel to a peer.
  struct Channel {
    let number: UInt16
    let peer: SocketAddress
    var isBound = false
    var refreshAt: Instant?
  }

  static let permissionsMaximum = 100
  static let channelsMaximum = 64
  static let waitingMaximum = 8

  /// The allocated address, while there is one.
  package internal(set) var relayed: SocketAddress?
  package internal(set) var deadline: Instant?

  let credentials: TURNCredentials
  let entropy: EntropyStream
  /// Whether the transport loses nothing, so that nothing is sent twice (RFC 8489 section 6.2.2).
  let isReliable: Bool
  /// Whether an IPv6 address is asked for; a server that has none gives an IPv4 one.
  var wantsIPv6: Bool
  var realm: String?
  var nonce: [UInt8] = []
  var key: [UInt8]?

  var state = State.idle
  var transactions: [Transaction] = []
  var permissions: [Permission] = []
  var channels: [Channel] = []
  var refreshAt: Instant?
  var keepAliveAt: Instant?
  var sentAt = Instant.zero
  /// The instant and the outputs of the step under way.
  var now = Instant.zero
  var outbox = Outbox<Output>()

  /// Creates a client that waits for `begin`.
  package init(
    credentials: TURNCredentials, isReliable: Bool = false, wantsIPv6: Bool = false,
    entropy: EntropyStream
  ) {
    self.credentials = credentials
    self.isReliable = isReliable
    self.wantsIPv6 = wantsIPv6
    self.entropy = entropy
  }

  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    guard state != .over else { return }
    self.now = now
    swap(&self.outbox, &outbox)
    switch input {
    case .begin: if state == .idle { allocate() }
    case .received(let bytes): receive(bytes)
    case .permit(let ip): _ = permission(for: ip)
    case .bind(let peer): bind(peer)
    case .send(let bytes, let peer): send(bytes, to: peer)
    case .verify: verify()
    case .deadline: runTimers()
    case .close: close()
    }
    swap(&self.outbox, &outbox)
  }

  /// Whether the outcome of the allocation is open.
  package var isAllocating: Bool { state == .allocating || state == .idle }

  /// Whether the allocation is there.
  package var isAllocated: Bool { state == .allocated }

  // MARK: Data

  private mutating func send(_ bytes: [UInt8], to peer: SocketAddress) {
    guard state == .allocated else { return }
    for channel in channels where channel.isBound && channel.peer == peer {
      transmit(ChannelData.frame(bytes, channel: channel.number))
      return
    }
    guard let index = permission(for: peer.ip), !permissions[index].isRefused else { return }
    permissions[index].usedAt = now
    guard permissions[index].isGranted else {
      if permissions[index].waiting.count < TURNClient.waitingMaximum {
        permissions[index].waiting.append((bytes, peer))
      }
      return
    }
    indicate(bytes, to: peer)
  }

  mutating func indicate(_ bytes: [UInt8], to peer: SocketAddress) {
    var writer = STUNWriter(
      .indication, method: .send, transactionID: STUNTransactionID(from: entropy))
    writer.xorPeerAddress(peer)
    writer.attribute(.data, bytes)
    transmit(writer.finish(fingerprint: false))
  }

  mutating func transmit(_ bytes: [UInt8]) {
    sentAt = now
    outbox.append(.send(bytes))
  }

  private mutating func receive(_ bytes: [UInt8]) {
    if let (number, range) = ChannelData.read(bytes.span.bytes) {
      for channel in channels where channel.number == number {
        outbox.append(.received(Array(bytes[range]), from: channel.peer))
        return
      }
      return
    }
    guard let message = try? STUNMessage(bytes), message.hasValidFingerprint != false else {
      return
    }
    switch (message.messageClass, message.method) {
    case (.indication, .data):
      guard let peer = message.peerAddress, let data = message.data,
        let index = permissions.firstIndex(where: { $0.ip == peer.ip && !$0.isRefused })
      else { return }
      permissions[index].usedAt = now
      outbox.append(.received(data, from: peer))
    case (.success, _), (.error, _): takeResponse(message)
    default: break
    }
  }
}
