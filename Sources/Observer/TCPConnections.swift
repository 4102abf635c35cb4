import DequeModule
import ICE
import Wire

/// The contents of TCP connections: ICE and TURN messages, and unencrypted signaling.
struct TCPConnections {
  enum Message {
    /// A message that would be a datagram over UDP.
    case datagram([UInt8])
    /// The text of a body or WebSocket message.
    case text([UInt8])
  }

  /// The messages that newly received bytes completed.
  struct Outcome {
    var messages: [Message] = []
    /// The reason that the rest cannot be read; nil as long as it can be read.
    var obstacle: CoverageReport.Kind?
    var detail = ""
  }

  private enum Content {
    /// Not classified yet; holds the bytes since the start or the last gap.
    case undecided([UInt8])
    case messages(FramedStream)
    case http(HTTPReader)
    case opaque
  }

  private static let connectionsMaximum = 2048
  /// The limit of buffered bytes in all connections; signaling is small.
  private static let heldMaximum = 32 << 20

  private var contents: [FiveTuple: Content] = [:]
  /// Connections in the order in which they began, numbered because addresses may be reused:
  /// removing an ended connection must not affect a newer one.
  private var order = Deque<(tuple: FiveTuple, number: UInt64)>()
  private var numbers: [FiveTuple: UInt64] = [:]
  private var begun: UInt64 = 0
  private var held = 0

  /// Handles the next bytes in one direction of a connection.
  mutating func receive(_ tuple: FiveTuple, _ bytes: [UInt8], lost: Int, isEnd: Bool) -> Outcome {
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

  /// Skips missing bytes: framed messages are searched for again, but HTTP is no longer read after
  /// a gap.
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

  /// Returns whether a connection carries ICE or TURN messages.
  func isFramed(_ tuple: FiveTuple) -> Bool {
    if case .messages? = contents[tuple] { true } else { false }
  }

  /// Returns an unclassified connection's buffered bytes since the last gap.
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

  /// Classifies a connection by its first bytes, or by its other direction.
  ///
  /// - Parameter before: how many bytes the previous attempt had.
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
    // Unframed STUN goes to a relay (RFC 8656 section 12.5), framed STUN between a call's ends (RFC
    // 4571).
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
    // The connection may have begun before the capture.
    for framing in FramedStream.Framing.allCases {
      if let stream = FramedStream(finding: framing, in: bytes, after: before) {
        return .messages(stream)
      }
    }
    return bytes.count < FramedStream.searchedMaximum ? .undecided(bytes) : .opaque
  }

  /// Reads further bytes, or all buffered ones if the connection was just classified.
  private func read(
    _ bytes: [UInt8], isNew: Bool, _ tuple: FiveTuple, _ content: inout Content,
    _ outcome: inout Outcome
  ) {
    switch content {
    case .messages(var stream):
      content = .opaque
      // A stream that was found in the middle of a connection already contains these bytes.
      if stream.heldBytes == 0 || !isNew { stream.append(bytes) }
      var hasLost = false
      while let message = stream.next(&hasLost) { outcome.messages.append(.datagram(message)) }
      if hasLost { (outcome.obstacle, outcome.detail) = (.streamGap, tuple.description) }
      content = .messages(stream)
    case .http(var reader):
      content = .opaque
      reader.append(bytes)
      outcome.messages += reader.consumeTexts().map { .text($0) }
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
    // Ended connections stay in `order` until they reach its front, or until it is too long.
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

// MARK: - FramedStream

/// Splits one direction of a TCP connection into messages, even if it starts in the middle or bytes
/// are missing.
///
/// An endpoint gives up on a stream that loses its framing. An observer reads on until several
/// consecutive frames look like a call.
struct FramedStream {
  enum Framing: CaseIterable {
    /// STUN and padded channel data, to a TURN server (RFC 8656 section 12.5).
    case relay
    /// Messages preceded by their length, between a call's ends (RFC 4571 section 2).
    case length
  }

  private enum Head {
    case message(Range<Int>, next: Int)
    /// Too few bytes, or an incomplete message.
    case partial
    case none
  }

  /// The maximum number of bytes searched for frames.
  static let searchedMaximum = 16 << 10
  /// The number of further bytes before the search is retried, and the number of frames examined
  /// from each offset: bytes that almost look like frames must not cost more than others.
  private static let searchStep = 256
  private static let searchedFrames = 32

  let framing: Framing
  private var bytes: [UInt8] = []
  private var start = 0
  private var isLost = false
  /// The number of bytes at the last search.
  private var searched = 0

  /// Begins at the start of a frame.
  init(_ framing: Framing) { self.framing = framing }

  /// Starts within a stream, at the first frames that are unlikely to be a coincidence; fails if
  /// there are none.
  ///
  /// - Parameter searched: how many bytes the previous attempt had.
  init?(finding framing: Framing, in bytes: [UInt8], after searched: Int) {
    guard bytes.count / Self.searchStep > searched / Self.searchStep,
      let place = Self.firstFrames(in: bytes, framing)
    else { return nil }
    self.init(framing)
    self.bytes = Array(bytes[place...])
  }

  var heldBytes: Int { bytes.count - start }

  mutating func append(_ further: [UInt8]) {
    if start > 0 {
      bytes.removeFirst(start)
      start = 0
    }
    bytes += further
  }

  /// Handles a gap by discarding unread bytes.
  mutating func lose() { (bytes, start, isLost, searched) = ([], 0, true, 0) }

  /// Returns the next message; nil if more bytes are needed.
  ///
  /// - Parameter hasLost: set if the framing was lost.
  mutating func next(_ hasLost: inout Bool) -> [UInt8]? {
    while true {
      if isLost, !find() { return nil }
      switch Self.head(bytes.span.bytes.extracting(start..<bytes.count), framing) {
      case .message(let range, let next):
        let message = Array(bytes[start + range.lowerBound..<start + range.upperBound])
        start += next
        // An empty message is a keep-alive.
        if !message.isEmpty { return message }
      case .partial: return nil
      case .none: (isLost, hasLost, start, searched) = (true, true, start + 1, 0)
      }
    }
  }

  /// Searches for the next frames; returns false if more bytes are needed.
  private mutating func find() -> Bool {
    append([])
    guard searched == 0 || bytes.count >= searched + Self.searchStep else { return false }
    searched = bytes.count
    if let place = Self.firstFrames(in: bytes, framing) {
      (start, isLost) = (place, false)
      return true
    }
    if bytes.count > Self.searchedMaximum {
      bytes.removeFirst(bytes.count - Self.searchedMaximum / 2)
      searched = bytes.count
    }
    return false
  }

  /// Returns the offset of the first consecutive frames that look like a call; nil if there are
  /// none.
  private static func firstFrames(in bytes: [UInt8], _ framing: Framing) -> Int? {
    let span = bytes.span.bytes
    return bytes.indices.first { place in
      var (place, evidence, frames) = (place, ContentEvidence(), 0)
      while frames < searchedFrames,
        case .message(let range, let next) = head(
          span.extracting(place..<bytes.count), framing)
      {
        var content = span.extracting(place + range.lowerBound..<place + range.upperBound)
        if framing == .relay, let (_, inner) = ChannelData.readAny(content) {
          content = content.extracting(inner)
        }
        guard evidence.add(content) else { return false }
        if evidence.isEnough { return true }
        place += next
        frames += 1
      }
      return false
    }
  }

  static func mayBegin(_ bytes: [UInt8], _ framing: Framing) -> Bool {
    if case .none = head(bytes.span.bytes, framing) { false } else { true }
  }

  private static func head(_ bytes: RawSpan, _ framing: Framing) -> Head {
    guard bytes.byteCount >= 4 else { return .partial }
    switch framing {
    case .relay:
      let length = Int(bytes.uint16(at: 2))
      switch bytes.byte(at: 0) {
      case 0...3:
        guard length % 4 == 0 else { return .none }
        if bytes.byteCount >= 8, bytes.uint32(at: 4) != STUNMessage.magicCookie { return .none }
        return whole(0..<STUNMessage.headerLength + length, of: bytes)
      case 0x40...0x7f:
        let range = 0..<ChannelData.headerLength + length
        let isOfCall = length == 0 || isOfCall(bytes, at: ChannelData.headerLength)
        return isOfCall ? whole(range, of: bytes) : .none
      default: return .none
      }
    case .length:
      let length = Int(bytes.uint16(at: 0))
      guard length == 0 || isOfCall(bytes, at: 2) else { return .none }
      return length + 2 <= bytes.byteCount
        ? .message(2..<2 + length, next: 2 + length) : .partial
    }
  }

  private static func whole(_ range: Range<Int>, of bytes: RawSpan) -> Head {
    let next = STUNMessage.padded(range.upperBound)
    return next <= bytes.byteCount ? .message(range, next: next) : .partial
  }

  /// Returns whether the bytes at an offset could have been sent by a call's endpoint.
  private static func isOfCall(_ bytes: RawSpan, at place: Int) -> Bool {
    guard place + 1 < bytes.byteCount else { return true }
    let kind = DatagramClass(first: bytes.byte(at: place), second: bytes.byte(at: place + 1))
    guard kind == .stun, place + 8 <= bytes.byteCount else {
      return kind != .other && kind != .channelData
    }
    return bytes.uint32(at: place + 4) == STUNMessage.magicCookie
  }
}
