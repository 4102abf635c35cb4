import HeapModule

/// Which channel sends next: each gets a share of the bytes by its priority (RFC 8831 section 6.4).
///
/// A channel's virtual time advances by what it sends over its weight, and the one that is furthest
/// behind is next.
struct SendSchedule {
  private struct Turn: Comparable {
    var time: UInt64
    var channel: Int

    static func < (left: Turn, right: Turn) -> Bool {
      left.time != right.time ? left.time < right.time : left.channel < right.channel
    }
  }

  private var turns = Heap<Turn>()
  /// The time of the channel that was served last.
  private(set) var now: UInt64 = 0

  /// The channel whose turn it is.
  var first: Int? { turns.min?.channel }

  /// Adds a channel that stands at a time.
  mutating func push(_ channel: Int, time: UInt64) {
    turns.insert(Turn(time: time, channel: channel))
  }

  /// Removes the channel whose turn it is.
  mutating func popFirst() {
    if let first = turns.popMin() { now = first.time }
  }

  /// Removes a channel.
  mutating func remove(_ channel: Int) {
    if first == channel { popFirst() } else { turns.removeAll { $0.channel == channel } }
  }

  /// Forgets all channels.
  mutating func removeAll() { turns = [] }
}
