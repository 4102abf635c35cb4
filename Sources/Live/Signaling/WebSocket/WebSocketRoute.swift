import NIOCore
import NIOHTTP1
import NIOWebSocket

/// A path for WebSockets on a server, and its handler.
package struct WebSocketRoute: Sendable {
  /// Handles a WebSocket, which is closed once this returns.
  package typealias Handler = @Sendable (WebSocket, HTTPRequest) async -> Void

  /// The path, such as `/rooms`.
  package var path: String
  /// Whether the route also serves longer paths with this prefix, unless an earlier route serves
  /// them.
  package var isPrefix = false
  /// The supported subprotocols in order of preference.
  ///
  /// A client that requests none of them is refused; empty if none is required. An entry that ends
  /// in an asterisk matches every subprotocol with that prefix.
  package var subprotocols: [String]
  package var limits: WebSocketLimits
  package var handler: Handler

  package init(
    path: String, subprotocols: [String] = [], limits: WebSocketLimits = WebSocketLimits(),
    handler: @escaping Handler
  ) {
    self.path = path
    self.subprotocols = subprotocols
    self.limits = limits
    self.handler = handler
  }

  /// Returns the subprotocol to use with a client; nil if there is none in common.
  func subprotocol(for request: HTTPRequest) -> String? {
    let named = (request.header("Sec-WebSocket-Protocol") ?? "").split(separator: ",")
      .map { $0.trimmed }
    for known in subprotocols {
      guard known.hasSuffix("*") else {
        if named.contains(known[...]) { return known }
        continue
      }
      if let name = named.first(where: { $0.hasPrefix(known.dropLast()) }) { return String(name) }
    }
    return nil
  }

  /// Returns whether the route serves a request; a prefix route only serves requests for a
  /// WebSocket.
  func matches(_ request: HTTPRequest) -> Bool {
    guard isPrefix else { return path == request.path }
    return request.path.hasPrefix(path) && request.header("Upgrade")?.lowercased() == "websocket"
  }

  /// Returns whether the client supports one of the route's subprotocols, or none is required.
  func speaks(with request: HTTPRequest) -> Bool {
    subprotocols.isEmpty || subprotocol(for: request) != nil
  }

  /// Returns the response to a request that does not ask for a WebSocket, or asks in an unsupported
  /// way (RFC 6455 section 4.2.2).
  func refusal(of request: HTTPRequest) -> HTTPResponse {
    guard request.header("Upgrade")?.lowercased() == "websocket" else {
      var response = HTTPResponse.refusal(426, "\(path) accepts only WebSockets")
      response.headers.append(("Upgrade", "websocket"))
      return response
    }
    if request.header("Sec-WebSocket-Version") != "13" {
      var response = HTTPResponse.refusal(426, "this server supports only WebSocket version 13")
      response.headers.append(("Upgrade", "websocket"))
      response.headers.append(("Sec-WebSocket-Version", "13"))
      return response
    }
    guard !speaks(with: request) else {
      return .refusal(400, "the WebSocket request is incomplete, or not the first request")
    }
    let names = subprotocols.joined(separator: " or ")
    return .refusal(400, "\(path) needs the subprotocol \(names); offer it")
  }
}

/// Upgrades connections to WebSockets if their first request asks for that.
struct WebSocketUpgrading: Sendable {
  let routes: [WebSocketRoute]
  let gate: AccessGate
  let connections: OpenConnections

  /// The upgrade step for the HTTP pipeline, which checks a connection's first request.
  var configuration: NIOHTTPServerUpgradeConfiguration {
    let upgrading = self
    let upgrader = NIOWebSocketServerUpgrader(
      maxFrameSize: routes.map(\.limits.messageBytes).max() ?? 0, automaticErrorHandling: false,
      shouldUpgrade: { channel, head in
        channel.eventLoop.makeSucceededFuture(upgrading.fields(for: head))
      },
      upgradePipelineHandler: { channel, head in
        channel.eventLoop.makeCompletedFuture { try upgrading.open(channel, head) }
      })
    return (upgraders: [upgrader], completionHandler: { _ in })
  }

  private func route(for request: HTTPRequest) -> WebSocketRoute? {
    routes.first { $0.matches(request) }
  }

  /// Returns the response's fields; nil if the request is answered as plain HTTP.
  private func fields(for head: HTTPRequestHead) -> HTTPHeaders? {
    let request = HTTPRequest(head)
    guard head.method == .GET, gate.refusal(of: request) == nil,
      let route = route(for: request), route.speaks(with: request)
    else { return nil }
    guard let subprotocol = route.subprotocol(for: request) else { return HTTPHeaders() }
    return ["Sec-WebSocket-Protocol": subprotocol]
  }

  private func open(_ channel: any Channel, _ head: HTTPRequestHead) throws {
    let request = HTTPRequest(head)
    let pipeline = channel.pipeline.syncOperations
    pipeline.removeHandler(context: try pipeline.context(handlerType: HTTPExchange.self))
      .assumeIsolated().whenFailure { _ in channel.close(promise: nil) }
    guard let route = route(for: request) else { return }
    // From here on, an idle connection is normal, and pings detect failures.
    connections.setAnswering(channel, true)
    let inbox = WebSocketInbox(route.limits)
    try pipeline.addHandler(WebSocketHandler(route.limits, isServer: true, inbox: inbox))
    let socket = WebSocket(
      channel: channel, inbox: inbox, subprotocol: route.subprotocol(for: request))
    // A client is waiting, so the task runs before background work.
    Task(priority: .high) {
      await route.handler(socket, request)
      await socket.close()
    }
  }
}
