import DequeModule
import Wire

/// One stream from the peer: puts messages together, and ordered ones in order.
struct IncomingStream {
  /// The number on the wire.
  let identifier: UInt16
  /// Messages that came complete and wait to be taken, oldest first.
  private(set) var messages: [ReceivedMessage] = []
  /// How many bytes and fragments wait for others.
  var heldBytes: Int { orderedBytes + unordered.heldBytes }
  var heldFragments: Int { ordered.count + unordered.count }
  /// How many fragments of unordered messages wait for others.
  var heldUnordered: Int { unordered.count }
  private var orderedBytes = 0

  /// The number of the ordered message that is handed out next.
  private(set) var expected: Int64 = 0
  private(set) var ordered = Deque<Fragment>()
  var unordered = UnorderedFragments()
  /// How many fragments from the front belong to the expected message without a gap.
  private var run = 0
  /// How many bytes these have.
  private var runBytes = 0
  /// The highest identifier of an unordered interleaved message, to extend others by.
  private var newestUnordered: Int64 = 0

  init(identifier: UInt16) { self.identifier = identifier }

  /// Extends a sequence number of 16 bits.
  func extend(sequence: UInt16) -> Int64 {
    expected + Int64(Int16(truncatingIfNeeded: Int64(sequence) &- expected))
  }

  /// Extends a message identifier of 32 bits.
  func extend(identifier: UInt32, unordered: Bool) -> Int64 {
    let base = unordered ? newestUnordered : expected
    return base + Int64(Int32(truncatingIfNeeded: Int64(identifier) &- base))
  }

  /// The messages that came complete; the stream forgets them.
  mutating func removeComplete() -> [ReceivedMessage] {
    var taken: [ReceivedMessage] = []
    swap(&taken, &messages)
    return taken
  }

  /// Handles a fragment received for the first time.
  ///
  /// - Returns: how many bytes of its message are there so far, itself included.
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
    // Of a message that was abandoned already.
    guard fragment.message >= expected else { return 0 }
    let place = Self.place(of: fragment.key, in: ordered)
    guard place >= run else { return 0 }
    orderedBytes += fragment.bytes.count
    ordered.insert(fragment, at: place)
    let longest = place == run ? extendRun() : runBytes
    return max(longest, fragment.bytes.count)
  }

  /// Passes over the ordered messages up to one (RFC 3758 section 3.6); complete ones are kept.
  mutating func forward(message: Int64) {
    guard message >= expected else { return }
    while let front = ordered.first, front.message <= message {
      expected = max(expected, front.message)
      run = 0
      runBytes = 0
      extendRun()
      // What is left of this message is not complete.
      while let rest = ordered.first, rest.message == front.message { drop(rest) }
    }
    run = 0
    runBytes = 0
    expected = max(expected, message + 1)
    extendRun()
  }

  /// Expects a message as the first one.
  mutating func join(at message: Int64) {
    guard ordered.isEmpty else { return }
    expected = message
  }

  /// Passes over what is missing before the fragments that came up to a key, those of the first
  /// message that waits where keys tell nothing.
  mutating func pass(through key: Int64?) {
    var last = key == nil ? ordered.first?.message : nil
    if let key {
      last = ordered.last { $0.key <= key }?.message
      unordered.forget(through: key)
    }
    guard let last else { return }
    // What is not whole yet may continue behind the key; where keys tell nothing, what is expected
    // is what lacks something.
    let goesOn =
      key.map { key in ordered.last { $0.message == last }?.key == key } ?? (last != expected)
    forward(message: goesOn ? last - 1 : last)
  }

  /// Whether the bytes that wait are those of the fragments; long queues are not summed up, because
  /// this is asked after every step of a debug build.
  var isConsistent: Bool {
    guard heldFragments <= 64 else { return heldBytes >= 0 }
    let sizes = ordered.map(\.bytes.count)
    return orderedBytes == sizes.reduce(0, +) && run <= ordered.count && unordered.isConsistent
  }

  /// Restarts after the peer reset the stream (RFC 6525 section 5.2.2).
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
  /// Follows the fragments of the expected message from the front and hands out what is complete.
  ///
  /// - Returns: the length of the longest message on the way, complete or not.
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

  /// Where a fragment belongs; mostly at the end.
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
