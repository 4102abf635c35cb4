import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A small HTTP/1.1 server for signaling: whole requests in, whole responses out.
///
/// The parser is NIO's. Header and body sizes are limited, idle connections are closed, and pages
/// from anywhere may call a server that listens on loopback, or that asks for a token (CORS).
public final class HTTPServer: Sendable {
  /// Answers a request; runs outside of the network's threads.
  public typealias Handler = @Sendable (HTTPRequest) async -> HTTPResponse

  /// What a server lets its clients do.
  public struct Limits: Sendable {
    /// The longest body in bytes; longer ones are answered with status 413.
    public var bodyBytes = 1 << 20
    /// The longest header block in bytes; longer ones are answered with status 431.
    public var headerBytes = 32 << 10
    /// How many connections are open at once; further ones are closed.
    public var connections = 256
    /// How long a connection may be silent between requests or within one.
    public var idleSeconds: Int64 = 60

    /// The limits that suit signaling.
    public init() {}
  }

  /// The address that the server listens on, with the port that was found for port 0.
  public let host: String
  /// The port that the server listens on.
  public let port: Int

  private let channel: any Channel
  private let connections: OpenConnections
  private let isSecure: Bool

  /// The server's address as a URL without a path.
  public var url: String {
    let scheme = isSecure ? "https" : "http"
    return host.contains(":") ? "\(scheme)://[\(host)]:\(port)" : "\(scheme)://\(host):\(port)"
  }

  private init(
    host: String, port: Int, channel: any Channel, connections: OpenConnections, isSecure: Bool
  ) {
    self.host = host
    self.port = port
    self.channel = channel
    self.connections = connections
    self.isSecure = isSecure
  }

  /// Starts to listen; port 0 finds a free port.
  ///
  /// - Throws: `HTTPError` when the address is not to be had.
  public static func listen(
    host: String, port: Int, limits: Limits = Limits(), handler: @escaping Handler
  ) async throws(HTTPError) -> HTTPServer {
    try await listen(host: host, port: port, limits: limits, identity: nil, handler: handler)
  }

  /// Starts to listen for HTTPS, or for HTTP without an identity.
  ///
  /// - Parameter allowsAllOrigins: whether pages from anywhere may call; nil allows it on loopback.
  package static func listen(
    host: String, port: Int, limits: Limits = Limits(), identity: TLSIdentity?,
    allowsAllOrigins: Bool? = nil, handler: @escaping Handler
  ) async throws(HTTPError) -> HTTPServer {
    // What is wrong with the files is told now, and not to the first client.
    if let identity { _ = try TLSSession(.server(identity)) }
    guard (0...65_535).contains(port) else {
      throw HTTPError(reason: "cannot listen on \(host): \(port) is not a port")
    }
    let connections = OpenConnections(maximum: limits.connections)
    let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 64)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        connections.admit(channel)
          ? configure(
            channel, limits: limits, identity: identity, allowsAllOrigins: allowsAllOrigins,
            handler: handler)
          : channel.close()
      }
    do {
      let channel = try await bootstrap.bind(host: host, port: port).get()
      return HTTPServer(
        host: channel.localAddress?.ipAddress ?? host, port: channel.localAddress?.port ?? port,
        channel: channel, connections: connections, isSecure: identity != nil)
    } catch {
      throw HTTPError(reason: "cannot listen on \(host):\(port): \(sentence(of: error))")
    }
  }

  private static func configure(
    _ channel: any Channel, limits: Limits, identity: TLSIdentity?, allowsAllOrigins: Bool?,
    handler: @escaping Handler
  ) -> EventLoopFuture<Void> {
    channel.eventLoop.makeCompletedFuture {
      var decoderLimits = NIOHTTPDecoderLimitConfiguration()
      decoderLimits.maxHeaderFieldSize = min(decoderLimits.maxHeaderFieldSize, limits.headerBytes)
      decoderLimits.maxHeaderListSize = limits.headerBytes
      let pipeline = channel.pipeline.syncOperations
      if let identity { try pipeline.addHandler(TLSHandler(.server(identity))) }
      try pipeline.configureHTTPServerPipeline(
        withPipeliningAssistance: true, withErrorHandling: false,
        withEncoderConfiguration: .init(), withDecoderLimitConfiguration: decoderLimits)
      try pipeline.addHandler(IdleStateHandler(allTimeout: .seconds(limits.idleSeconds)))
      try pipeline.addHandler(
        HTTPExchange(
          limits: limits,
          allowsAllOrigins: allowsAllOrigins ?? channel.localAddress?.isLoopback ?? false,
          handler: handler))
    }
  }

  /// Stops listening and closes all connections; answers under way have two seconds.
  public func shutdown() async {
    try? await channel.close().get()
    for connection in connections.closeAll() {
      let limit = connection.eventLoop.scheduleTask(in: .seconds(2)) {
        connection.close(promise: nil)
      }
      connection.triggerUserOutboundEvent(HTTPExchange.Farewell(), promise: nil)
      try? await connection.closeFuture.get()
      limit.cancel()
    }
  }
}

/// Why there is no HTTP exchange, in one sentence.
public struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The reason.
  public var reason: String

  /// Creates an error.
  public init(reason: String) { self.reason = reason }

  /// The reason.
  public var description: String { reason }
}

/// The reason out of an error of the network layer.
func sentence(of error: any Error) -> String {
  switch error {
  case let error as IOError: String(cString: strerror(error.errnoCode))
  case let error as NIOConnectionError:
    error.connectionErrors.first.map { sentence(of: $0.error) } ?? "no such host"
  default: "\(error)"
  }
}

/// The connections of a server, to limit and to close them.
final class OpenConnections: Sendable {
  private struct State {
    var channels: [ObjectIdentifier: any Channel] = [:]
    var isClosed = false
  }

  private let state = Mutex(State())
  private let maximum: Int

  init(maximum: Int) { self.maximum = maximum }

  /// Takes a connection in; gives false when there are too many.
  func admit(_ channel: any Channel) -> Bool {
    let id = ObjectIdentifier(channel)
    let isAdmitted = state.withLock { state in
      guard !state.isClosed, state.channels.count < maximum else { return false }
      state.channels[id] = channel
      return true
    }
    if isAdmitted {
      channel.closeFuture.whenComplete { [self] _ in
        state.withLock { state in state.channels[id] = nil }
      }
    }
    return isAdmitted
  }

  /// Takes no more connections and gives those that are open.
  func closeAll() -> [any Channel] {
    state.withLock { state in
      state.isClosed = true
      return Array(state.channels.values)
    }
  }
}

extension NIOCore.SocketAddress {
  /// Whether the address can only be reached from this machine.
  var isLoopback: Bool {
    guard let ipAddress else { return false }
    return ipAddress.hasPrefix("127.") || ipAddress == "::1"
  }
}
