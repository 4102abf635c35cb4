import Media
import NIOCore
import NIOPosix
import Synchronization
import Wire

/// A local socket between a room and the process that shares a screen.
final class ShareChannel: Sendable {
  private let channel: any Channel
  private let received: ReceivedMessages

  private init(_ channel: any Channel, _ received: ReceivedMessages) {
    self.channel = channel
    self.received = received
  }

  /// The received messages in order, without dropped frames; ends when the connection closes or
  /// invalid bytes arrive.
  var messages: AsyncMapSequence<AsyncStream<ShareMessage>, ShareMessage> { received.messages }

  /// Sends a message; returns false if the connection is closed, or if a frame is dropped because
  /// too much is queued.
  @discardableResult
  func send(_ message: ShareMessage) -> Bool {
    guard channel.isActive, channel.isWritable || !message.isFrame else { return false }
    channel.writeAndFlush(ByteBuffer(bytes: message.bytes), promise: nil)
    return true
  }

  func close() { channel.close(promise: nil) }

  /// Closes after sending all queued messages.
  func finish() {
    channel.writeAndFlush(ByteBuffer()).whenComplete { [channel] _ in channel.close(promise: nil) }
  }

  static func connect(path: String) async throws -> ShareChannel {
    let received = ReceivedMessages()
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(ShareReader(received))
        }
      }
      .connect(unixDomainSocketPath: path).get()
    return ShareChannel(channel, received)
  }

  /// Listens at a path until the result is closed, and passes every connection to the closure.
  static func listen(
    path: String, _ take: @escaping @Sendable (ShareChannel) -> Void
  ) async throws -> any Channel {
    try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let received = ReceivedMessages()
          try channel.pipeline.syncOperations.addHandler(ShareReader(received))
          take(ShareChannel(channel, received))
        }
      }
      .bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
  }
}

extension ShareMessage {
  var isFrame: Bool { if case .frame = self { true } else { false } }
}

/// A queue of received messages; a slow reader misses frames, but no other messages.
private final class ReceivedMessages: Sendable {
  private let (stream, continuation) = AsyncStream.makeStream(
    of: ShareMessage.self, bufferingPolicy: .bufferingOldest(ReceivedMessages.waitingMaximum))
  private let frames = Mutex(0)

  /// The maximum numbers of waiting frames, and of waiting messages in all.
  private static let framesMaximum = 8
  private static let waitingMaximum = 1_000

  var messages: AsyncMapSequence<AsyncStream<ShareMessage>, ShareMessage> {
    stream.map { message in
      if message.isFrame { self.frames.withLock { $0 -= 1 } }
      return message
    }
  }

  /// Adds a message, or drops a frame if too many frames are waiting; returns false if the queue is
  /// full.
  func add(_ message: ShareMessage) -> Bool {
    let isDropped = frames.withLock { frames in
      guard message.isFrame else { return false }
      guard frames < Self.framesMaximum else { return true }
      frames += 1
      return false
    }
    if isDropped { return true }
    if case .dropped = continuation.yield(message) { return false }
    return true
  }

  func finish() { continuation.finish() }
}

/// Splits the received bytes into messages.
private final class ShareReader: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  private let received: ReceivedMessages
  private var waiting = ByteBuffer()

  init(_ received: ReceivedMessages) { self.received = received }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var buffer = unwrapInboundIn(data)
    waiting.writeBuffer(&buffer)
    while let head = waiting.getBytes(at: waiting.readerIndex, length: ShareMessage.headBytes) {
      guard let count = ShareMessage.bodyCount(head) else { return context.close(promise: nil) }
      guard waiting.readableBytes >= ShareMessage.headBytes + count else { break }
      waiting.moveReaderIndex(forwardBy: ShareMessage.headBytes)
      let body = waiting.readBytes(length: count) ?? []
      guard let message = ShareMessage(kind: head[0], body: body), received.add(message) else {
        return context.close(promise: nil)
      }
    }
    waiting.discardReadBytes()
  }

  func channelInactive(context: ChannelHandlerContext) { received.finish() }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

// MARK: - ShareMessage

/// A message between a room and the process that shares a screen.
///
/// On the wire: a byte for the kind, four bytes (little-endian) for the body's length, and the
/// body.
enum ShareMessage: Hashable, Sendable {
  // Sent by the sharing process.
  case hello
  case started(width: Int, height: Int)
  /// An I420 frame: the planes Y, U and V without padding, and the time on the sharing process's
  /// clock in nanoseconds.
  case frame(width: Int, height: Int, time: Int64, samples: [UInt8])
  case paused, resumed, finished
  // Sent by the room.
  case accept
  case stop(isLeaving: Bool)
  /// The room does not accept sharing.
  case refused

  /// The maximum length of a body in bytes: enough for a frame of 4096x4096.
  static let bytesMaximum = 26 << 20
  static let headBytes = 5
  private static let largestSide = 4_096

  private var kind: UInt8 {
    switch self {
    case .hello: 1
    case .started: 2
    case .frame: 3
    case .paused: 4
    case .resumed: 5
    case .finished: 6
    case .accept: 16
    case .stop: 17
    case .refused: 18
    }
  }

  /// The encoded message, with its header.
  var bytes: [UInt8] {
    var body: [UInt8] = []
    switch self {
    case .started(let width, let height): body = littleEndian(UInt16(width), UInt16(height))
    case .frame(let width, let height, let time, let samples):
      body.reserveCapacity(12 + samples.count)
      body = littleEndian(UInt16(width), UInt16(height))
      for shift in 0..<8 { body.append(UInt8(truncatingIfNeeded: time >> (8 * Int64(shift)))) }
      body += samples
    case .stop(let isLeaving): body = [isLeaving ? 1 : 0]
    default: break
    }
    var bytes = [kind]
    bytes.reserveCapacity(ShareMessage.headBytes + body.count)
    for shift in 0..<4 { bytes.append(UInt8(truncatingIfNeeded: body.count >> (8 * shift))) }
    return bytes + body
  }

  private func littleEndian(_ numbers: UInt16...) -> [UInt8] {
    numbers.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
  }

  /// Returns the body's length from the header; nil if the length is invalid.
  static func bodyCount(_ head: [UInt8]) -> Int? {
    guard head.count >= headBytes else { return nil }
    let count = (1...4).reduce(0) { $0 | Int(head[$1]) << (8 * ($1 - 1)) }
    return count <= bytesMaximum ? count : nil
  }

  /// Parses a message; nil if it is invalid.
  init?(kind: UInt8, body: [UInt8]) {
    switch (kind, body.count) {
    case (1, 0): self = .hello
    case (2, 4):
      guard let size = ShareMessage.size(body) else { return nil }
      self = .started(width: size.width, height: size.height)
    case (3, 12...):
      guard let size = ShareMessage.size(body),
        body.count == 12 + I420Buffer.byteCount(width: size.width, height: size.height)
      else { return nil }
      let time = (0..<8).reduce(Int64(0)) { $0 | Int64(body[4 + $1]) << (8 * Int64($1)) }
      self = .frame(
        width: size.width, height: size.height, time: time, samples: Array(body[12...]))
    case (4, 0): self = .paused
    case (5, 0): self = .resumed
    case (6, 0): self = .finished
    case (16, 0): self = .accept
    case (17, 1): self = .stop(isLeaving: body[0] != 0)
    case (18, 0): self = .refused
    default: return nil
    }
  }

  private static func size(_ body: [UInt8]) -> (width: Int, height: Int)? {
    let (width, height) = (
      Int(body[0]) | Int(body[1]) << 8, Int(body[2]) | Int(body[3]) << 8
    )
    guard (2...largestSide).contains(width), (2...largestSide).contains(height) else { return nil }
    return (width, height)
  }
}
