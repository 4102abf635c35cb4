import DequeModule
import Wire

/// A DATA or I-DATA chunk whose number is not yet acknowledged cumulatively.
struct SentChunk {
  enum Fate {
    /// Sent, and neither acknowledged nor lost.
    case outstanding
    /// Lost; to be retransmitted.
    case lost
    /// Acknowledged in a gap report.
    case acknowledged
    /// Given up; the peer is asked to skip the chunk (RFC 3758).
    case abandoned
  }

  /// The complete message, shared by its chunks.
  var bytes: [UInt8]
  var offset: Int
  var count: Int
  /// The bytes that the windows count: header, payload and padding.
  var size: Int
  /// The message's number within the association.
  var message: UInt64
  /// The channel's place; the rest of the message may wait in its queue.
  var channel: Int
  var stream: UInt16
  var flags: DataFlags
  var payloadProtocol: PayloadProtocol
  /// Stream sequence number, or message identifier if messages interleave.
  var order: UInt32
  /// The chunk's position in its message.
  var part: UInt32
  var limits: MessageLimits
  var fate = Fate.outstanding
  /// The number of times that the chunk was sent.
  var transmissions = 1
  /// The number of acknowledgements that reported later chunks but not this one.
  var strikes = 0
  /// Chunks from this number on were sent after this one's last transmission.
  var strikeFloor: UInt32
}

/// Limits on how often and how long a message is retransmitted (RFC 3758 section 3.5, RFC 7496).
struct MessageLimits {
  /// When the message is abandoned; nil for no limit.
  var expiry: Instant?
  /// The maximum number of retransmissions of each of the message's chunks; nil for no limit.
  var retransmissions: Int?

  /// Whether the message is never abandoned.
  var isReliable: Bool { expiry == nil && retransmissions == nil }

  /// Returns whether a chunk sent this many times is abandoned instead of retransmitted.
  func isOver(transmissions: Int, at now: Instant) -> Bool {
    if let expiry, now >= expiry { return true }
    if let retransmissions, transmissions > retransmissions { return true }
    return false
  }
}

// MARK: - SentChunks

/// Chunks not acknowledged cumulatively, in numerical order: in flight, lost, acknowledged in gap
/// reports (RFC 9260 section 6.2.1) or abandoned (RFC 3758).
struct SentChunks {
  /// The number of the first chunk, or of the next chunk to send if there is none.
  private(set) var firstNumber: UInt32
  private(set) var chunks = Deque<SentChunk>()
  /// Bytes in outstanding chunks.
  private(set) var flight = 0
  private(set) var lostCount = 0
  /// No chunk before this place is lost.
  private var lostHint = 0
  /// The number of abandoned chunks at the front, which the peer is asked to skip.
  private(set) var abandonedPrefix = 0

  init(firstNumber: UInt32) { self.firstNumber = firstNumber }

  var count: Int { chunks.count }
  var isEmpty: Bool { chunks.isEmpty }
  var nextNumber: UInt32 { firstNumber &+ UInt32(truncatingIfNeeded: chunks.count) }

  func number(at index: Int) -> UInt32 { firstNumber &+ UInt32(truncatingIfNeeded: index) }

  /// Returns a number's place, which may be out of range.
  func place(of number: UInt32) -> Int { Int(Int32(bitPattern: number &- firstNumber)) }

  mutating func append(_ chunk: SentChunk) {
    if chunk.fate == .outstanding { flight += chunk.size }
    chunks.append(chunk)
    extendAbandonedPrefix()
  }

  mutating func firstLost() -> Int? {
    guard lostCount > 0 else { return nil }
    while lostHint < chunks.count, chunks[lostHint].fate != .lost { lostHint += 1 }
    return lostHint < chunks.count ? lostHint : nil
  }

  /// Marks a chunk as lost, to be retransmitted.
  mutating func lose(at index: Int) { set(.lost, at: index) }

  /// Changes a chunk's fate and updates the totals.
  private mutating func set(_ fate: SentChunk.Fate, at index: Int) {
    let old = chunks[index].fate
    guard old != fate else { return }
    let size = chunks[index].size
    if old == .outstanding { flight -= size }
    if old == .lost { lostCount -= 1 }
    chunks[index].fate = fate
    switch fate {
    case .outstanding: flight += size
    case .lost:
      lostCount += 1
      lostHint = min(lostHint, index)
    case .acknowledged: break
    case .abandoned:
      chunks[index].bytes = []
      chunks[index].count = 0
    }
  }

  /// Records that a lost chunk was retransmitted.
  mutating func resend(at index: Int) {
    set(.outstanding, at: index)
    chunks[index].transmissions += 1
    chunks[index].strikes = 0
    chunks[index].strikeFloor = nextNumber
  }

  /// Counts a report of later chunks; returns true at the third, which means a loss (RFC 9260
  /// section 7.2.4).
  ///
  /// Reports of chunks sent before this one's last transmission are ignored.
  mutating func strike(at index: Int, by newest: UInt32) -> Bool {
    guard chunks[index].fate == .outstanding, !chunks[index].strikeFloor.isNewer(than: newest)
    else { return false }
    chunks[index].strikes += 1
    return chunks[index].strikes >= 3
  }

  private mutating func removeFirst(_ number: Int) {
    for index in 0..<number {
      switch chunks[index].fate {
      case .outstanding: flight -= chunks[index].size
      case .lost: lostCount -= 1
      case .acknowledged, .abandoned: break
      }
    }
    chunks.removeFirst(number)
    chunks.releaseSpaceWhenEmpty()
    firstNumber = firstNumber &+ UInt32(truncatingIfNeeded: number)
    lostHint = max(0, lostHint - number)
    abandonedPrefix = max(0, abandonedPrefix - number)
    extendAbandonedPrefix()
  }

  /// Counts the abandoned chunks at the front.
  mutating func extendAbandonedPrefix() {
    while abandonedPrefix < chunks.count, chunks[abandonedPrefix].fate == .abandoned {
      abandonedPrefix += 1
    }
  }
}

// MARK: - Acknowledgements

extension SentChunks {
  /// Changes made by one SACK.
  struct Progress: Hashable {
    /// Bytes newly acknowledged, cumulatively or in gap reports.
    var bytes = 0
    /// The highest number newly acknowledged in a gap report; nil if there is none.
    var newest: UInt32?
    /// The highest number in any gap report; nil if there is none.
    var highest: UInt32?
    /// Whether the cumulative number advanced.
    var advanced = false
    /// Whether there are fewer gap reports than announced.
    var isCutOff = false
  }

  /// Acknowledges and removes chunks at the front.
  mutating func acknowledgeFirst(
    _ number: Int, at now: Instant, _ roundTrip: inout RoundTrip, _ progress: inout Progress
  ) {
    guard number > 0 else { return }
    for index in 0..<number {
      switch chunks[index].fate {
      case .outstanding, .lost:
        progress.bytes += chunks[index].size
        roundTrip.finish(
          self.number(at: index), transmissions: chunks[index].transmissions, at: now)
      case .acknowledged, .abandoned: break
      }
    }
    progress.advanced = true
    if let timed = roundTrip.timedNumber, place(of: timed) < number { roundTrip.cancel() }
    removeFirst(number)
  }

  /// Handles gap reports; returns false if they cover unsent chunks.
  mutating func acknowledge(
    gaps: Int, _ reader: inout ByteReader, at now: Instant, _ roundTrip: inout RoundTrip,
    _ progress: inout Progress
  ) -> Bool {
    var next = 0
    for _ in 0..<gaps {
      guard let start = try? reader.uint16(), let end = try? reader.uint16() else {
        progress.isCutOff = true
        return true
      }
      // Offset 1 is the first chunk after the cumulative number. Blocks are in ascending order.
      let first = Int(start) - 1
      let last = Int(end) - 1
      guard first >= next, first <= last else { return true }
      guard last < count else { return false }
      progress.highest = number(at: last)
      for index in first...last {
        let fate = chunks[index].fate
        guard fate == .outstanding || fate == .lost else { continue }
        progress.bytes += chunks[index].size
        roundTrip.finish(number(at: index), transmissions: chunks[index].transmissions, at: now)
        set(.acknowledged, at: index)
        progress.newest = number(at: index)
      }
      next = last + 1
    }
    return true
  }
}

// MARK: - Abandoning

extension SentChunks {
  /// Abandons all chunks of a message, one of which is at `index` (RFC 3758 section 3.5).
  mutating func abandon(_ message: UInt64, around index: Int, interleaves: Bool) {
    // A message's chunks are adjacent unless messages interleave.
    var first = index
    var last = index
    while first > 0, interleaves || chunks[first - 1].message == message { first -= 1 }
    while last + 1 < count, interleaves || chunks[last + 1].message == message { last += 1 }
    for place in first...last where chunks[place].message == message {
      set(.abandoned, at: place)
    }
    extendAbandonedPrefix()
  }

  /// Returns the body of a FORWARD-TSN or I-FORWARD-TSN chunk for the abandoned chunks at the
  /// front, and the number to skip to; nil if there are none (RFC 3758 section 3.2, RFC 8260
  /// section 2.3.1).
  func forward(room: Int, interleaves: Bool) -> (body: [UInt8], end: UInt32)? {
    guard abandonedPrefix > 0 else { return nil }
    let entry = interleaves ? 8 : 4
    let most = (room - 8) / entry
    var streams: [(stream: UInt16, unordered: Bool, order: UInt32)] = []
    var end = 0
    while end < abandonedPrefix {
      let chunk = chunks[end]
      let unordered = chunk.flags.contains(.unordered)
      if interleaves || !unordered {
        if let known = streams.lastIndex(where: {
          $0.stream == chunk.stream && $0.unordered == unordered
        }) {
          streams[known].order = chunk.order
        } else {
          guard streams.count < most else { break }
          streams.append((chunk.stream, unordered, chunk.order))
        }
      }
      end += 1
    }
    var writer = ByteWriter(capacity: 4 + entry * streams.count)
    writer.uint32(number(at: end - 1))
    for stream in streams {
      writer.uint16(stream.stream)
      if interleaves {
        writer.uint16(stream.unordered ? 1 : 0)
        writer.uint32(stream.order)
      } else {
        writer.uint16(UInt16(truncatingIfNeeded: stream.order))
      }
    }
    return (writer.bytes, number(at: end - 1))
  }

  /// Whether the totals match the chunks; long queues are checked only occasionally, because this
  /// runs after every step in debug builds.
  var isConsistent: Bool {
    guard count <= 256 || count & 1023 == 0 else { return flight >= 0 && lostCount >= 0 }
    return flight == chunks.reduce(0) { $1.fate == .outstanding ? $0 + $1.size : $0 }
      && lostCount == chunks.count { $0.fate == .lost }
      && abandonedPrefix <= count
      && chunks.prefix(abandonedPrefix).allSatisfy { $0.fate == .abandoned }
  }
}
