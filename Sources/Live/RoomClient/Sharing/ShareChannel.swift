import NIOCore
import NIOPosix
import Synchronization

/// A local socket between a room and the process that shares a screen.
final class ShareChannel: Sendable {
  private let channel: any Channel
  /// The received messages in order; ends with the connection, or with invalid bytes.
  let messages: AsyncStream<ShareMessage>

  private init(_ channel: any Channel, _ messages: AsyncStream<ShareMessage>) {
    self.channel = channel
    self.messages = messages
  }

  /// Sends a message; false if too much is queued.
  @discardableResult
  func send(_ message: ShareMessage) -> Bool {
    guard channel.isActive, channel.isWritable || !message.isFrame else { return false }
    channel.writeAndFlush(ByteBuffer(bytes: message.bytes), promise: nil)
    return true
  }

  func close() { channel.close(promise: nil) }

  /// Closes after sending everything queued.
  func finish() {
    channel.writeAndFlush(ByteBuffer()).whenComplete { [channel] _ in channel.close(promise: nil) }
  }

  /// Connects to a socket.
  static func connect(path: String) async throws -> ShareChannel {
    let (stream, continuation) = AsyncStream.makeStream(
      of: ShareMessage.self, bufferingPolicy: .bufferingNewest(ShareChannel.waitingMaximum))
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(ShareReader(continuation))
        }
      }
      .connect(unixDomainSocketPath: path).get()
    return ShareChannel(channel, stream)
  }

  /// Listens at a path until the result is closed; every connection is passed to the closure.
  static func listen(
    path: String, _ take: @escaping @Sendable (ShareChannel) -> Void
  ) async throws -> any Channel {
    try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let (stream, continuation) = AsyncStream.makeStream(
            of: ShareMessage.self,
            bufferingPolicy: .bufferingNewest(ShareChannel.waitingMaximum))
          try channel.pipeline.syncOperations.addHandler(ShareReader(continuation))
          take(ShareChannel(channel, stream))
        }
      }
      .bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
  }

  /// The most messages that wait for a slow reader; beyond that the oldest are dropped.
  private static let waitingMaximum = 8
}

extension ShareMessage {
  var isFrame: Bool { if case .frame = self { true } else { false } }
}

/// Splits bytes into messages.
private final class ShareReader: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  private let continuation: AsyncStream<ShareMessage>.Continuation
  private var waiting = ByteBuffer()

  init(_ continuation: AsyncStream<ShareMessage>.Continuation) { self.continuation = continuation }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var buffer = unwrapInboundIn(data)
    waiting.writeBuffer(&buffer)
    while let head = waiting.getBytes(at: waiting.readerIndex, length: ShareMessage.headBytes) {
      guard let count = ShareMessage.bodyCount(head) else { return context.close(promise: nil) }
      guard waiting.readableBytes >= ShareMessage.headBytes + count else { break }
      waiting.moveReaderIndex(forwardBy: ShareMessage.headBytes)
      let body = waiting.readBytes(length: count) ?? []
      guard let message = ShareMessage(kind: head[0], body: body) else {
        return context.close(promise: nil)
      }
      continuation.yield(message)
    }
    waiting.discardReadBytes()
  }

  func channelInactive(context: ChannelHandlerContext) { continuation.finish() }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
