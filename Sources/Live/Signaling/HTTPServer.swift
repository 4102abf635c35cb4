import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
package import TLS

/// A small HTTP/1.1 server for signaling, with complete requests and responses.
///
/// The parser is NIO's. Header and body sizes are limited, slow clients are disconnected, and
/// `AccessRules` decides who may call.
public final class HTTPServer: Sendable {
  /// Responds to a request; runs outside the network threads.
  public typealias Handler = @Sendable (HTTPRequest) async -> HTTPResponse

  /// Limits that keep clients from exhausting the server.
  public struct Limits: Sendable {
    /// The longest body in bytes; longer bodies get status 413.
    public var bodyBytes = 1 << 20
    /// The longest header block in bytes; longer blocks get status 431.
    public var headerBytes = 32 << 10
    /// The maximum number of open connections; if there are more, the connection that has been idle
    /// longest is closed.
    public var connections = 1024
    /// The maximum number of connections from each client address.
    public var clientConnections = 256
    /// The time limit for the head of a connection's first request, in seconds.
    public var headSeconds: Int64 = 10
    /// The time limit for a body, in seconds.
    public var bodySeconds: Int64 = 30
    /// The time limit for the next request on a connection, in seconds.
    public var idleSeconds: Int64 = 60
    /// The time limit in seconds for a client to accept each 256 KiB of a response, and the
    /// remainder at its end.
    public var sendSeconds: Int64 = 60
    /// The maximum number of bytes of requests and responses on all connections; if there are more,
    /// the status is 503.
    public var waitingBytes = 256 << 20

    /// The default limits for signaling.
    public init() {}
  }

  /// The address that the server listens on.
  public let host: String
  /// The port that the server listens on.
  public let port: Int

  private let channel: any Channel
  private let connections: OpenConnections
  private let isSecure: Bool
  /// The token that grants every right.
  package let token: BearerToken
  /// Whether every request needs the token, except for open paths.
  package let wantsToken: Bool

  /// The server's address as a URL without a path.
  public var url: String {
    let scheme = isSecure ? "https" : "http"
    return host.contains(":") ? "\(scheme)://[\(host)]:\(port)" : "\(scheme)://\(host):\(port)"
  }

  /// The page's address, with a token that grants every right.
  public var pageURL: String { url + "/#token=\(token.text)" }

  /// The address for WebSockets, without a path.
  package var webSocketURL: String { "ws" + url.dropFirst("http".count) }

  private init(
    host: String, port: Int, channel: any Channel, connections: OpenConnections,
    keeper: AccessGate.Keeper
  ) {
    self.host = host
    self.port = port
    self.channel = channel
    self.connections = connections
    isSecure = keeper.isSecure
    token = keeper.token
    wantsToken = keeper.wantsToken(listeningOn: channel.localAddress)
  }

  /// Starts listening; port 0 selects a free port.
  /// - Throws: `HTTPError` if the address is not available.
  public static func listen(
    host: String, port: Int, limits: Limits = Limits(), access: AccessRules = AccessRules(),
    handler: @escaping Handler
  ) async throws(HTTPError) -> HTTPServer {
    try await listen(
      host: host, port: port, limits: limits, access: access, identity: nil, handler: handler)
  }

  /// Starts listening for HTTP and WebSockets, with TLS if there is an identity.
  /// - Parameter notice: receives a sentence when a resource is exhausted.
  package static func listen(
    host: String, port: Int, limits: Limits = Limits(), access: AccessRules = AccessRules(),
    identity: TLSIdentity?, sockets: [WebSocketRoute] = [],
    notice: @escaping @Sendable (String) -> Void = { _ in }, handler: @escaping Handler
  ) async throws(HTTPError) -> HTTPServer {
    // Report problems with the certificate files now, not when the first client connects.
    if let identity { _ = try TLSHandler(.server(identity)) }
    guard (0...65_535).contains(port) else {
      throw HTTPError(reason: "cannot listen on \(host): \(port) is not a port")
    }
    let connections = OpenConnections(
      maximum: limits.connections, clientMaximum: limits.clientConnections)
    let keeper = AccessGate.Keeper(
      rules: access, listenedName: host, spareToken: BearerToken.random(),
      isSecure: identity != nil)
    let memory = HTTPMemory(maximum: limits.waitingBytes)
    let bootstrap = ServerBootstrap.accepting(notice)
      .childChannelInitializer { channel in
        connections.admit(channel)
          ? configure(
            channel, limits: limits, connections: connections, keeper: keeper, memory: memory,
            identity: identity, sockets: sockets, handler: handler)
          : channel.close()
      }
    do {
      let channel = try await bootstrap.bind(host: host, port: port).get()
      return HTTPServer(
        host: channel.localAddress?.ipAddress ?? host, port: channel.localAddress?.port ?? port,
        channel: channel, connections: connections, keeper: keeper)
    } catch {
      throw HTTPError(reason: "cannot listen on \(host):\(port): \(sentence(of: error))")
    }
  }

  private static func configure(
    _ channel: any Channel, limits: Limits, connections: OpenConnections,
    keeper: AccessGate.Keeper, memory: HTTPMemory, identity: TLSIdentity?,
    sockets: [WebSocketRoute], handler: @escaping Handler
  ) -> EventLoopFuture<Void> {
    channel.eventLoop.makeCompletedFuture {
      var decoderLimits = NIOHTTPDecoderLimitConfiguration()
      decoderLimits.maxHeaderFieldSize = min(decoderLimits.maxHeaderFieldSize, limits.headerBytes)
      decoderLimits.maxHeaderListSize = limits.headerBytes
      let pipeline = channel.pipeline.syncOperations
      let gate = AccessGate(
        keeper, listening: channel.parent?.localAddress, local: channel.localAddress)
      let upgrading = WebSocketUpgrading(routes: sockets, gate: gate, connections: connections)
      if let identity { try pipeline.addHandler(TLSHandler(.server(identity))) }
      try pipeline.configureHTTPServerPipeline(
        withPipeliningAssistance: true,
        withServerUpgrade: sockets.isEmpty ? nil : upgrading.configuration,
        withErrorHandling: false, withEncoderConfiguration: .init(),
        withDecoderLimitConfiguration: decoderLimits)
      try pipeline.addHandler(
        HTTPExchange(limits: limits, connections: connections, gate: gate, memory: memory) {
          request in
          if let response = gate.cookieResponse(to: request) { return response }
          if let socket = sockets.first(where: { $0.matches(request) }) {
            return socket.refusal(of: request)
          }
          return await handler(request)
        })
    }
  }

  /// Stops listening and closes all connections; responses in progress have two seconds to finish.
  public func shutdown() async { await connections.shutdown(channel) }
}

/// A failed HTTP exchange, with one sentence that says why.
public struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What went wrong, in one sentence.
  public var reason: String

  /// Creates an error with a reason in one sentence.
  public init(reason: String) { self.reason = reason }

  /// The same as `reason`.
  public var description: String { reason }
}

/// Returns the reason for a network-layer error.
func sentence(of error: any Error) -> String {
  switch error {
  case let error as IOError: String(cString: strerror(error.errnoCode))
  case is ChannelError: "the connection is closed"
  case let error as NIOConnectionError:
    error.connectionErrors.first.map { sentence(of: $0.error) } ?? "no such host"
  default: "\(error)"
  }
}

extension NIOCore.SocketAddress {
  /// Whether the address is reachable only from this machine.
  var isLoopback: Bool {
    guard let ipAddress else { return false }
    return ipAddress.hasPrefix("127.") || ipAddress == "::1"
  }
}

// MARK: - OpenConnections

/// A server's open connections, whose number is limited.
///
/// If there are too many, the connection that has been idle longest is closed. A client that opens
/// hundreds of connections and sends nothing therefore loses them and does not block other clients.
final class OpenConnections: Sendable {
  private struct Entry {
    let channel: any Channel
    let client: String
    /// The `moment` at which the server began to wait for the client; nil while a request is being
    /// answered.
    var waiting: UInt64?
  }

  private struct State {
    var entries: [ObjectIdentifier: Entry] = [:]
    var counts: [String: Int] = [:]
    var moment: UInt64 = 0
    var isClosed = false

    mutating func next() -> UInt64 {
      moment += 1
      return moment
    }

    /// Removes the connection that has been idle longest, of one client or of all clients.
    mutating func removeOldest(of client: String?) -> (any Channel)? {
      let waiting = entries.filter { entry in
        entry.value.waiting != nil && (client == nil || entry.value.client == client)
      }
      let oldest = waiting.min { $0.value.waiting ?? 0 < $1.value.waiting ?? 0 }
      guard let oldest else { return nil }
      remove(oldest.key)
      return oldest.value.channel
    }

    mutating func remove(_ id: ObjectIdentifier) {
      guard let entry = entries.removeValue(forKey: id) else { return }
      let count = counts[entry.client, default: 1] - 1
      counts[entry.client] = count > 0 ? count : nil
    }
  }

  private let state = Mutex(State())
  private let maximum: Int
  private let clientMaximum: Int

  /// - Parameters:
  ///   - maximum: the maximum number of open connections.
  ///   - clientMaximum: the maximum number of open connections from one client address.
  init(maximum: Int, clientMaximum: Int) {
    self.maximum = maximum
    self.clientMaximum = clientMaximum
  }

  /// Adds a connection, closing an idle one if there are too many; returns false if none is idle,
  /// or if the server is closed.
  func admit(_ channel: any Channel) -> Bool {
    let id = ObjectIdentifier(channel)
    let client = channel.remoteAddress?.ipAddress ?? ""
    let (isAdmitted, leaving) = state.withLock { state in
      guard !state.isClosed else { return (false, nil as (any Channel)?) }
      var leaving: (any Channel)?
      if state.counts[client, default: 0] >= clientMaximum {
        leaving = state.removeOldest(of: client)
        if leaving == nil { return (false, nil) }
      } else if state.entries.count >= maximum {
        leaving = state.removeOldest(of: nil)
        if leaving == nil { return (false, nil) }
      }
      state.entries[id] = Entry(channel: channel, client: client, waiting: state.next())
      state.counts[client, default: 0] += 1
      return (true, leaving)
    }
    leaving?.close(promise: nil)
    if isAdmitted {
      channel.closeFuture.whenComplete { [self] _ in state.withLock { $0.remove(id) } }
    }
    return isAdmitted
  }

  /// Records whether a connection's request is being answered; if not, the connection is idle.
  func setAnswering(_ channel: any Channel, _ isAnswering: Bool) {
    state.withLock { state in
      let moment = isAnswering ? nil : state.next()
      state.entries[ObjectIdentifier(channel)]?.waiting = moment
    }
  }

  /// Stops listening and closes all connections; responses in progress have two seconds to finish.
  func shutdown(_ listener: any Channel) async {
    try? await listener.close().get()
    let open = state.withLock { state in
      state.isClosed = true
      return state.entries.values.map(\.channel)
    }
    // All connections share the same two seconds.
    for connection in open {
      let limit = connection.eventLoop.scheduleTask(in: .seconds(2)) {
        connection.close(promise: nil)
      }
      connection.closeFuture.whenComplete { _ in limit.cancel() }
      connection.triggerUserOutboundEvent(HTTPExchange.Farewell(), promise: nil)
    }
    for connection in open { try? await connection.closeFuture.get() }
  }
}

/// Stops accepting connections for a second when accepting fails, and reports the first failure.
///
/// The system keeps reporting waiting connections. If there are no descriptors left for them, the
/// event loop would otherwise only retry.
final class AcceptRest: ChannelInboundHandler {
  typealias InboundIn = any Channel

  private static let rest = TimeAmount.seconds(1)

  private let notice: @Sendable (String) -> Void
  private var hasSaid = false

  init(notice: @escaping @Sendable (String) -> Void) { self.notice = notice }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let error = error as? IOError,
      [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode)
    else { return context.fireErrorCaught(error) }
    if !hasSaid {
      hasSaid = true
      notice(
        "connections have to wait: \(String(cString: strerror(error.errnoCode))); raise "
          + "`ulimit -n`")
    }
    let channel = context.channel
    channel.setOption(.autoRead, value: false).whenComplete { _ in
      channel.eventLoop.scheduleTask(in: AcceptRest.rest) {
        channel.setOption(.autoRead, value: true).whenFailure { _ in channel.close(promise: nil) }
      }
    }
  }
}

extension ServerBootstrap {
  /// Creates a bootstrap for a server that sends small messages at once, and that pauses while it
  /// cannot accept further connections.
  static func accepting(_ notice: @escaping @Sendable (String) -> Void) -> ServerBootstrap {
    ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 512)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(
            AcceptRest(notice: notice), position: .first)
        }
      }
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
  }
}
