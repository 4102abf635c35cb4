import DequeModule
import ICE
import Wire

/// What TCP connections carry: messages of ICE and TURN, and signaling in the clear.
struct TCPConnections {
  /// What was read from a connection.
  enum Message {
    /// As if it had come in a datagram.
    case datagram([UInt8])
    /// A text of a body or of a WebSocket message.
    case text([UInt8])
  }

  /// What further bytes of a connection brought.
  struct Outcome {
    var messages: [Message] = []
    /// What keeps the rest from being read.
    var obstacle: CoverageReport.Kind?
    var detail = ""
  }

  private enum Content {
    /// Too few bytes to tell: those since its beginning, or since others are missing.
    case undecided([UInt8])
    case messages(FramedStream)
    case http(HTTPReader)
    case opaque
  }

  private static let connectionsMaximum = 2048
  /// How many bytes are buffered in all connections; signaling is small.
  private static let heldMaximum = 32 << 20

  private var contents: [FiveTuple: Content] = [:]
  /// In the order in which they began, each with its number: addresses may be used again, and what
  /// ended must not have a newer connection forgotten.
  private var order = Deque<(tuple: FiveTuple, number: UInt64)>()
  private var numbers: [FiveTuple: UInt64] = [:]
  private var begun: UInt64 = 0
  private var held = 0

  /// Takes the next bytes of one direction of a connection.
  mutating func take(_ tuple: FiveTuple, _ bytes: [UInt8], lost: Int, isEnd: Bool) -> Outcome {
    var outcome = Outcome()
    if contents[tuple] == nil { begin(tuple) }
    guard var content = contents.removeValue(forKey: tuple) else { return outcome }
    held -= heldBytes(content)
    if lost > 0 { pass(over: &content, tuple, &outcome) }
    if case .undecided(let before) = content {
      content = decide(before + bytes, after: before.count, tuple, &outcome)
      if !isUndecided(content) {
        read(before + bytes, isNew: true, tuple, &content, &outcome)
      }
    } else {
      read(bytes, isNew: false, tuple, &content, &outcome)
    }
    if isEnd {
      numbers[tuple] = nil
      return outcome
    }
    if held + heldBytes(content) > Self.heldMaximum { content = .opaque }
    held += heldBytes(content)
    contents[tuple] = content
    return outcome
  }

  /// Goes on behind bytes that are missing.
  private func pass(over content: inout Content, _ tuple: FiveTuple, _ outcome: inout Outcome) {
    switch content {
    case .opaque: return
    case .undecided: content = .undecided([])
    case .messages(var stream):
      stream.lose()
      content = .messages(stream)
    case .http: content = .opaque
    }
    (outcome.obstacle, outcome.detail) = (.streamGap, tuple.description)
  }

  /// Whether a connection carries messages of ICE or TURN.
  func isFramed(_ tuple: FiveTuple) -> Bool {
    if case .messages? = contents[tuple] { true } else { false }
  }

  /// The bytes of a connection of which too few came to tell what it carries, since the last that
  /// are missing.
  func undecidedBytes(_ tuple: FiveTuple) -> [UInt8] {
    if case .undecided(let bytes)? = contents[tuple] { bytes } else { [] }
  }

  private func isUndecided(_ content: Content) -> Bool {
    if case .undecided = content { true } else { false }
  }

  private func heldBytes(_ content: Content) -> Int {
    switch content {
    case .undecided(let bytes): bytes.count
    case .messages(let stream): stream.heldBytes
    case .http(let reader): reader.heldBytes
    case .opaque: 0
    }
  }

  /// Finds out from its first bytes, or from the other direction, what a connection carries.
  ///
  /// - Parameter before: how many of the bytes were there the last time.
  private func decide(
    _ bytes: [UInt8], after before: Int, _ tuple: FiveTuple, _ outcome: inout Outcome
  ) -> Content {
    if case .messages(let other)? = contents[tuple.reversed],
      FramedStream.mayBegin(bytes, other.framing)
    {
      return .messages(FramedStream(other.framing))
    }
    guard bytes.count >= 10 else { return .undecided(bytes) }
    let span = bytes.span.bytes
    // STUN without a frame goes to a relay (RFC 8656 section 12.5); with one, between the ends of
    // a call (RFC 4571).
    if span.byte(at: 0) < 4, span.uint32(at: 4) == STUNMessage.magicCookie {
      return .messages(FramedStream(.relay))
    }
    if span.byte(at: 2) < 4, span.uint32(at: 6) == STUNMessage.magicCookie {
      return .messages(FramedStream(.length))
    }
    if span.byte(at: 0) == 22, span.byte(at: 1) == 3 {
      (outcome.obstacle, outcome.detail) = (.tls, tuple.description)
      return .opaque
    }
    if HTTPReader.begins(bytes) { return .http(HTTPReader()) }
    // It may have begun before the capture.
    for framing in FramedStream.Framing.allCases {
      if let stream = FramedStream(finding: framing, in: bytes, after: before) {
        return .messages(stream)
      }
    }
    return bytes.count < FramedStream.searchedMaximum ? .undecided(bytes) : .opaque
  }

  /// Reads further bytes, or all there are where it shows only now what a connection carries.
  private func read(
    _ bytes: [UInt8], isNew: Bool, _ tuple: FiveTuple, _ content: inout Content,
    _ outcome: inout Outcome
  ) {
    switch content {
    case .messages(var stream):
      content = .opaque
      // What was found in the middle has its bytes.
      if stream.heldBytes == 0 || !isNew { stream.append(bytes) }
      var hasLost = false
      while let message = stream.next(&hasLost) { outcome.messages.append(.datagram(message)) }
      if hasLost { (outcome.obstacle, outcome.detail) = (.streamGap, tuple.description) }
      content = .messages(stream)
    case .http(var reader):
      content = .opaque
      reader.append(bytes)
      outcome.messages += reader.takeTexts().map { .text($0) }
      if let problem = reader.problem {
        (outcome.obstacle, outcome.detail) = (.unsupported, problem)
      } else {
        content = .http(reader)
      }
    case .undecided, .opaque: break
    }
  }

  private mutating func begin(_ tuple: FiveTuple) {
    begun += 1
    contents[tuple] = .undecided([])
    numbers[tuple] = begun
    order.append((tuple, begun))
    while numbers.count > Self.connectionsMaximum, let (old, number) = order.popFirst() {
      forget(old, number)
    }
    // Those that ended stand in the order until their turn comes, or are too many.
    if order.count > 4 * Self.connectionsMaximum {
      order.removeAll { numbers[$0.tuple] != $0.number }
    }
  }

  private mutating func forget(_ tuple: FiveTuple, _ number: UInt64) {
    guard numbers[tuple] == number else { return }
    numbers[tuple] = nil
    if let old = contents.removeValue(forKey: tuple) { held -= heldBytes(old) }
  }
}
