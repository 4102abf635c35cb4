import Room
import Signaling

/// The send queue of one participant, limited to what a reading client could need.
///
/// Messages of others are dropped for a slow reader, which their sender is told. The room's own
/// messages cannot be dropped, so a participant that reads nothing is disconnected.
struct GuestOutbox {
  /// The result of queueing a text.
  enum Outcome {
    /// Queued; somebody is already sending.
    case waits
    /// Queued; the caller has to start sending.
    case begins
    /// Dropped: too much is queued for this participant, or it is not connected.
    case leftOut
    /// The participant reads nothing; this socket has to be closed.
    case isOver(WebSocket)
  }

  /// The limit in bytes beyond which messages of others are dropped.
  static let messageBytes = 512 << 10
  /// The total limit in bytes.
  static let bytes = 3 << 20

  private(set) var socket: WebSocket?
  private var texts: [String] = []
  private var sentCount = 0
  private(set) var waitingBytes = 0
  private var isSending = false

  init(_ socket: WebSocket) { self.socket = socket }

  var isEmpty: Bool { texts.isEmpty && !isSending }

  /// Replaces the socket; what is queued for the former one is dropped.
  /// - Returns: the former socket, if different.
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

  /// Returns the next text and its socket; nil if the queue is empty, which ends sending.
  mutating func next() -> (socket: WebSocket, text: String)? {
    guard let socket, sentCount < texts.count else {
      (texts, sentCount, isSending) = ([], 0, false)
      return nil
    }
    defer { sentCount += 1 }
    return (socket, texts[sentCount])
  }

  /// Records that a text was sent on a socket.
  mutating func didSend(_ text: String, over socket: WebSocket) {
    if self.socket === socket { waitingBytes -= text.utf8.count }
  }
}

/// Limits how fast a participant can make the room send to others.
///
/// Anything beyond that waits, along with all its later messages.
struct SpeechAllowance {
  /// The default limit per second on bytes to each of the others.
  static let usualBytesPerSecond = 256 << 10
  /// The burst limit in bytes.
  static let burstBytes = 1 << 20

  private let bytesPerSecond: Double
  private var bytes = burstBytes
  private var at = ContinuousClock.now

  init(bytesPerSecond: Int = usualBytesPerSecond) { self.bytesPerSecond = Double(bytesPerSecond) }

  /// Records sent bytes; returns how long to wait before the next message.
  mutating func spend(_ count: Int, now: ContinuousClock.Instant = .now) -> Duration {
    let passed = (now - at) / .seconds(1)
    let gained = min(Double(Self.burstBytes), max(0, passed) * bytesPerSecond)
    bytes = min(Self.burstBytes, bytes + Int(gained)) - count
    at = now
    return bytes >= 0 ? .zero : .seconds(Double(-bytes) / bytesPerSecond)
  }
}
