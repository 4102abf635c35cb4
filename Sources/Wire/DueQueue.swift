/// Which of many wants its turn first: constant work for each that changes, however many there are.
///
/// Whoever uses it knows when each of them is due and says so with every change to an earlier time;
/// a later time need not be reported, because it is asked for when the earlier one comes.
package struct DueQueue: Sendable {
  private struct Entry: Sendable {
    var at: Instant
    var index: Int

    static func isEarlier(_ left: Entry, _ right: Entry) -> Bool {
      left.at != right.at ? left.at < right.at : left.index < right.index
    }
  }

  /// A binary heap, the earliest first.
  private var entries: [Entry] = []
  /// When the entry that counts of each is; others of it in the heap are void.
  private var queued: [Instant?] = []

  package init() {}

  /// Reports when one of them is due.
  package mutating func schedule(_ index: Int, at due: Instant?) {
    guard let due else { return }
    while queued.count <= index { queued.append(nil) }
    if let earlier = queued[index], earlier <= due { return }
    queued[index] = due
    push(Entry(at: due, index: index))
  }

  /// Takes out those that are due at an instant, in the order of their indices.
  ///
  /// - Parameter current: when one of them is due now.
  package mutating func take(until now: Instant, _ current: (Int) -> Instant?) -> [Int] {
    var due: [Int] = []
    while let first = entries.first, first.at <= now {
      guard removeFirst() else { continue }
      guard let at = current(first.index) else { continue }
      if at <= now { due.append(first.index) } else { schedule(first.index, at: at) }
    }
    due.sort()
    return due
  }

  /// When the first of all is due.
  package mutating func first(_ current: (Int) -> Instant?) -> Instant? {
    while let first = entries.first {
      let isVoid = queued[first.index] != first.at
      let at = isVoid ? nil : current(first.index)
      if at == first.at { return at }
      _ = removeFirst()
      if !isVoid { schedule(first.index, at: at) }
    }
    return nil
  }

  /// Removes the first entry; false when it was void.
  private mutating func removeFirst() -> Bool {
    let first = entries[0]
    let last = entries.removeLast()
    if !entries.isEmpty {
      entries[0] = last
      sink()
    }
    guard queued[first.index] == first.at else { return false }
    queued[first.index] = nil
    return true
  }

  private mutating func push(_ entry: Entry) {
    entries.append(entry)
    var place = entries.count - 1
    while place > 0, Entry.isEarlier(entries[place], entries[(place - 1) / 2]) {
      entries.swapAt(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
  }

  private mutating func sink() {
    var place = 0
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2]
      where child < entries.count && Entry.isEarlier(entries[child], entries[least]) {
        least = child
      }
      guard least != place else { return }
      entries.swapAt(place, least)
      place = least
    }
  }
}
