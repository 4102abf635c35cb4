import Glibc
import Peer
import Tape
import Wire

/// The sockets of one peer; few enough for a linear search.
final class SocketSet: DatagramPort {
  private let key: MediaLoop.PeerKey
  /// The thread outlives its peers.
  private unowned let thread: LoopThread
  private let batch: SendBatch
  private var sockets: [(tag: Poller.Tag, socket: UDPSocket)] = []
  /// Failures of connections.
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
    // An end point identifies one socket, but the kernel numbers UDP and TCP ports separately.
    while isTCP(opened.socket.local) {
      let taken = opened.tag
      opened = try thread.open(on: ip, for: key)
      thread.close(taken)
    }
    sockets.append(opened)
    return opened.socket.local
  }

  func listen(_ ip: IPAddress) throws(SystemError) -> SocketAddress {
    var opened = try thread.listen(on: ip, for: key, port: self)
    while !isFree(opened.socket.local) {
      let taken = opened.tag
      opened = try thread.listen(on: ip, for: key, port: self)
      thread.closeListener(taken)
    }
    listeners.append(opened)
    return opened.socket.local
  }

  func openStream(_ target: StreamTarget, id: UInt32) throws(SystemError) {
    streams.append(try thread.connect(target, id: id, for: key, port: self))
  }

  /// Adds a connection accepted by a listener.
  func adopt(_ tag: Poller.Tag, _ stream: StreamSocket) { streams.append((tag, stream)) }

  /// Whether no other socket has a connection's local end, so that it identifies the connection.
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

  /// Records that a connection is gone.
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
