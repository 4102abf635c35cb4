/// Fragments of unordered messages until their message is whole (RFC 9260 section 6.9).
///
/// They lie in runs: fragments that follow each other within one message. A fragment joins at most
/// two runs, so that it costs the same however many are there.
struct UnorderedFragments {
  private struct Run {
    var keys: ClosedRange<Int64>
    var bytes: Int
    var hasBeginning: Bool
    var hasEnd: Bool
  }

  private var fragments: [Int64: Fragment] = [:]
  /// Ascending.
  private var runs: [Run] = []
  private(set) var heldBytes = 0

  var count: Int { fragments.count }

  /// Adds a fragment.
  ///
  /// - Returns: how many bytes of its message are there so far, itself included, and the whole
  /// message when it was the last one.
  mutating func insert(_ fragment: Fragment) -> (size: Int, whole: Fragment?) {
    // A peer that interleaves may number two fragments alike; the first one counts.
    guard fragments[fragment.key] == nil else { return (fragment.bytes.count, nil) }
    let key = fragment.key
    var place = place(of: key)
    var run = Run(
      keys: key...key, bytes: fragment.bytes.count,
      hasBeginning: fragment.flags.contains(.beginning), hasEnd: fragment.flags.contains(.end))
    fragments[key] = fragment
    heldBytes += fragment.bytes.count
    var joined = place..<place
    if !run.hasEnd, place < runs.count, runs[place].keys.lowerBound - 1 == key,
      !runs[place].hasBeginning
    {
      run.keys = key...runs[place].keys.upperBound
      run.bytes += runs[place].bytes
      run.hasEnd = runs[place].hasEnd
      joined = place..<place + 1
    }
    if !run.hasBeginning, place > 0, runs[place - 1].keys.upperBound == key - 1,
      !runs[place - 1].hasEnd
    {
      run.keys = runs[place - 1].keys.lowerBound...run.keys.upperBound
      run.bytes += runs[place - 1].bytes
      run.hasBeginning = runs[place - 1].hasBeginning
      joined = place - 1..<joined.upperBound
      place -= 1
    }
    guard run.hasBeginning, run.hasEnd else {
      runs.replaceSubrange(joined, with: CollectionOfOne(run))
      return (run.bytes, nil)
    }
    runs.removeSubrange(joined)
    return (run.bytes, assemble(run))
  }

  /// Forgets the fragments up to a key.
  mutating func forget(through key: Int64) {
    var passed = 0
    while passed < runs.count, runs[passed].keys.lowerBound <= key {
      let keys = runs[passed].keys
      let last = min(keys.upperBound, key)
      for key in keys.lowerBound...last {
        guard let lost = fragments.removeValue(forKey: key) else { continue }
        heldBytes -= lost.bytes.count
        runs[passed].bytes -= lost.bytes.count
      }
      guard last == keys.upperBound else {
        runs[passed].keys = last + 1...keys.upperBound
        runs[passed].hasBeginning = false
        break
      }
      passed += 1
    }
    runs.removeFirst(passed)
  }

  mutating func removeAll() { self = UnorderedFragments() }

  /// Whether the sum is that of the fragments.
  var isConsistent: Bool {
    let areWhole = runs.allSatisfy { run in
      run.bytes == run.keys.reduce(0) { $0 + (fragments[$1]?.bytes.count ?? 0) }
    }
    return areWhole && heldBytes == runs.reduce(0) { $0 + $1.bytes }
  }

  /// Removes the fragments of a run and joins them; nil when the run is empty.
  private mutating func assemble(_ run: Run) -> Fragment? {
    guard var whole = fragments.removeValue(forKey: run.keys.lowerBound) else { return nil }
    whole.bytes.reserveCapacity(run.bytes)
    for key in run.keys.dropFirst() {
      if let next = fragments.removeValue(forKey: key) { whole.bytes += next.bytes }
    }
    heldBytes -= run.bytes
    return whole
  }

  /// The place of the first run behind a key.
  private func place(of key: Int64) -> Int {
    if let last = runs.last, last.keys.upperBound < key { return runs.count }
    var low = 0
    var high = runs.count
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].keys.upperBound < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
