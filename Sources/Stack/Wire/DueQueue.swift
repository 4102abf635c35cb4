import HeapModule

/// Deadlines of many items: a change costs the logarithm of their number instead of a pass over
/// all.
///
/// The owner knows when each item is due and reports every change to an earlier time. A later time
/// need not be reported, because it is queried when the earlier one is reached.
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

  /// Records when an item is due.
  package mutating func schedule(_ index: Int, at due: Instant?) {
    guard let due else { return }
    while queued.count <= index { queued.append(nil) }
    if let earlier = queued[index], earlier <= due { return }
    queued[index] = due
    entries.insert(Entry(at: due, index: index))
  }

  /// Removes the items due at an instant and returns them in the order of their indices.
  /// - Parameter current: returns when an item is due now.
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

  /// When the first item is due.
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

  /// Removes the first entry; false if it was void.
  private mutating func remove(_ first: Entry) -> Bool {
    _ = entries.popMin()
    guard queued[first.index] == first.at else { return false }
    queued[first.index] = nil
    return true
  }
}
