import NIOCore
import NIOHTTP1
import NIOPosix
import TLS

/// The connection to the server for one request, on the event loop of the client's connection.
final class ProxyUpstream: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  private weak var exchange: ProxyExchange?
  private let limits: ProxyServer.Limits
  private var context: ChannelHandlerContext?
  /// Parts of the request that wait until the connection is open.
  private var waiting: [HTTPClientRequestPart] = []
  private var waitingBytes = 0
  /// Whether reading the response is paused, because the client reads too slowly.
  private var isHeld = false
  private var wantsRead = false
  private var isOver = false
  private var silence: Scheduled<Void>?

  /// The number of waiting bytes at which reading from the client stops.
  private static let waitingMaximum = 256 << 10

  init(_ exchange: ProxyExchange, _ limits: ProxyServer.Limits) {
    self.exchange = exchange
    self.limits = limits
  }

  /// Connects to a route's server.
  func open(_ route: ProxyRoute, on loop: any EventLoop) {
    let bound = NIOLoopBound(self, eventLoop: loop)
    expect(within: limits.connectSeconds, "the server does not answer", loop)
    let (target, authorities, headerBytes) = (
      route.target, route.authorities, route.limits.headerBytes
    )
    ClientBootstrap(group: loop)
      .connectTimeout(.seconds(limits.connectSeconds))
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelOption(.socketOption(.so_keepalive), value: 1)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          if target.isSecure {
            try pipeline.addHandler(
              TLSHandler(
                .client(host: target.host, authorities: authorities, protocol: "http/1.1")))
          }
          var decoderLimits = NIOHTTPDecoderLimitConfiguration()
          decoderLimits.maxHeaderFieldSize = headerBytes
          decoderLimits.maxHeaderListSize = headerBytes
          try pipeline.addHTTPClientHandlers(decoderLimitConfiguration: decoderLimits)
          try pipeline.addHandler(bound.value)
        }
      }
      .connect(host: target.host, port: target.port)
      .whenFailure { error in bound.value.fail(sentence(of: error)) }
  }

  /// Sends a part of the request.
  /// - Returns: whether the client may send more immediately.
  func send(_ part: HTTPClientRequestPart) -> Bool {
    guard let context else {
      if case .body(.byteBuffer(let buffer)) = part { waitingBytes += buffer.readableBytes }
      waiting.append(part)
      return waitingBytes <= ProxyUpstream.waitingMaximum
    }
    context.writeAndFlush(wrapOutboundOut(part), promise: nil)
    return context.channel.isWritable
  }

  /// Stops or resumes reading the response.
  func hold(_ isHeld: Bool) {
    self.isHeld = isHeld
    guard !isHeld, wantsRead else { return }
    wantsRead = false
    context?.read()
  }

  /// Closes the connection without notifying the exchange.
  func close() {
    isOver = true
    silence?.cancel()
    context?.close(promise: nil)
  }

  // MARK: Events

  func channelActive(context: ChannelHandlerContext) {
    guard !isOver else { return context.close(promise: nil) }
    self.context = context
    for part in waiting { context.write(wrapOutboundOut(part), promise: nil) }
    context.flush()
    (waiting, waitingBytes) = ([], 0)
    listen(context.eventLoop)
    exchange?.upstreamIsWritable()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isOver, let exchange else { return }
    listen(context.eventLoop)
    switch unwrapInboundIn(data) {
    case .head(let head):
      guard head.status.code >= 200 else {
        if head.status == .switchingProtocols {
          fail("the server switched protocols without being asked")
        }
        return
      }
      exchange.respond(head)
    case .body(let part): exchange.respond(part)
    case .end:
      close()
      exchange.respondEnd()
    }
  }

  func read(context: ChannelHandlerContext) {
    if isHeld { wantsRead = true } else { context.read() }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { exchange?.upstreamIsWritable() }
    context.fireChannelWritabilityChanged()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    fail(error is HTTPParserError ? "the server's answer is not HTTP" : sentence(of: error))
  }

  func channelInactive(context: ChannelHandlerContext) {
    fail("the server closed the connection before its answer was complete")
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    silence?.cancel()
    self.context = nil
  }

  private func fail(_ reason: String) {
    guard !isOver else { return }
    close()
    exchange?.upstreamFailed(reason)
  }

  private func listen(_ loop: any EventLoop) {
    expect(within: limits.silenceSeconds, "the server sent nothing for too long", loop)
  }

  private func expect(within seconds: Int64, _ reason: String, _ loop: any EventLoop) {
    silence?.cancel()
    let bound = NIOLoopBound(self, eventLoop: loop)
    silence = loop.scheduleTask(in: .seconds(seconds)) {
      // While the client reads too slowly, the server is not to blame for the silence.
      guard !bound.value.isHeld else { return bound.value.listen(loop) }
      bound.value.fail(reason)
    }
  }
}
