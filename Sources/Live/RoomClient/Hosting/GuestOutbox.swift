import Room
import Signaling

/// What waits to be sent to one participant, in order, and no more than somebody who reads could
/// miss.
///
/// Messages of others are left out for who reads too slowly, which their sender is told; what the
/// room itself tells cannot be left out, so that who does not read it at all is left instead.
struct GuestOutbox {
  /// What becomes of something that is to be sent.
  enum Outcome {
    /// It waits, and somebody sends already.
    case waits
    /// It waits, and somebody has to begin sending.
    case begins
    /// It is left out: too much waits for this participant, or nobody is there to read it.
    case leftOut
    /// The participant reads nothing; this way to it is over.
    case isOver(WebSocket)
  }

  /// How many bytes may wait before messages of others are left out.
  static let messageBytes = 512 << 10
  /// How many bytes may wait at all.
  static let bytes = 3 << 20

  private(set) var socket: WebSocket?
  private var texts: [String] = []
  private var sentCount = 0
  private(set) var waitingBytes = 0
  private var isSending = false

  init(_ socket: WebSocket) { self.socket = socket }

  var isEmpty: Bool { texts.isEmpty && !isSending }

  /// Goes on over another way, or none; what waited for the former is gone with it.
  ///
  /// - Returns: the former way, when it is another one.
  mutating func exchange(_ socket: WebSocket?) -> WebSocket? {
    let former = self.socket
    guard former !== socket else { return nil }
    self.socket = socket
    (texts, sentCount, waitingBytes) = ([], 0, 0)
    return former
  }

  mutating func append(_ text: String, isMessage: Bool) -> Outcome {
    guard let socket else { return .leftOut }
    let size = text.utf8.count
    if isMessage, waitingBytes + size > GuestOutbox.messageBytes { return .leftOut }
    guard waitingBytes + size <= GuestOutbox.bytes else {
      _ = exchange(nil)
      return .isOver(socket)
    }
    texts.append(text)
    waitingBytes += size
    guard !isSending else { return .waits }
    isSending = true
    return .begins
  }

  /// Returns the next text and its socket; nil when nothing is left, which ends sending.
  mutating func next() -> (socket: WebSocket, text: String)? {
    guard let socket, sentCount < texts.count else {
      (texts, sentCount, isSending) = ([], 0, false)
      return nil
    }
    defer { sentCount += 1 }
    return (socket, texts[sentCount])
  }

  /// A text went over a way.
  mutating func didSend(_ text: String, over socket: WebSocket) {
    if self.socket === socket { waitingBytes -= text.utf8.count }
  }
}

/// How fast a participant may make the room tell others something.
///
/// What it says beyond that waits, and so does all that comes after it on its own way.
struct SpeechAllowance {
  /// How many bytes each of the others is told on its behalf in a second, unless the room says
  /// otherwise.
  static let usualBytesPerSecond = 256 << 10
  /// How many at once.
  static let burstBytes = 1 << 20

  private let bytesPerSecond: Double
  private var bytes = burstBytes
  private var at = ContinuousClock.now

  init(bytesPerSecond: Int = usualBytesPerSecond) { self.bytesPerSecond = Double(bytesPerSecond) }

  /// Counts what was told, and gives how long to wait before more is heard.
  mutating func spend(_ count: Int, now: ContinuousClock.Instant = .now) -> Duration {
    let passed = (now - at) / .seconds(1)
    let gained = min(Double(Self.burstBytes), max(0, passed) * bytesPerSecond)
    bytes = min(Self.burstBytes, bytes + Int(gained)) - count
    at = now
    return bytes >= 0 ? .zero : .seconds(Double(-bytes) / bytesPerSecond)
  }
}
