import Glibc
import Peer
import Wire

/// The sockets of one peer; there are few, so that they are searched in order.
final class SocketSet: DatagramPort {
  private let key: MediaLoop.PeerKey
  /// The thread outlives its peers.
  private unowned let thread: LoopThread
  private let batch: SendBatch
  private var sockets: [(tag: Poller.Tag, socket: UDPSocket)] = []
  /// What connections refused.
  private var refusals: [PathRefusal] = []
  private var streams: [(tag: Poller.Tag, stream: StreamSocket)] = []

  init(key: MediaLoop.PeerKey, thread: LoopThread) {
    self.key = key
    self.thread = thread
    batch = thread.outgoing
  }

  func bind(_ ip: IPAddress) throws(SystemError) -> SocketAddress {
    var opened = try thread.open(on: ip, for: key)
    // An end point names one socket; the kernel counts UDP and TCP ports apart.
    while streams.contains(where: { $0.stream.local == opened.socket.local }) {
      let taken = opened.tag
      opened = try thread.open(on: ip, for: key)
      thread.close(taken)
    }
    sockets.append(opened)
    return opened.socket.local
  }

  func openStream(_ target: StreamTarget, id: UInt32) throws(SystemError) {
    streams.append(try thread.connect(target, id: id, for: key, port: self))
  }

  /// Whether the own end of a connection is that of no socket: it names the connection.
  func isFree(_ local: SocketAddress) -> Bool {
    !sockets.contains { $0.socket.local == local }
  }

  func close(_ local: SocketAddress) {
    batch.send()
    if let index = streams.firstIndex(where: { $0.stream.isOpen && $0.stream.local == local }) {
      return thread.closeStream(streams.remove(at: index).tag)
    }
    guard let index = sockets.firstIndex(where: { $0.socket.local == local }) else { return }
    thread.close(sockets.remove(at: index).tag)
  }

  func closeAll() {
    batch.send()
    for entry in sockets { thread.close(entry.tag) }
    sockets = []
    for entry in streams { thread.closeStream(entry.tag) }
    streams = []
  }

  func send(_ datagram: Datagram) {
    for entry in sockets where entry.socket.local == datagram.local {
      return batch.add(datagram.bytes, to: datagram.remote, over: entry.socket)
    }
    var code = EBADF
    for entry in streams where entry.stream.isOpen && entry.stream.local == datagram.local {
      code = entry.stream.send(datagram.bytes)
      thread.watch(entry.tag)
    }
    guard code != 0 else { return }
    refusals.append(PathRefusal(local: datagram.local, remote: datagram.remote, code: code))
  }

  func flush() -> [PathRefusal] {
    let refused = batch.flush()
    guard !refusals.isEmpty else { return refused }
    defer { refusals = [] }
    return refusals + refused
  }

  func resolve(_ name: String, id: UInt32) { thread.resolve(name, id: id, for: key) }
}
