import DequeModule
import Wire

/// The peer's streams, created on first use; they reassemble messages from fragments (RFC 9260
/// section 6.9; RFC 8260 for interleaved fragments).
struct IncomingStreams {
  private(set) var streams: [IncomingStream] = []
  /// The places in `streams` by stream number; -1 for unused streams.
  private var places: [Int32] = []
  /// Bytes that wait in any stream for the rest of their message or for an earlier one.
  private(set) var heldBytes = 0
  /// Fragments that wait in any stream for the rest of their message or for an earlier one.
  private(set) var heldFragments = 0
  /// The places of streams with waiting fragments of unordered messages.
  private(set) var unorderedPlaces: Set<Int> = []

  mutating func place(of stream: UInt16) -> Int {
    let number = Int(stream)
    if number >= places.count {
      places.append(contentsOf: repeatElement(-1, count: number + 1 - places.count))
    }
    if places[number] < 0 {
      places[number] = Int32(streams.count)
      streams.append(IncomingStream(identifier: stream))
    }
    return Int(places[number])
  }

  /// Returns the place of a stream; nil if the stream has not been used.
  func knownPlace(of stream: UInt16) -> Int? {
    guard Int(stream) < places.count, places[Int(stream)] >= 0 else { return nil }
    return Int(places[Int(stream)])
  }

  /// Changes a stream and updates the totals of all streams.
  mutating func change<Result>(
    _ place: Int, _ body: (inout IncomingStream) -> Result
  ) -> Result {
    let bytes = streams[place].heldBytes
    let fragments = streams[place].heldFragments
    let hadUnordered = streams[place].heldUnordered > 0
    let result = body(&streams[place])
    heldBytes += streams[place].heldBytes - bytes
    heldFragments += streams[place].heldFragments - fragments
    let hasUnordered = streams[place].heldUnordered > 0
    if hasUnordered != hadUnordered {
      if hasUnordered { unorderedPlaces.insert(place) } else { unorderedPlaces.remove(place) }
    }
    return result
  }

  mutating func removeAll() { self = IncomingStreams() }
}

// MARK: - IncomingStream

/// One stream from the peer: reassembles messages, and delivers ordered messages in order.
struct IncomingStream {
  /// The stream number on the wire.
  let identifier: UInt16
  /// Complete messages to deliver, oldest first.
  private(set) var messages: [ReceivedMessage] = []
  /// The bytes and fragments that wait for the rest of their message or for an earlier one.
  var heldBytes: Int { orderedBytes + unordered.heldBytes }
  var heldFragments: Int { ordered.count + unordered.count }
  /// The unordered fragments that wait for the rest of their message.
  var heldUnordered: Int { unordered.count }
  private var orderedBytes = 0

  /// The number of the next ordered message to deliver.
  private(set) var expected: Int64 = 0
  private(set) var ordered = Deque<Fragment>()
  var unordered = UnorderedFragments()
  /// The number of fragments from the front that belong to the expected message, without a gap.
  private var run = 0
  /// Bytes in the fragments that `run` counts.
  private var runBytes = 0
  /// The highest extended identifier of an unordered message; the identifiers of later interleaved
  /// ones are extended relative to it.
  private var newestUnordered: Int64 = 0

  init(identifier: UInt16) { self.identifier = identifier }

  /// Returns the extended number nearest to the expected message's that ends in these 16 bits.
  func extend(sequence: UInt16) -> Int64 {
    expected + Int64(Int16(truncatingIfNeeded: Int64(sequence) &- expected))
  }

  /// Returns the extended identifier that ends in these 32 bits and is nearest to the expected
  /// ordered message's, or to the newest unordered message's.
  func extend(identifier: UInt32, unordered: Bool) -> Int64 {
    let base = unordered ? newestUnordered : expected
    return base + Int64(Int32(truncatingIfNeeded: Int64(identifier) &- base))
  }

  mutating func removeComplete() -> [ReceivedMessage] {
    var taken: [ReceivedMessage] = []
    swap(&taken, &messages)
    return taken
  }

  /// Handles a fragment received for the first time.
  ///
  /// - Returns: the length of the longest gapless part of a message that is known to have arrived,
  ///   which is at least the fragment's own length; 0 if the fragment is dropped.
  mutating func insert(_ fragment: Fragment) -> Int {
    if fragment.flags.contains(.unordered) { return insertUnordered(fragment) }
    if fragment.message == expected, run == 0, fragment.flags.isSuperset(of: [.beginning, .end]),
      ordered.first?.message != expected
    {
      finish(fragment.payloadProtocol, fragment.bytes)
      expected += 1
      if !ordered.isEmpty { extendRun() }
      return fragment.bytes.count
    }
    // If fragments of an earlier message still arrive, that message has been abandoned.
    guard fragment.message >= expected else { return 0 }
    let place = Self.place(of: fragment.key, in: ordered)
    guard place >= run else { return 0 }
    orderedBytes += fragment.bytes.count
    ordered.insert(fragment, at: place)
    let longest = place == run ? extendRun() : runBytes
    return max(longest, fragment.bytes.count)
  }

  /// Skips ordered messages up to `message` (RFC 3758 section 3.6); complete messages are still
  /// delivered.
  mutating func forward(message: Int64) {
    guard message >= expected else { return }
    while let front = ordered.first, front.message <= message {
      expected = max(expected, front.message)
      run = 0
      runBytes = 0
      extendRun()
      // Any remaining fragments of this message cannot complete it.
      while let rest = ordered.first, rest.message == front.message { drop(rest) }
    }
    run = 0
    runBytes = 0
    expected = max(expected, message + 1)
    extendRun()
  }

  /// Makes this message the next expected one, unless ordered fragments are waiting.
  mutating func join(at message: Int64) {
    guard ordered.isEmpty else { return }
    expected = message
  }

  /// Skips fragments that are missing up to a key, together with their messages.
  ///
  /// Without a key, skips everything before the first waiting message; if that message is the
  /// expected one, a part of it is missing, so it is skipped too.
  mutating func pass(through key: Int64?) {
    var last = key == nil ? ordered.first?.message : nil
    if let key {
      last = ordered.last { $0.key <= key }?.message
      unordered.forget(through: key)
    }
    guard let last else { return }
    // Keep a message whose last waiting fragment is at the key, because the rest may follow.
    // Without a key, keep the first waiting message, unless it is the expected one, because then
    // the missing part is its own.
    let goesOn =
      key.map { key in ordered.last { $0.message == last }?.key == key } ?? (last != expected)
    forward(message: goesOn ? last - 1 : last)
  }

  /// Whether the totals match the waiting fragments; long queues are not counted, because this runs
  /// after every step in debug builds.
  var isConsistent: Bool {
    guard heldFragments <= 64 else { return heldBytes >= 0 }
    let sizes = ordered.map(\.bytes.count)
    return orderedBytes == sizes.reduce(0, +) && run <= ordered.count && unordered.isConsistent
  }

  /// Resets the stream after the peer did (RFC 6525 section 5.2.2).
  mutating func reset() {
    expected = 0
    newestUnordered = 0
    run = 0
    runBytes = 0
    ordered.removeAll()
    unordered.removeAll()
    orderedBytes = 0
  }
}

// MARK: - Fragments

extension IncomingStream {
  /// Delivers messages that are now complete, from the front of the queue.
  ///
  /// - Returns: the length of the longest message found, complete or not.
  @discardableResult
  private mutating func extendRun() -> Int {
    var longest = 0
    while run < ordered.count {
      let next = ordered[run]
      if run == 0 {
        guard next.message == expected, next.flags.contains(.beginning) else { break }
      } else {
        guard next.message == expected, next.key == ordered[run - 1].key + 1,
          !next.flags.contains(.beginning)
        else { break }
      }
      run += 1
      runBytes += next.bytes.count
      longest = max(longest, runBytes)
      if next.flags.contains(.end) {
        finish(ordered[0].payloadProtocol, Self.joined(&ordered, 0..<run, runBytes))
        orderedBytes -= runBytes
        expected += 1
        run = 0
        runBytes = 0
      }
    }
    return longest
  }

  private mutating func insertUnordered(_ fragment: Fragment) -> Int {
    newestUnordered = max(newestUnordered, fragment.message)
    if fragment.flags.isSuperset(of: [.beginning, .end]) {
      finish(fragment.payloadProtocol, fragment.bytes)
      return fragment.bytes.count
    }
    let (size, whole) = unordered.insert(fragment)
    if let whole { finish(whole.payloadProtocol, whole.bytes) }
    return size
  }

  private mutating func finish(_ kind: PayloadProtocol, _ bytes: [UInt8]) {
    messages.append(ReceivedMessage(stream: identifier, payloadProtocol: kind, bytes: bytes))
  }

  private mutating func drop(_ front: Fragment) {
    orderedBytes -= front.bytes.count
    ordered.removeFirst()
  }

  /// Removes fragments and joins their bytes.
  private static func joined(
    _ fragments: inout Deque<Fragment>, _ range: Range<Int>, _ size: Int
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(size)
    for index in range { bytes.append(contentsOf: fragments[index].bytes) }
    fragments.removeSubrange(range)
    fragments.releaseSpaceWhenEmpty()
    return bytes
  }

  /// Returns the position at which a fragment is inserted, which is usually the end.
  private static func place(of key: Int64, in fragments: borrowing Deque<Fragment>) -> Int {
    var low = 0
    var high = fragments.count
    if high > 0, fragments[high - 1].key < key { return high }
    while low < high {
      let middle = (low + high) / 2
      if fragments[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

// MARK: - UnorderedFragments

/// Holds fragments of unordered messages until the messages are complete (RFC 9260 section 6.9).
///
/// The fragments are stored as runs of consecutive fragments of one message. A new fragment joins
/// at most two runs.
struct UnorderedFragments {
  private struct Run {
    var keys: ClosedRange<Int64>
    var bytes: Int
    var hasBeginning: Bool
    var hasEnd: Bool
  }

  private var fragments: [Int64: Fragment] = [:]
  /// Runs in ascending order.
  private var runs: [Run] = []
  private(set) var heldBytes = 0

  var count: Int { fragments.count }

  /// Adds a fragment.
  ///
  /// - Returns: how many consecutive bytes of its message, including this fragment, have arrived,
  ///   and the message if it is complete.
  mutating func insert(_ fragment: Fragment) -> (size: Int, whole: Fragment?) {
    // A peer that interleaves could use the same number for two fragments; the first one is kept.
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

  /// Removes the fragments up to and including a key; what remains of a run no longer has a
  /// beginning.
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

  /// Whether the number of waiting bytes matches the fragments.
  var isConsistent: Bool {
    let areWhole = runs.allSatisfy { run in
      run.bytes == run.keys.reduce(0) { $0 + (fragments[$1]?.bytes.count ?? 0) }
    }
    return areWhole && heldBytes == runs.reduce(0) { $0 + $1.bytes }
  }

  /// Removes and joins a run's fragments; returns nil if the run is empty.
  private mutating func assemble(_ run: Run) -> Fragment? {
    guard var whole = fragments.removeValue(forKey: run.keys.lowerBound) else { return nil }
    whole.bytes.reserveCapacity(run.bytes)
    for key in run.keys.dropFirst() {
      if let next = fragments.removeValue(forKey: key) { whole.bytes += next.bytes }
    }
    heldBytes -= run.bytes
    return whole
  }

  /// Returns the place of the first run that does not end before a key.
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

/// A part of a message, from one DATA or I-DATA chunk.
struct Fragment {
  /// The position among the stream's fragments: consecutive fragments of a message have consecutive
  /// keys.
  ///
  /// For DATA, the extended transmission number; for I-DATA, message identifier and fragment
  /// number.
  var key: Int64
  /// The message's extended number in its stream: its sequence number (DATA) or message identifier
  /// (I-DATA).
  var message: Int64
  var flags: DataFlags
  var payloadProtocol: PayloadProtocol
  var bytes: [UInt8]
}

struct ReceivedMessage {
  var stream: UInt16
  var payloadProtocol: PayloadProtocol
  var bytes: [UInt8]
}
