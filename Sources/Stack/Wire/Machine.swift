import HeapModule

/// A deterministic state machine; the client stack and each of its layers are machines.
///
/// A machine has no clock, sockets, threads or randomness of its own. Everything that could differ
/// between two runs arrives as an input with its instant, and one call turns that input completely
/// into outputs. The same inputs always produce the same outputs and deadlines, which makes a take
/// replayable.
public protocol Machine: ~Copyable {
  associatedtype Input
  /// A request or report from the machine.
  associatedtype Output

  /// Applies one input at an instant and appends all resulting outputs.
  ///
  /// Instants never decrease; the driver ensures that.
  mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>)

  /// When the machine wants its deadline input; nil if it waits for nothing.
  var deadline: Instant? { get }
}

/// The outputs of one step, in order.
///
/// A driver removes them all at once, or one at a time with `next`, which moves the output so that
/// its bytes can be changed in place.
@frozen
public struct Outbox<Output> {
  /// Pending outputs are at `head..<tail`; the other slots are empty and reused by later steps.
  @usableFromInline
  var places: [Output?] = []
  @usableFromInline
  var head = 0
  @usableFromInline
  var tail = 0

  /// Creates an empty outbox.
  @inlinable
  public init() {}

  /// Whether the outbox has no pending outputs.
  @inlinable
  public var isEmpty: Bool { head == tail }

  /// Pending outputs, oldest first.
  @inlinable
  public var outputs: [Output] { places[head..<tail].compactMap { $0 } }

  /// Adds an output after the pending ones.
  @inlinable
  public mutating func append(_ output: consuming Output) {
    if tail < places.count {
      places[tail] = output
    } else {
      places.append(output)
    }
    tail += 1
  }

  /// Removes and returns the oldest output, or nil if there is none; outputs appended between two
  /// calls follow the pending ones.
  @inlinable
  public mutating func next() -> Output? {
    guard head < tail else {
      removeAll()
      return nil
    }
    defer { head += 1 }
    return places[head].take()
  }

  /// Empties the outbox but keeps its storage.
  @inlinable
  public mutating func removeAll() {
    while head < tail {
      places[head] = nil
      head += 1
    }
    head = 0
    tail = 0
  }

  /// Returns the outputs and leaves the outbox empty.
  @inlinable
  public mutating func drain() -> [Output] {
    guard head < tail else {
      removeAll()
      return []
    }
    return [Output](capacity: tail - head) { taken in
      // Outputs are moved, because copying one would retain each of its parts.
      while let output = next() { taken.append(output) }
    }
  }
}

/// Returns the earlier of two deadlines; nil means none.
@inlinable
package func earliest(_ left: Instant?, _ right: Instant?) -> Instant? {
  guard let left else { return right }
  guard let right else { return left }
  return min(left, right)
}

// MARK: - SystemRequest

/// A peer's request to the system; the layer that makes it, the driver and the take all use this
/// form.
package enum SystemRequest: Hashable, Sendable {
  /// Open a UDP socket on this address, at any port.
  case bindSocket(id: UInt32, IPAddress)
  /// Listen for connections on this address, at any port; answered like a UDP socket.
  ///
  /// Each connection is reported by `streamAccepted`.
  case listen(id: UInt32, IPAddress)
  /// Open a TCP connection; answered like a UDP socket.
  ///
  /// Its messages are datagrams between its local and its remote address. If it breaks, a failed
  /// send is reported.
  case openStream(id: UInt32, StreamTarget)
  /// Close a socket, or the connection to a server.
  case closeSocket(SocketAddress)
  /// Close a connection to the peer, opened or accepted.
  case closeStream(local: SocketAddress, remote: SocketAddress)
  case resolveName(id: UInt32, String)
  /// Answer multicast queries for a name (RFC 6762) with an address, until the peer is closed.
  case publishName(String, IPAddress)
}

/// The system's answer to a `SystemRequest`, matched by id, or an event.
package enum SystemAnswer: Hashable, Sendable {
  case socketBound(id: UInt32, SocketAddress)
  /// The socket could not be opened, or failed later; `code` is the errno.
  case socketFailed(id: UInt32, code: Int32)
  /// The socket listening at the local address accepted a connection.
  case streamAccepted(local: SocketAddress, remote: SocketAddress)
  /// The name's addresses; empty if there are none.
  case nameResolved(id: UInt32, [IPAddress])
}

/// The kind of network behind an interface, named as in W3C's provisional statistics (networkType);
/// files may contain any text.
package struct NetworkType: RawRepresentable, Hashable, Sendable {
  package let rawValue: String

  package init(rawValue: String) { self.rawValue = rawValue }

  package static let ethernet = NetworkType(rawValue: "ethernet")
  package static let wifi = NetworkType(rawValue: "wifi")
  package static let cellular = NetworkType(rawValue: "cellular")
  package static let bluetooth = NetworkType(rawValue: "bluetooth")
  package static let vpn = NetworkType(rawValue: "vpn")
  /// Loopback, or not reported by the system.
  package static let unknown = NetworkType(rawValue: "unknown")
}

// MARK: - DueQueue

/// Deadlines of many items; a change takes logarithmic time instead of a scan.
///
/// The owner knows when each item is due and reports every change to an earlier time. Later times
/// need not be reported, because the queue asks again when the earlier one is reached.
package struct DueQueue: Sendable {
  private struct Entry: Comparable, Sendable {
    var at: Instant
    var index: Int

    static func < (left: Entry, right: Entry) -> Bool {
      left.at != right.at ? left.at < right.at : left.index < right.index
    }
  }

  private var entries = Heap<Entry>()
  /// The valid entry of each item; its other entries in the heap are void.
  private var queued: [Instant?] = []

  package init() {}

  /// Schedules an item; a time later than the queued one is ignored.
  package mutating func schedule(_ index: Int, at due: Instant?) {
    guard let due else { return }
    while queued.count <= index { queued.append(nil) }
    if let earlier = queued[index], earlier <= due { return }
    queued[index] = due
    entries.insert(Entry(at: due, index: index))
  }

  /// Removes the items due by `now` and returns their indices, ascending.
  /// - Parameter current: returns when an item is really due.
  package mutating func removeDue(until now: Instant, _ current: (Int) -> Instant?) -> [Int] {
    var due: [Int] = []
    while let first = entries.min, first.at <= now {
      guard remove(first) else { continue }
      guard let at = current(first.index) else { continue }
      if at <= now { due.append(first.index) } else { schedule(first.index, at: at) }
    }
    due.sort()
    return due
  }

  /// Returns when the first item is due; nil if none is scheduled.
  package mutating func first(_ current: (Int) -> Instant?) -> Instant? {
    while let first = entries.min {
      let isVoid = queued[first.index] != first.at
      let at = isVoid ? nil : current(first.index)
      if at == first.at { return at }
      _ = remove(first)
      if !isVoid { schedule(first.index, at: at) }
    }
    return nil
  }

  /// Removes the first entry; returns false if it was void.
  private mutating func remove(_ first: Entry) -> Bool {
    _ = entries.popMin()
    guard queued[first.index] == first.at else { return false }
    queued[first.index] = nil
    return true
  }
}
