import CSockets
import ICE
import Peer
import Wire

/// Resolves and publishes mDNS names over one loop's multicast sockets.
///
/// The sockets are opened for the first name, so that sessions without such names send nothing.
final class MulticastPort {
  /// Receives a name's addresses.
  typealias Answer = ([IPAddress]) -> Void

  private var names = MulticastNames()
  private var outbox = Outbox<MulticastNames.Output>()
  private var waiting: [UInt64: Answer] = [:]
  private var lastID: UInt64 = 0
  private var sockets: [(tag: Poller.Tag, descriptor: Int32, group: IPAddress)] = []
  /// The interfaces to send on, by family and without duplicates.
  private var links: [(isIPv4: Bool, index: UInt32)] = []
  private var networks: [LinkNetwork] = []

  deinit { for socket in sockets { _ = csockets_close(socket.descriptor) } }

  /// When the next turn is due, on the monotonic clock.
  var wakeNanoseconds: Int64? { names.deadline?.nanoseconds }

  /// Whether the sockets are open; the system may forbid opening them.
  var isOpen: Bool { !sockets.isEmpty }

  /// Opens the sockets if necessary, and watches them under new tags.
  func open(_ poller: Poller, tags: () -> Poller.Tag) {
    guard sockets.isEmpty else { return }
    for group in [MulticastNames.group, MulticastNames.groupIPv6] {
      let descriptor = csockets_multicast_open(group.isIPv4 ? 4 : 6, MulticastNames.port)
      guard descriptor >= 0 else { continue }
      let tag = tags()
      guard (try? poller.add(descriptor, tag: tag)) != nil else {
        _ = csockets_close(descriptor)
        continue
      }
      sockets.append((tag, descriptor, group))
    }
    joinLinks()
  }

  /// Joins the multicast groups on all current interfaces.
  func joinLinks() {
    guard isOpen else { return }
    links = []
    networks = []
    for interface in LocalInterface.all() {
      if let mask = interface.mask { networks.append(LinkNetwork(interface.address, mask: mask)) }
      let link = (isIPv4: interface.address.isIPv4, index: interface.index)
      if !links.contains(where: { $0 == link }) { links.append(link) }
    }
    for socket in sockets {
      var group = csockets_address(SocketAddress(socket.group, port: MulticastNames.port))
      for link in links where link.isIPv4 == socket.group.isIPv4 {
        _ = csockets_multicast_join(socket.descriptor, &group, link.index)
      }
    }
  }

  /// Resolves a name and passes its addresses to `answer`, now or later.
  func resolve(_ name: String, _ answer: @escaping Answer) {
    lastID += 1
    waiting[lastID] = answer
    step(.resolve(id: lastID, name))
  }

  /// Answers queries for a name until `withdraw` is called for its owner.
  func publish(_ name: String, _ ip: IPAddress, owner: MediaLoop.PeerKey) {
    step(.publish(name, ip, owner: owner))
  }

  func withdraw(owner: MediaLoop.PeerKey) { step(.withdraw(owner: owner)) }

  /// Runs whatever is due.
  func runTurn() {
    if let due = wakeNanoseconds, due <= csockets_monotonic_ns() { step(.deadline) }
  }

  /// Reads from a socket; returns false if the tag is not one of this port's.
  func receive(_ tag: Poller.Tag, into batch: ReceiveBatch) -> Bool {
    guard let socket = sockets.first(where: { $0.tag == tag }) else { return false }
    let count = batch.receive(from: socket.descriptor)
    for index in 0..<count {
      guard let entry = batch.entry(at: index),
        MulticastNames.isOnLink(entry.source.ip, of: networks)
      else { continue }
      step(.received(entry.bytes, from: entry.source))
    }
    return true
  }

  private func step(_ input: MulticastNames.Input) {
    names.step(input, at: Instant(nanoseconds: csockets_monotonic_ns()), into: &outbox)
    while let output = outbox.next() {
      switch output {
      case .multicast(let bytes): multicast(bytes)
      case .unicast(let bytes, let asker): unicast(bytes, to: asker)
      case .resolved(let id, let addresses): waiting.removeValue(forKey: id)?(addresses)
      }
    }
  }

  // Ignore failures on a link, because the query is repeated anyway.

  private func multicast(_ bytes: [UInt8]) {
    for socket in sockets {
      var group = csockets_address(SocketAddress(socket.group, port: MulticastNames.port))
      for link in links where link.isIPv4 == socket.group.isIPv4 {
        _ = bytes.withUnsafeBufferPointer {
          csockets_multicast_send(
            socket.descriptor, &group, link.index, $0.baseAddress, $0.count)
        }
      }
    }
  }

  private func unicast(_ bytes: [UInt8], to asker: SocketAddress) {
    guard let socket = sockets.first(where: { $0.group.isIPv4 == asker.ip.isIPv4 }) else { return }
    var target = csockets_address(asker)
    _ = bytes.withUnsafeBufferPointer {
      csockets_udp_send(socket.descriptor, &target, 0, $0.baseAddress, $0.count)
    }
  }
}
