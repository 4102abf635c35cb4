import NIOCore
import TLS

/// TLS between a socket and its HTTP handlers.
final class TLSHandler: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private static let farewellTime = TimeAmount.seconds(2)

  private let session: TLSSession
  private var isConnected = false
  private var isOver = false

  init(_ role: TLSRole) throws(HTTPError) {
    do throws(TLSError) {
      session = try TLSSession(role)
    } catch {
      throw HTTPError(reason: error.reason)
    }
  }

  func channelActive(context: ChannelHandlerContext) {
    // Start the handshake; HTTP starts once it is complete.
    advance(context)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var buffer = unwrapInboundIn(data)
    session.receive(buffer.readBytes(length: buffer.readableBytes) ?? [])
    advance(context)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    var buffer = unwrapOutboundIn(data)
    guard session.write(buffer.readBytes(length: buffer.readableBytes) ?? []) else {
      promise?.fail(HTTPError(reason: session.failure))
      return
    }
    send(context, promise)
  }

  func close(
    context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?
  ) {
    guard isConnected, !isOver else {
      context.close(mode: mode, promise: promise)
      return
    }
    isOver = true
    session.shutdown()
    // Send everything queued before closing.
    let farewell = context.eventLoop.makePromise(of: Void.self)
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    // A client that reads nothing must not keep the connection open.
    let limit = context.eventLoop.scheduleTask(in: TLSHandler.farewellTime) {
      bound.value.close(mode: mode, promise: nil)
    }
    farewell.futureResult.whenComplete { _ in
      limit.cancel()
      bound.value.close(mode: mode, promise: promise)
    }
    send(context, farewell)
  }

  private func advance(_ context: ChannelHandlerContext) {
    guard !isOver else { return }
    if !isConnected {
      let progress = session.handshake()
      send(context, nil)
      switch progress {
      case .waiting: return
      case .failed:
        fail(context)
        return
      case .done:
        isConnected = true
        context.fireChannelActive()
      }
    }
    while !isOver {
      switch session.read() {
      case .bytes(let bytes):
        context.fireChannelRead(wrapInboundOut(context.channel.allocator.buffer(bytes: bytes)))
      case .waiting:
        send(context, nil)
        context.fireChannelReadComplete()
        return
      case .closed:
        isOver = true
        context.close(promise: nil)
      case .failed: fail(context)
      }
    }
  }

  private func fail(_ context: ChannelHandlerContext) {
    isOver = true
    context.fireErrorCaught(HTTPError(reason: session.failure))
    context.close(promise: nil)
  }

  private func send(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
    let bytes = session.drainOutput()
    guard promise != nil || !bytes.isEmpty else { return }
    // Even an empty write completes only after all earlier writes.
    context.writeAndFlush(
      wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: promise)
  }
}
