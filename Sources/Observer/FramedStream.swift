import ICE
import Wire

/// One direction of a TCP connection, cut into its messages; also when it is joined in the middle,
/// or when bytes of it are missing.
///
/// An endpoint gives up a stream whose frames it cannot follow. Who looks on reads its further
/// bytes until several frames follow each other whose contents are those of a call.
struct FramedStream {
  enum Framing: CaseIterable {
    /// STUN and padded channel data: to a TURN server (RFC 8656 section 12.5).
    case relay
    /// Each message after its length: between the ends (RFC 4571 section 2).
    case length
  }

  /// What stands at a place.
  private enum Head {
    case message(Range<Int>, next: Int)
    /// Too few bytes to tell, or the message goes on.
    case partial
    case none
  }

  /// How many bytes are looked through for frames.
  static let searchedMaximum = 16 << 10
  /// After how many further bytes the search is worth another try, and how many frames it looks at
  /// from each place: bytes that nearly are frames must not cost more than others.
  private static let searchStep = 256
  private static let searchedFrames = 32

  let framing: Framing
  private var bytes: [UInt8] = []
  private var start = 0
  private var isLost = false
  /// How many bytes were there when frames were looked for last.
  private var searched = 0

  /// Begins with what was read so far, most likely at the beginning of a frame.
  init(_ framing: Framing) { self.framing = framing }

  /// Begins within a stream, at the first frames that are hardly chance; nil when there are none.
  ///
  /// - Parameter searched: how many of the bytes were there at the last try.
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

  /// Bytes are missing here: what was not read yet is of no use.
  mutating func lose() { (bytes, start, isLost, searched) = ([], 0, true, 0) }

  /// The next message; nil until more bytes are there.
  ///
  /// - Parameter hasLost: set when the frames could not be followed any further.
  mutating func next(_ hasLost: inout Bool) -> [UInt8]? {
    while true {
      if isLost, !find() { return nil }
      switch Self.head(bytes.span.bytes.extracting(start..<bytes.count), framing) {
      case .message(let range, let next):
        let message = Array(bytes[start + range.lowerBound..<start + range.upperBound])
        start += next
        // One without contents keeps the connection alive.
        if !message.isEmpty { return message }
      case .partial: return nil
      case .none: (isLost, hasLost, start, searched) = (true, true, start + 1, 0)
      }
    }
  }

  /// Looks for the next frames; false until more bytes are there.
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

  /// Where frames begin that follow each other and whose contents are those of a call.
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

  /// Whether bytes may begin with a frame.
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

  /// Whether what begins at a place may be sent by an end of a call.
  private static func isOfCall(_ bytes: RawSpan, at place: Int) -> Bool {
    guard place + 1 < bytes.byteCount else { return true }
    let kind = DatagramClass(first: bytes.byte(at: place), second: bytes.byte(at: place + 1))
    guard kind == .stun, place + 8 <= bytes.byteCount else {
      return kind != .other && kind != .channelData
    }
    return bytes.uint32(at: place + 4) == STUNMessage.magicCookie
  }
}
