import Tape
import Wire

/// A UDP socket of a peer.
struct OpenSocket {
  let socket: UDPSocket
  let resident: Resident
}

/// A connection of a peer, and the number of its request.
struct OpenStream {
  let stream: StreamSocket
  let resident: Resident
  let port: SocketSet
  /// Nil for one that the peer opened.
  let id: UInt32?
}

/// A socket that listens for connections to a peer.
struct OpenListener {
  let socket: ListenSocket
  let resident: Resident
  let port: SocketSet
}

/// A loop's open sockets, by their poller tags.
struct OpenSockets {
  private let poller: Poller
  private var sockets: [Poller.Tag: OpenSocket] = [:]
  private var streams: [Poller.Tag: OpenStream] = [:]
  private var listeners: [Poller.Tag: OpenListener] = [:]
  private var lastTag: Poller.Tag

  /// - Parameter tag: the last tag in use elsewhere.
  init(_ poller: Poller, after tag: Poller.Tag) {
    self.poller = poller
    lastTag = tag
  }

  func socket(_ tag: Poller.Tag) -> OpenSocket? { sockets[tag] }
  func stream(_ tag: Poller.Tag) -> OpenStream? { streams[tag] }
  func listener(_ tag: Poller.Tag) -> OpenListener? { listeners[tag] }

  /// A new tag.
  mutating func nextTag() -> Poller.Tag {
    lastTag += 1
    return lastTag
  }

  // MARK: Opening

  /// Adds and watches a socket of a peer.
  mutating func add(_ entry: OpenSocket) throws(SystemError) -> Poller.Tag {
    let tag = try watch(entry.socket.descriptor)
    sockets[tag] = entry
    return tag
  }

  /// Adds and watches a connection of a peer.
  mutating func add(_ entry: OpenStream) throws(SystemError) -> Poller.Tag {
    let tag = try watch(entry.stream.descriptor)
    streams[tag] = entry
    return tag
  }

  /// Adds and watches a listening socket of a peer.
  mutating func add(_ entry: OpenListener) throws(SystemError) -> Poller.Tag {
    let tag = try watch(entry.socket.descriptor)
    listeners[tag] = entry
    return tag
  }

  private mutating func watch(_ descriptor: Int32) throws(SystemError) -> Poller.Tag {
    let tag = nextTag()
    try poller.add(descriptor, tag: tag)
    return tag
  }

  // MARK: Closing

  /// Forgets a socket, which closes it.
  mutating func closeSocket(_ tag: Poller.Tag) {
    guard let entry = sockets.removeValue(forKey: tag) else { return }
    poller.remove(entry.socket.descriptor)
  }

  /// Forgets a connection, which closes it.
  mutating func closeStream(_ tag: Poller.Tag) {
    guard let entry = streams.removeValue(forKey: tag) else { return }
    poller.remove(entry.stream.descriptor)
  }

  /// Forgets a listener, which closes it; accepted connections stay.
  mutating func closeListener(_ tag: Poller.Tag) {
    guard let entry = listeners.removeValue(forKey: tag) else { return }
    poller.remove(entry.socket.descriptor)
  }
}
