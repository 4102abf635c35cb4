/// Which channel sends next: each gets a share of the bytes by its priority (RFC 8831 section 6.4).
///
/// A binary heap over virtual times: a channel's time advances by what it sends over its weight,
/// and the one that is furthest behind is next.
struct SendSchedule {
  private struct Turn {
    var time: UInt64
    var channel: Int

    func isBefore(_ other: Turn) -> Bool {
      time != other.time ? time < other.time : channel < other.channel
    }
  }

  private var heap: [Turn] = []
  /// The time of the channel that was served last.
  private(set) var now: UInt64 = 0

  /// The channel whose turn it is.
  var first: Int? { heap.first?.channel }

  /// Adds a channel that stands at a time.
  mutating func push(_ channel: Int, time: UInt64) {
    heap.append(Turn(time: time, channel: channel))
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].isBefore(heap[parent]) else { return }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  /// Takes the channel away whose turn it is.
  mutating func popFirst() {
    guard let first = heap.first, let last = heap.popLast() else { return }
    now = first.time
    guard !heap.isEmpty else { return }
    heap[0] = last
    sink()
  }

  /// Takes a channel away.
  mutating func remove(_ channel: Int) {
    if first == channel { return popFirst() }
    guard let index = heap.firstIndex(where: { $0.channel == channel }) else { return }
    heap.remove(at: index)
    // An ascending array is a heap, too.
    heap.sort { $0.isBefore($1) }
  }

  /// Forgets all channels.
  mutating func removeAll() { heap = [] }

  private mutating func sink() {
    var parent = 0
    while 2 * parent + 1 < heap.count {
      var child = 2 * parent + 1
      if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
      guard heap[child].isBefore(heap[parent]) else { return }
      heap.swapAt(child, parent)
      parent = child
    }
  }
}
