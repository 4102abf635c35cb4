import NIOCore
import Synchronization

/// The connections of a server, to limit and close them.
///
/// If there are too many, the one that has waited longest for its client is closed: a client that
/// opens hundreds and sends nothing loses those, and keeps nobody out.
final class OpenConnections: Sendable {
  private struct Entry {
    let channel: any Channel
    let client: String
    /// Since when the client is awaited; nil while it is answered.
    var waiting: UInt64?
  }

  private struct State {
    var entries: [ObjectIdentifier: Entry] = [:]
    var counts: [String: Int] = [:]
    var moment: UInt64 = 0
    var isClosed = false

    mutating func next() -> UInt64 {
      moment += 1
      return moment
    }

    /// Removes the connection that has waited longest, of one client or of all.
    mutating func removeOldest(of client: String?) -> (any Channel)? {
      let waiting = entries.filter { entry in
        entry.value.waiting != nil && (client == nil || entry.value.client == client)
      }
      let oldest = waiting.min { $0.value.waiting ?? 0 < $1.value.waiting ?? 0 }
      guard let oldest else { return nil }
      remove(oldest.key)
      return oldest.value.channel
    }

    mutating func remove(_ id: ObjectIdentifier) {
      guard let entry = entries.removeValue(forKey: id) else { return }
      let count = counts[entry.client, default: 1] - 1
      counts[entry.client] = count > 0 ? count : nil
    }
  }

  private let state = Mutex(State())
  private let maximum: Int
  private let clientMaximum: Int

  /// - Parameters:
  ///   - maximum: the most connections.
  ///   - clientMaximum: the most per client address.
  init(maximum: Int, clientMaximum: Int) {
    self.maximum = maximum
    self.clientMaximum = clientMaximum
  }

  /// Adds a connection, possibly replacing another; false if all others are being answered.
  func admit(_ channel: any Channel) -> Bool {
    let id = ObjectIdentifier(channel)
    let client = channel.remoteAddress?.ipAddress ?? ""
    let (isAdmitted, leaving) = state.withLock { state in
      guard !state.isClosed else { return (false, nil as (any Channel)?) }
      var leaving: (any Channel)?
      if state.counts[client, default: 0] >= clientMaximum {
        leaving = state.removeOldest(of: client)
        if leaving == nil { return (false, nil) }
      } else if state.entries.count >= maximum {
        leaving = state.removeOldest(of: nil)
        if leaving == nil { return (false, nil) }
      }
      state.entries[id] = Entry(channel: channel, client: client, waiting: state.next())
      state.counts[client, default: 0] += 1
      return (true, leaving)
    }
    leaving?.close(promise: nil)
    if isAdmitted {
      channel.closeFuture.whenComplete { [self] _ in state.withLock { $0.remove(id) } }
    }
    return isAdmitted
  }

  /// Records whether the client of a connection is being answered or awaited.
  func setAnswering(_ channel: any Channel, _ isAnswering: Bool) {
    state.withLock { state in
      let moment = isAnswering ? nil : state.next()
      state.entries[ObjectIdentifier(channel)]?.waiting = moment
    }
  }

  /// Accepts no more connections and returns the open ones.
  func closeAll() -> [any Channel] {
    state.withLock { state in
      state.isClosed = true
      return state.entries.values.map(\.channel)
    }
  }
}
