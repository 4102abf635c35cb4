import HeapModule

/// Deadlines of many items: a change costs the logarithm of their number, not a walk over all.
///
/// Whoever uses it knows when each of them is due and says so with every change to an earlier time;
/// a later time need not be reported, because it is asked for when the earlier one comes.
package struct DueQueue: Sendable {
  private struct Entry: Comparable, Sendable {
    var at: Instant
    var index: Int

    static func < (left: Entry, right: Entry) -> Bool {
      left.at != right.at ? left.at < right.at : left.index < right.index
    }
  }

  private var entries = Heap<Entry>()
  /// When the entry that counts of each is; others of it in the heap are void.
  private var queued: [Instant?] = []

  package init() {}

  /// Reports when one of them is due.
  package mutating func schedule(_ index: Int, at due: Instant?) {
    guard let due else { return }
    while queued.count <= index { queued.append(nil) }
    if let earlier = queued[index], earlier <= due { return }
    queued[index] = due
    entries.insert(Entry(at: due, index: index))
  }

  /// Removes those that are due at an instant and returns them in the order of their indices.
  ///
  /// - Parameter current: when one of them is due now.
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

  /// When the first of all is due.
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

  /// Removes the first entry; false when it was void.
  private mutating func remove(_ first: Entry) -> Bool {
    _ = entries.popMin()
    guard queued[first.index] == first.at else { return false }
    queued[first.index] = nil
    return true
  }
}
