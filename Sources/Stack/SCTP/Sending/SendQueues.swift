import DequeModule
import HeapModule
import Wire

struct OutgoingMessage {
  var bytes: [UInt8]
  var payloadProtocol: PayloadProtocol
  var ordered: Bool
  var limits: MessageLimits
  /// The number of the message's bytes that count as buffered: 0 for messages about the channel and
  /// for empty messages.
  var buffered: UInt64
  /// The message's number within the association, assigned by the queue.
  var number: UInt64 = 0
}

extension OutgoingMessage {
  /// Creates a message about the channel itself (RFC 8832 section 5).
  init(_ message: ChannelMessage) {
    self.init(
      bytes: message.bytes, payloadProtocol: .control, ordered: true, limits: MessageLimits(),
      buffered: 0)
  }
}

struct QueueChange: Hashable {
  /// The place of the channel in the channel table.
  var place: Int
  /// Whether the buffered amount fell to the threshold.
  var isLow = false
  /// Whether the channel's turn ended with nothing left to send.
  var isDrained = false
}

/// The channels' send queues, which select the next message (RFC 8831 section 6.4) and count
/// buffered amounts and message numbers within streams (RFC 9260 section 6.5, RFC 8260
/// section 2.2).
struct SendQueues {
  /// A channel's queue and its outgoing stream.
  private struct Queue {
    /// The stream; nil until assigned.
    var stream: UInt16?
    /// The amount by which each byte advances the virtual time.
    var cost: UInt64 = 1
    /// Messages not sent completely, oldest first.
    var messages = Deque<OutgoingMessage>()
    /// How many bytes and parts of the first message have been sent.
    var sentOfFirst = 0
    var partsOfFirst: UInt32 = 0
    /// Unsent bytes of messages passed to `send`.
    var bufferedAmount: UInt64 = 0
    var lowThreshold: UInt64 = 0
    /// The channel's virtual time in the schedule.
    var turn: UInt64 = 0
    /// The numbers of the next ordered message and of the next unordered interleaved message.
    var nextOrdered: UInt32 = 0
    var nextUnordered: UInt32 = 0
    /// The stream's last chunk, which must be acknowledged before the stream is reset.
    var lastNumber: UInt32?
    var abandoned: UInt64 = 0
  }

  private var queues: [Queue] = []
  private var schedule = SendSchedule()
  /// The channel that is in the middle of a message and must finish it before others may send; nil
  /// if there is none.
  private var unfinished: Int?
  private var nextMessage: UInt64 = 0

  /// The channel that sends next.
  var current: Int? { unfinished ?? schedule.first }

  // MARK: Channels

  mutating func open(_ place: Int, priority: DataChannelPriority) {
    while queues.count <= place { queues.append(Queue()) }
    queues[place] = Queue()
    queues[place].cost = UInt64(DataChannelPriority.high.rawValue / priority.rawValue)
  }

  mutating func assign(_ stream: UInt16, to place: Int) { queues[place].stream = stream }

  /// Removes a channel and its unsent messages.
  mutating func close(_ place: Int) {
    if unfinished == place { unfinished = nil }
    schedule.remove(place)
    queues[place] = Queue()
  }

  /// Ends all turns, so that no channel may send any more.
  mutating func removeTurns() {
    schedule.removeAll()
    unfinished = nil
  }

  mutating func setLowThreshold(_ threshold: UInt64, of place: Int) {
    queues[place].lowThreshold = threshold
  }

  // MARK: State

  func bufferedAmount(of place: Int) -> UInt64 { queues[place].bufferedAmount }
  func lowThreshold(of place: Int) -> UInt64 { queues[place].lowThreshold }
  func abandoned(of place: Int) -> UInt64 { queues[place].abandoned }
  func lastNumber(of place: Int) -> UInt32? { queues[place].lastNumber }
  func isEmpty(_ place: Int) -> Bool { queues[place].messages.isEmpty }

  /// Returns the channel's messages not sent completely, oldest first.
  func messages(of place: Int) -> Deque<OutgoingMessage> { queues[place].messages }

  /// Returns the message that a channel is sending or sends next; nil if none is queued.
  func first(of place: Int) -> OutgoingMessage? { queues[place].messages.first }

  /// Returns how many bytes of a channel's first message were sent.
  func sentOfFirst(of place: Int) -> Int { queues[place].sentOfFirst }

  /// Returns whether a channel is in the middle of this message.
  func hasBegun(_ message: UInt64, on place: Int) -> Bool {
    queues[place].sentOfFirst > 0 && queues[place].messages.first?.number == message
  }

  // MARK: Messages

  mutating func enqueue(_ message: OutgoingMessage, on place: Int) {
    queues[place].messages.append(message)
    queues[place].messages[queues[place].messages.count - 1].number = nextMessage
    nextMessage += 1
    queues[place].bufferedAmount += message.buffered
    if queues[place].messages.count == 1 {
      queues[place].turn = max(queues[place].turn, schedule.now)
      schedule.push(place, time: queues[place].turn)
    }
  }

  /// Removes the next bytes of a channel's first message as a chunk; the channel's turn starts with
  /// this chunk.
  mutating func removePart(
    of message: OutgoingMessage, _ place: Int, count: Int, header: Int, number: UInt32
  ) -> SentChunk {
    if unfinished == nil { schedule.popFirst() }
    unfinished = place
    let offset = queues[place].sentOfFirst
    var flags: DataFlags = message.ordered ? [] : .unordered
    if offset == 0 { flags.insert(.beginning) }
    if offset + count == message.bytes.count { flags.insert(.end) }
    var chunk = self.chunk(of: message, place, flags: flags, number: number)
    chunk.bytes = message.bytes
    chunk.offset = offset
    chunk.count = count
    chunk.size = (count + header + 3) & ~3
    queues[place].turn += UInt64(chunk.size) * queues[place].cost
    return chunk
  }

  /// Creates the last chunk of a message that was abandoned in the middle; it is never sent.
  mutating func makeEnd(of message: OutgoingMessage, _ place: Int, number: UInt32) -> SentChunk {
    var end = chunk(
      of: message, place, flags: message.ordered ? .end : [.end, .unordered], number: number)
    end.fate = .abandoned
    return end
  }

  /// Creates an empty chunk at the position that the channel's message has reached.
  private mutating func chunk(
    of message: OutgoingMessage, _ place: Int, flags: DataFlags, number: UInt32
  ) -> SentChunk {
    queues[place].lastNumber = number
    return SentChunk(
      bytes: [], offset: 0, count: 0, size: 0, message: message.number, channel: place,
      stream: queues[place].stream ?? 0, flags: flags, payloadProtocol: message.payloadProtocol,
      order: message.ordered ? queues[place].nextOrdered : queues[place].nextUnordered,
      part: queues[place].partsOfFirst, limits: message.limits, strikeFloor: number &+ 1)
  }

  /// Advances past a sent part; if messages interleave, the channel's turn ends there.
  mutating func finishPart(_ place: Int, count: Int, buffered: UInt64, interleaves: Bool)
    -> QueueChange
  {
    queues[place].sentOfFirst += count
    queues[place].partsOfFirst += 1
    var change = QueueChange(place: place)
    change.isLow = lowerBuffered(place, by: buffered)
    if interleaves { change.isDrained = endTurn(place) }
    return change
  }

  /// Removes a channel's first message after it has been sent or abandoned.
  ///
  /// - Parameters:
  ///   - numbered: whether the message used a stream number.
  ///   - unsent: the message's bytes that still counted as buffered.
  mutating func finishFirst(_ place: Int, numbered: Bool, unsent: UInt64, interleaves: Bool)
    -> QueueChange
  {
    if numbered, let message = queues[place].messages.first {
      if message.ordered {
        queues[place].nextOrdered &+= 1
      } else if interleaves {
        queues[place].nextUnordered &+= 1
      }
    }
    queues[place].messages.removeFirst()
    queues[place].messages.releaseSpaceWhenEmpty()
    queues[place].sentOfFirst = 0
    queues[place].partsOfFirst = 0
    let isDrained = endTurn(place)
    let isLow = lowerBuffered(place, by: unsent)
    return QueueChange(place: place, isLow: isLow, isDrained: isDrained)
  }

  /// Counts a message as abandoned if its stream still belongs to the channel.
  mutating func countAbandoned(_ place: Int, stream: UInt16) {
    if queues[place].stream == stream { queues[place].abandoned += 1 }
  }

  /// Counts a channel's first message as abandoned.
  mutating func countAbandoned(_ place: Int) { queues[place].abandoned += 1 }

  /// Ends a channel's turn, and schedules the next one if the channel has more to send.
  ///
  /// - Returns: whether the channel has nothing more to send.
  mutating func endTurn(_ place: Int) -> Bool {
    if unfinished == place { unfinished = nil } else { schedule.remove(place) }
    if queues[place].messages.isEmpty { return true }
    schedule.push(place, time: queues[place].turn)
    return false
  }

  /// Lowers the buffered amount; returns whether it fell to the threshold.
  private mutating func lowerBuffered(_ place: Int, by amount: UInt64) -> Bool {
    guard amount > 0 else { return false }
    let before = queues[place].bufferedAmount
    let after = before - min(before, amount)
    queues[place].bufferedAmount = after
    let threshold = queues[place].lowThreshold
    return before > threshold && after <= threshold
  }

  /// Whether each buffered amount matches the waiting messages; long queues are not summed, because
  /// this runs after every step in debug builds.
  var isConsistent: Bool {
    queues.prefix(64).allSatisfy { queue in
      guard queue.messages.count <= 64 else { return true }
      let sum = queue.messages.reduce(0 as UInt64) { $0 + $1.buffered }
      let begun = min(UInt64(queue.sentOfFirst), queue.messages.first?.buffered ?? 0)
      return queue.bufferedAmount == sum - begun
    }
  }
}

/// Schedules channels so that each gets a share of the bytes according to its priority (RFC 8831
/// section 6.4).
///
/// A channel's virtual time advances by the bytes it sends, divided by its weight; the channel that
/// is furthest behind sends next.
struct SendSchedule {
  private struct Turn: Comparable {
    var time: UInt64
    var channel: Int

    static func < (left: Turn, right: Turn) -> Bool {
      left.time != right.time ? left.time < right.time : left.channel < right.channel
    }
  }

  private var turns = Heap<Turn>()
  /// The virtual time of the channel served last.
  private(set) var now: UInt64 = 0

  /// The channel whose turn it is; nil if none has anything to send.
  var first: Int? { turns.min?.channel }

  /// Schedules a channel's next turn at its virtual time.
  mutating func push(_ channel: Int, time: UInt64) {
    turns.insert(Turn(time: time, channel: channel))
  }

  /// Removes the channel whose turn it is, and advances `now` to that channel's virtual time.
  mutating func popFirst() {
    if let first = turns.popMin() { now = first.time }
  }

  mutating func remove(_ channel: Int) {
    if first == channel { popFirst() } else { turns.removeAll { $0.channel == channel } }
  }

  mutating func removeAll() { turns = [] }
}

// MARK: - Deque: Storage

extension Deque {
  /// Frees the storage when the queue is empty, so that one long burst does not occupy it forever.
  mutating func releaseSpaceWhenEmpty() { if isEmpty { self = Deque() } }
}
