import Glibc
package import Peer
package import Tape
package import Wire

/// One peer's sockets; few enough for a linear search.
final class SocketSet: DatagramPort {
  private let key: MediaLoop.PeerKey
  /// Unowned, because the thread outlives its peers.
  private unowned let thread: LoopThread
  private let batch: SendBatch
  private var sockets: [(tag: Poller.Tag, socket: UDPSocket)] = []
  /// Datagrams that no open socket or connection could send, not yet reported.
  private var refusals: [SendFailure] = []
  private var listeners: [(tag: Poller.Tag, socket: ListenSocket)] = []
  private var streams: [(tag: Poller.Tag, stream: StreamSocket)] = []

  /// Whether the system refused a socket since the peer was last informed of its addresses.
  var wasRefused = false

  init(key: MediaLoop.PeerKey, thread: LoopThread) {
    self.key = key
    self.thread = thread
    batch = thread.outgoing
  }

  // MARK: Opening

  func bind(_ ip: IPAddress) throws(SystemError) -> SocketAddress {
    var opened: (tag: Poller.Tag, socket: UDPSocket)
    do throws(SystemError) {
      opened = try thread.open(on: ip, for: key)
    } catch {
      wasRefused = true
      throw error
    }
    // An endpoint must identify a single socket, but the kernel may assign the same port to UDP and
    // to TCP.
    while isTCP(opened.socket.local) {
      let taken = opened.tag
      defer { thread.close(taken) }
      opened = try thread.open(on: ip, for: key)
    }
    sockets.append(opened)
    return opened.socket.local
  }

  func listen(_ ip: IPAddress) throws(SystemError) -> SocketAddress {
    var opened = try thread.listen(on: ip, for: key, port: self)
    while !isFree(opened.socket.local) {
      let taken = opened.tag
      defer { thread.closeListener(taken) }
      opened = try thread.listen(on: ip, for: key, port: self)
    }
    listeners.append(opened)
    return opened.socket.local
  }

  func openStream(_ target: StreamTarget, id: UInt32) throws(SystemError) {
    streams.append(try thread.connect(target, id: id, for: key, port: self))
  }

  /// Adds a connection accepted by a listener.
  func adopt(_ tag: Poller.Tag, _ stream: StreamSocket) { streams.append((tag, stream)) }

  /// Returns whether no UDP socket has this local endpoint, so that a TCP socket can use it.
  func isFree(_ local: SocketAddress) -> Bool {
    !sockets.contains { $0.socket.local == local }
  }

  private func isTCP(_ local: SocketAddress) -> Bool {
    streams.contains { $0.stream.local == local } || listeners.contains { $0.socket.local == local }
  }

  // MARK: Closing

  func close(_ local: SocketAddress) {
    batch.send()
    if let index = listeners.firstIndex(where: { $0.socket.local == local }) {
      thread.closeListener(listeners.remove(at: index).tag)
    } else if let index = streams.firstIndex(where: { $0.stream.isOpen && $0.stream.local == local }
    ) {
      thread.closeStream(streams.remove(at: index).tag)
    } else if let index = sockets.firstIndex(where: { $0.socket.local == local }) {
      thread.close(sockets.remove(at: index).tag)
    }
  }

  func closeStream(_ local: SocketAddress, _ remote: SocketAddress) {
    guard let index = streamIndex(local, remote) else { return }
    thread.closeStream(streams.remove(at: index).tag)
  }

  /// Removes a connection that has ended.
  func forget(_ tag: Poller.Tag) { streams.removeAll { $0.tag == tag } }

  func closeAll() {
    batch.send()
    for entry in sockets { thread.close(entry.tag) }
    for entry in listeners { thread.closeListener(entry.tag) }
    for entry in streams { thread.closeStream(entry.tag) }
    (sockets, listeners, streams) = ([], [], [])
  }

  // MARK: Sending

  func send(_ datagram: Datagram) {
    for entry in sockets where entry.socket.local == datagram.local {
      return batch.add(
        datagram.bytes, to: datagram.remote, over: entry.socket, codePoint: datagram.codePoint)
    }
    guard let index = streamIndex(datagram.local, datagram.remote) else {
      refusals.append(SendFailure(datagram, code: EBADF))
      return
    }
    let entry = streams[index]
    entry.stream.send(datagram.bytes)
    thread.watch(entry.tag)
  }

  func flush() -> [SendFailure] {
    let refused = batch.flush()
    guard !refusals.isEmpty else { return refused }
    defer { refusals = [] }
    return refusals + refused
  }

  private func streamIndex(_ local: SocketAddress, _ remote: SocketAddress) -> Int? {
    streams.firstIndex {
      $0.stream.isOpen && $0.stream.local == local && $0.stream.remote == remote
    }
  }

  // MARK: Names

  func resolve(_ name: String, id: UInt32) { thread.resolve(name, id: id, for: key) }

  func publish(_ name: String, _ ip: IPAddress) { thread.publish(name, ip, for: key) }
}

/// A driver's access to the network for its peer.
package protocol DatagramPort: AnyObject {
  /// Opens a UDP socket on an address and a free port.
  func bind(_ ip: IPAddress) throws(SystemError) -> SocketAddress
  /// Opens a connection without waiting until it is established; the outcome arrives as an input
  /// with this `id`.
  func openStream(_ target: StreamTarget, id: UInt32) throws(SystemError)
  /// Listens for connections on an address and a free port.
  func listen(_ ip: IPAddress) throws(SystemError) -> SocketAddress
  /// Closes one of the connections that share a local endpoint.
  func closeStream(_ local: SocketAddress, _ remote: SocketAddress)
  /// Closes the socket or connection bound to an endpoint.
  func close(_ local: SocketAddress)
  /// Queues a datagram, which is sent immediately or with the next `flush`.
  func send(_ datagram: Datagram)
  /// Sends queued datagrams, and returns the failures since the previous call.
  func flush() -> [SendFailure]
  /// Resolves a name; the answer arrives as an input.
  func resolve(_ name: String, id: UInt32)
  /// Answers mDNS queries for a name with an address until the peer ends.
  func publish(_ name: String, _ ip: IPAddress)
}

/// A burst of inputs, during which datagrams wait briefly for more datagrams on the same path.
struct DatagramBurst {
  /// The longest time that a datagram waits.
  static let most = Interval.microseconds(300)

  private var begun: Instant?

  var isOpen: Bool { begun != nil }

  mutating func begin(at now: Instant) { begun = now }
  mutating func end() { begun = nil }

  /// Returns whether waiting datagrams must be sent now, and if so restarts the wait.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let begun, now - begun > DatagramBurst.most else { return false }
    self.begun = now
    return true
  }
}
