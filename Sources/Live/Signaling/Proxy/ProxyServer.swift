import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import Room
import Synchronization
package import TLS

/// A reverse proxy for one server: forwards HTTP/1.1 and WebSockets, and lets a closure replace
/// signaling.
///
/// Bodies that may contain signaling are collected; all others are streamed as fast as the receiver
/// reads. The proxy connects to no other host, even if a request, redirect or description names
/// one.
package final class ProxyServer: Sendable {
  /// Replaces the signaling in a message; runs outside the network threads.
  package typealias Rewrite = @Sendable (ProxiedMessage) async -> ProxiedOutcome

  /// The address to listen on, the server to forward to, and who may call.
  package struct Settings: Sendable {
    package var host = "127.0.0.1"
    /// The port; 0 finds a free one.
    package var port = 0
    /// The server's URL: `http://HOST[:PORT]` or `https://HOST[:PORT]`.
    package var upstream: String
    /// The proxy's certificate; nil for HTTP without TLS.
    package var identity: TLSIdentity?
    /// A file with trusted certificates instead of the system's.
    package var authorities: String?
    /// Host names that requests may use, besides loopback and `host`.
    package var hosts: [String] = []
    /// Origins whose pages may call, besides the proxy's own and the server's.
    package var origins: [String] = []
    package var limits = Limits()

    package init(upstream: String) { self.upstream = upstream }
  }

  /// The limits on what clients and the server may send.
  package struct Limits: Sendable {
    /// The longest body in which signaling is replaced, and the longest WebSocket message, in
    /// bytes.
    package var bodyBytes = 4 << 20
    package var headerBytes = 64 << 10
    package var connections = 1024
    package var clientConnections = 512
    /// The size limit of all collected bodies together, in bytes.
    package var waitingBytes = 256 << 20
    /// The time limit for the head of a connection's first request, in seconds.
    package var headSeconds: Int64 = 10
    /// The time limit for a body that is collected, in seconds.
    package var bodySeconds: Int64 = 30
    /// The time limit for the next request on a connection, in seconds.
    package var idleSeconds: Int64 = 60
    /// The time limit for connecting to the server, including the TLS handshake, in seconds.
    package var connectSeconds: Int64 = 10
    /// How long the server may be silent before and during its response, and the client while it
    /// sends or reads, in seconds.
    package var silenceSeconds: Int64 = 300

    package init() {}
  }

  package let host: String
  package let port: Int
  private let isSecure: Bool
  private let channel: any Channel
  private let connections: OpenConnections

  /// The proxy's address as a URL without a path.
  package var url: String {
    let scheme = isSecure ? "https" : "http"
    return host.contains(":") ? "\(scheme)://[\(host)]:\(port)" : "\(scheme)://\(host):\(port)"
  }

  private init(
    channel: any Channel, host: String, isSecure: Bool, connections: OpenConnections
  ) {
    self.channel = channel
    self.host = channel.localAddress?.ipAddress ?? host
    port = channel.localAddress?.port ?? 0
    self.isSecure = isSecure
    self.connections = connections
  }

  /// Starts listening.
  /// - Parameter notice: receives a sentence about each message that is refused or cannot be
  ///   searched.
  /// - Throws: `HTTPError` if the address is not available or the server's URL is invalid.
  package static func listen(
    _ settings: Settings, notice: @escaping @Sendable (String) -> Void, rewrite: @escaping Rewrite
  ) async throws(HTTPError) -> ProxyServer {
    let target = try ProxyServer.target(settings.upstream)
    // Report problems with the certificate files now, not when the first client connects.
    if let identity = settings.identity { _ = try TLSHandler(.server(identity)) }
    if target.isSecure {
      _ = try TLSHandler(
        .client(host: target.host, authorities: settings.authorities, protocol: nil))
    }
    let connections = OpenConnections(
      maximum: settings.limits.connections, clientMaximum: settings.limits.clientConnections)
    let gate = ProxyGate(
      upstream: target, hosts: settings.hosts + [settings.host], origins: settings.origins,
      isSecure: settings.identity != nil)
    let route = ProxyRoute(
      target: target, authorities: settings.authorities, gate: gate, limits: settings.limits,
      memory: HTTPMemory(maximum: settings.limits.waitingBytes), numbers: ProxyNumbers(),
      notice: notice, rewrite: rewrite)
    let identity = settings.identity
    let bootstrap = ServerBootstrap.accepting(notice)
      .childChannelOption(.socketOption(.so_keepalive), value: 1)
      .childChannelInitializer { channel in
        guard connections.admit(channel) else { return channel.close() }
        return channel.eventLoop.makeCompletedFuture {
          try configure(channel, route, connections, identity)
        }
      }
    do {
      let channel = try await bootstrap.bind(host: settings.host, port: settings.port).get()
      return ProxyServer(
        channel: channel, host: settings.host, isSecure: identity != nil, connections: connections)
    } catch {
      throw HTTPError(
        reason: "cannot listen on \(settings.host):\(settings.port): \(sentence(of: error))")
    }
  }

  /// Throws an error unless a URL names a server and has no path.
  package static func check(upstream: String) throws(HTTPError) { _ = try target(upstream) }

  static func target(_ url: String) throws(HTTPError) -> HTTPTarget {
    var url = url
    for (socket, page) in [("ws://", "http://"), ("wss://", "https://")]
    where url.lowercased().hasPrefix(socket) {
      url = page + url.dropFirst(socket.count)
    }
    let target = try HTTPTarget(url)
    guard target.path == "/" else {
      throw HTTPError(
        reason: "\(url): the relay forwards to a whole server, so leave the path out, as in "
          + "https://\(target.authority)")
    }
    return target
  }

  private static func configure(
    _ channel: any Channel, _ route: ProxyRoute, _ connections: OpenConnections,
    _ identity: TLSIdentity?
  ) throws {
    var decoderLimits = NIOHTTPDecoderLimitConfiguration()
    decoderLimits.maxHeaderFieldSize = route.limits.headerBytes
    decoderLimits.maxHeaderListSize = route.limits.headerBytes
    // The proxy forwards the server's Content-Length and Transfer-Encoding, so the encoder must not
    // add these fields.
    var encoding = HTTPResponseEncoder.Configuration()
    encoding.automaticallySetFramingHeaders = false
    let pipeline = channel.pipeline.syncOperations
    if let identity { try pipeline.addHandler(TLSHandler(.server(identity))) }
    let sockets = ProxySockets(route: route, connections: connections)
    try pipeline.configureHTTPServerPipeline(
      withPipeliningAssistance: true, withServerUpgrade: sockets.configuration,
      withErrorHandling: false, withEncoderConfiguration: encoding,
      withDecoderLimitConfiguration: decoderLimits)
    try pipeline.addHandler(ProxyExchange(route, connections))
  }

  /// Stops listening and closes all connections; messages in which signaling is being replaced have
  /// two seconds to finish.
  package func shutdown() async { await connections.shutdown(channel) }
}

/// The state that all of a proxy's connections share.
struct ProxyRoute: Sendable {
  let target: HTTPTarget
  let authorities: String?
  let gate: ProxyGate
  let limits: ProxyServer.Limits
  let memory: HTTPMemory
  let numbers: ProxyNumbers
  let notice: @Sendable (String) -> Void
  let rewrite: ProxyServer.Rewrite
}

/// Numbers exchanges and WebSockets.
final class ProxyNumbers: Sendable {
  private let last = Mutex(0)

  func next() -> Int {
    last.withLock { last in
      last += 1
      return last
    }
  }
}

// MARK: - ProxySockets

/// Upgrades client connections to WebSockets once the upstream server has accepted the upgrade.
struct ProxySockets: Sendable {
  let route: ProxyRoute
  let connections: OpenConnections
  /// The server's WebSocket while the client's connection is being upgraded.
  private let opened = ProxyOpened()

  init(route: ProxyRoute, connections: OpenConnections) {
    self.route = route
    self.connections = connections
  }

  var socketLimits: WebSocketLimits {
    var limits = WebSocketLimits()
    limits.messageBytes = route.limits.bodyBytes
    limits.unreadBytes = route.limits.bodyBytes
    limits.unsentBytes = 4 * route.limits.bodyBytes
    limits.handshakeSeconds = route.limits.connectSeconds
    return limits
  }

  var configuration: NIOHTTPServerUpgradeConfiguration {
    let sockets = self
    let upgrader = NIOWebSocketServerUpgrader(
      maxFrameSize: route.limits.bodyBytes, automaticErrorHandling: false,
      shouldUpgrade: { channel, head in sockets.fields(for: head, channel) },
      upgradePipelineHandler: { channel, head in
        channel.eventLoop.makeCompletedFuture { try sockets.open(channel, head) }
      })
    return (upgraders: [upgrader], completionHandler: { _ in })
  }

  /// Returns the fields of the upgrade response; nil if the server refuses, or the request is not
  /// forwarded.
  private func fields(
    for head: HTTPRequestHead, _ channel: any Channel
  ) -> EventLoopFuture<HTTPHeaders?> {
    guard head.method == .GET, route.gate.refusal(of: head) == nil else {
      return channel.eventLoop.makeSucceededFuture(nil)
    }
    let promise = channel.eventLoop.makePromise(of: HTTPHeaders?.self)
    let scheme = route.target.isSecure ? "wss" : "ws"
    let url = "\(scheme)://\(route.target.authority)\(head.uri)"
    let names = head.headers[canonicalForm: "sec-websocket-protocol"].map { String($0) }
    let passed = route.gate.requestFields(head).filter { field in
      let name = field.name.lowercased()
      return name != "host" && name != "accept-encoding" && !name.hasPrefix("sec-websocket-")
    }.map { (name: $0.name, value: $0.value) }
    let (limits, authorities, opened, gate) = (
      socketLimits, route.authorities, opened, route.gate
    )
    Task(priority: .high) {
      guard
        let far = try? await WebSocket.connect(
          to: url, subprotocols: names, headers: passed, limits: limits, authorities: authorities)
      else { return promise.succeed(nil) }
      opened.put(far)
      let response = HTTPResponseHead(
        version: .http1_1, status: .switchingProtocols,
        headers: HTTPHeaders(far.responseFields.map { ($0.name, $0.value) }))
      var fields = HTTPHeaders()
      for field in gate.responseFields(response, to: head)
      where !field.name.lowercased().hasPrefix("sec-websocket-") {
        fields.add(name: field.name, value: field.value)
      }
      if let subprotocol = far.subprotocol {
        fields.add(name: "Sec-WebSocket-Protocol", value: subprotocol)
      }
      promise.succeed(fields)
    }
    return promise.futureResult
  }

  private func open(_ channel: any Channel, _ head: HTTPRequestHead) throws {
    let pipeline = channel.pipeline.syncOperations
    pipeline.removeHandler(context: try pipeline.context(handlerType: ProxyExchange.self))
      .assumeIsolated().whenFailure { _ in channel.close(promise: nil) }
    guard let far = opened.remove() else { return channel.close(promise: nil) }
    connections.setAnswering(channel, true)
    let limits = socketLimits
    let inbox = WebSocketInbox(limits)
    try pipeline.addHandler(WebSocketHandler(limits, isServer: true, inbox: inbox))
    let near = WebSocket(channel: channel, inbox: inbox, subprotocol: far.subprotocol)
    let bridge = ProxyBridge(
      near: near, far: far, number: route.numbers.next(), route: route,
      place: "WebSocket " + head.uri.prefix { $0 != "?" }.prefix(100))
    Task(priority: .high) { await bridge.run() }
  }
}

/// Holds the server's WebSocket while the client's connection is being upgraded; the WebSocket is
/// closed with that connection unless `remove()` is called first.
private final class ProxyOpened: Sendable {
  private let socket = Mutex<WebSocket?>(nil)

  func put(_ new: WebSocket) { socket.withLock { $0 = new } }

  func remove() -> WebSocket? {
    socket.withLock { socket in
      defer { socket = nil }
      return socket
    }
  }
}

/// Passes messages between a client's WebSocket and the server's, and replaces signaling in them.
private struct ProxyBridge: Sendable {
  let near: WebSocket
  let far: WebSocket
  let number: Int
  let route: ProxyRoute
  let place: String

  /// Passes messages in both directions until either side closes.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await pump(from: near, to: far, isFromClient: true) }
      group.addTask { await pump(from: far, to: near, isFromClient: false) }
    }
  }

  private func pump(from source: WebSocket, to sink: WebSocket, isFromClient: Bool) async {
    while let frame = await source.receive() {
      let bytes: [UInt8]
      let isText: Bool
      switch frame {
      case .text(let text): (bytes, isText) = (Array(text.utf8), true)
      case .binary(let data): (bytes, isText) = (data, false)
      }
      var message = ProxiedMessage(
        channel: number, isFromClient: isFromClient, transport: "websocket", place: place,
        type: isText ? nil : "application/octet-stream", bytes: bytes)
      if isText, !isFromClient {
        message.sendToClient = { [near] text in (try? await near.send(.text(text))) != nil }
      }
      let outcome = await route.rewrite(message)
      do throws(WebSocketError) {
        switch outcome {
        case .unchanged: try await sink.send(frame)
        case .consumed: continue
        case .replaced(let new):
          try await sink.send(
            isText ? .text(String(decoding: new, as: UTF8.self)) : .binary(new))
        case .refused(let reason):
          route.notice("\(place): \(reason)")
          // `post` cuts off the reason after 123 bytes (RFC 6455 section 5.5).
          source.post(close: .policyViolation, reason: reason)
          sink.post(close: .policyViolation, reason: "refused by a relay")
          return
        }
      } catch {
        break
      }
    }
    let closure = source.closure ?? WebSocketClosure(.goingAway, isClean: false)
    let code: WebSocketCloseCode =
      closure.code == .abnormal ? WebSocketCloseCode(rawValue: 1014) : closure.code
    await sink.close(code, reason: closure.isClean ? closure.reason : "")
    // Messages that the other end sent in the meantime are dropped.
    await source.close()
  }
}
