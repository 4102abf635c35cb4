import DequeModule
import Wire

/// A DATA or I-DATA chunk that has a number and that the peer has not acknowledged cumulatively.
struct SentChunk {
  enum Fate {
    /// On its way.
    case outstanding
    /// Taken as lost: to be sent again.
    case lost
    /// Acknowledged in a gap report.
    case acknowledged
    /// Given up (RFC 3758).
    case abandoned
  }

  /// The whole message, which its chunks share.
  var bytes: [UInt8]
  var offset: Int
  var count: Int
  /// What the chunk counts in the windows: payload and header.
  var size: Int
  /// The message among all messages of the association.
  var message: UInt64
  /// The place of the channel, where the rest of the message may wait.
  var channel: Int
  var stream: UInt16
  var flags: DataFlags
  var payloadProtocol: PayloadProtocol
  /// The stream sequence number, or the message identifier when messages interleave.
  var order: UInt32
  /// The place of the chunk in its message.
  var part: UInt32
  var limits: MessageLimits
  var fate = Fate.outstanding
  /// How often the chunk was sent.
  var transmissions = 1
  /// How many acknowledgements reported later chunks but not this one.
  var strikes = 0
  /// Only chunks from this number on were sent after this one.
  var strikeFloor: UInt32
}

/// How long and how often a message is tried (RFC 3758 section 3.5, RFC 7496).
struct MessageLimits {
  /// When it is given up.
  var expiry: Instant?
  /// How often a chunk of it is sent again.
  var retransmissions: Int?

  /// Whether the message is never given up.
  var isReliable: Bool { expiry == nil && retransmissions == nil }

  /// Whether a chunk that was sent so often is given up instead of sent again.
  func isOver(transmissions: Int, at now: Instant) -> Bool {
    if let expiry, now >= expiry { return true }
    if let retransmissions, transmissions > retransmissions { return true }
    return false
  }
}

/// What was sent and is not acknowledged cumulatively, in the order of numbers.
struct SentChunks {
  /// The number of the first chunk, or of the next one to be sent when there is none.
  private(set) var firstNumber: UInt32
  private(set) var chunks = Deque<SentChunk>()
  /// The bytes of outstanding chunks.
  private(set) var flight = 0
  /// How many chunks are lost.
  private(set) var lostCount = 0
  /// No chunk before this place is lost.
  private var lostHint = 0
  /// How many chunks at the front are abandoned: the peer is told to pass over them.
  private(set) var abandonedPrefix = 0

  init(firstNumber: UInt32) { self.firstNumber = firstNumber }

  var count: Int { chunks.count }
  var isEmpty: Bool { chunks.isEmpty }
  /// The number of the next new chunk.
  var nextNumber: UInt32 { firstNumber &+ UInt32(truncatingIfNeeded: chunks.count) }

  /// The number of the chunk at a place.
  func number(at index: Int) -> UInt32 { firstNumber &+ UInt32(truncatingIfNeeded: index) }

  /// The place of a number, which may lie outside.
  func place(of number: UInt32) -> Int { Int(Int32(bitPattern: number &- firstNumber)) }

  mutating func append(_ chunk: SentChunk) {
    if chunk.fate == .outstanding { flight += chunk.size }
    chunks.append(chunk)
    extendAbandonedPrefix()
  }

  /// The place of the first lost chunk.
  mutating func firstLost() -> Int? {
    guard lostCount > 0 else { return nil }
    while lostHint < chunks.count, chunks[lostHint].fate != .lost { lostHint += 1 }
    return lostHint < chunks.count ? lostHint : nil
  }

  /// Changes the fate of a chunk and keeps the sums.
  mutating func set(_ fate: SentChunk.Fate, at index: Int) {
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

  /// Notes that a lost chunk was sent again.
  mutating func resend(at index: Int) {
    set(.outstanding, at: index)
    chunks[index].transmissions += 1
    chunks[index].strikes = 0
    chunks[index].strikeFloor = nextNumber
  }

  /// Counts that later chunks came; three times mean a loss (RFC 9260 section 7.2.4).
  ///
  /// Chunks count only when they were sent after the last transmission of this one.
  mutating func strike(at index: Int, by newest: UInt32) -> Bool {
    guard chunks[index].fate == .outstanding, !chunks[index].strikeFloor.isNewer(than: newest)
    else { return false }
    chunks[index].strikes += 1
    return chunks[index].strikes >= 3
  }

  /// Forgets so many chunks at the front.
  mutating func removeFirst(_ number: Int) {
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
