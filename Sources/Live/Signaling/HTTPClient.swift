import NIOCore
import NIOHTTP1
import NIOPosix
import TLS

/// A minimal HTTP/1.1 client for signaling: one connection per request, complete bodies.
public struct HTTPClient: Sendable {
  /// The time limit for a request, from resolving the host to the last byte.
  public var timeout: Duration
  /// The longest accepted body in bytes.
  public var bodyMaximum = 4 << 20
  /// A file with trusted certificates instead of the system's.
  package var authorities: String?

  /// Creates a client with a time limit for each request.
  public init(timeout: Duration = .seconds(10)) { self.timeout = timeout }

  /// Requests a resource with GET.
  public func get(_ url: String) async throws(HTTPError) -> HTTPResponse {
    try await send("GET", url)
  }

  /// Sends JSON with POST, as `application/json`.
  public func post(_ url: String, json: String) async throws(HTTPError) -> HTTPResponse {
    try await send("POST", url, body: Array(json.utf8), type: "application/json")
  }

  /// Sends a request to `http://host:port/path?query` or an `https://` URL.
  /// - Throws: `HTTPError` if there is no complete response in time or the task is cancelled; a
  ///   status is never an error.
  public func send(_ method: String, _ url: String, body: [UInt8]? = nil, type: String? = nil)
    async throws(HTTPError) -> HTTPResponse
  {
    let fields = type.map { [(name: "Content-Type", value: $0)] } ?? []
    return try await send(method, url, headers: fields, body: body)
  }

  /// Sends a request with additional header fields.
  package func send(
    _ method: String, _ url: String, headers fields: [(name: String, value: String)],
    body: [UInt8]? = nil
  ) async throws(HTTPError) -> HTTPResponse {
    let target = try HTTPTarget(url)
    var headers = HTTPHeaders([("Host", target.authority), ("Connection", "close")])
    headers.add(contentsOf: fields.map { ($0.name, $0.value) })
    if let body { headers.add(name: "Content-Length", value: String(body.count)) }
    let head = HTTPRequestHead(
      version: .http1_1, method: HTTPMethod(rawValue: method), uri: target.path, headers: headers)
    let group = MultiThreadedEventLoopGroup.singleton
    let loop = group.next()
    let promise = loop.makePromise(of: HTTPResponse.self)
    let bodyMaximum = bodyMaximum
    let authorities = authorities
    // Set a longer time limit here than the deadline below, which covers the complete exchange and
    // has its own message.
    let connection = ClientBootstrap(group: loop)
      .connectTimeout(TimeAmount(timeout * 2))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          if target.isSecure {
            let role = TLSRole.client(
              host: target.host, authorities: authorities, protocol: "http/1.1")
            try pipeline.addHandler(TLSHandler(role))
          }
          try pipeline.addHTTPClientHandlers()
          try pipeline.addHandler(
            HTTPRetrieval(head: head, body: body ?? [], bodyMaximum: bodyMaximum, promise: promise))
        }
      }
      .connect(host: target.host, port: target.port)
    connection.whenFailure { promise.fail($0) }
    let deadline = loop.scheduleTask(in: TimeAmount(timeout)) {
      promise.fail(HTTPError(reason: "no answer within \(timeout)"))
    }
    let result = await withTaskCancellationHandler {
      await promise.futureResult.result()
    } onCancel: {
      promise.fail(HTTPError(reason: "the request was cancelled"))
    }
    deadline.cancel()
    connection.whenSuccess { $0.close(promise: nil) }
    switch result {
    case .success(let response): return response
    case .failure(let error): throw HTTPError(reason: "\(url): \(sentence(of: error))")
    }
  }
}

/// A URL's parts for a request.
struct HTTPTarget: Sendable {
  /// Whether the scheme is `https` or `wss`.
  var isSecure: Bool
  var host: String
  var port: Int
  /// The path with the query, at least `/`.
  var path: String
  /// The `Host` field.
  var authority: String

  /// - Parameter schemes: the scheme without TLS, and the scheme with TLS.
  init(_ url: String, schemes names: [String] = ["http", "https"]) throws(HTTPError) {
    let schemes = names.map { $0 + "://" }
    guard let scheme = schemes.first(where: { url.lowercased().hasPrefix($0) }) else {
      throw HTTPError(
        reason: "\(url): only \(schemes.joined(separator: " and ")) URLs are supported")
    }
    isSecure = scheme != schemes.first
    // Do not send a fragment; refuse spaces and control characters, which would end the request
    // line.
    let rest = url.dropFirst(scheme.count).prefix { $0 != "#" }
    guard !rest.isEmpty, rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
      throw HTTPError(reason: "\(url): not a URL")
    }
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    authority = String(rest[..<end])
    path = rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
    var name = rest[..<end]
    port = isSecure ? 443 : 80
    if let colon = name.lastIndex(of: ":"), !name[colon...].contains("]") {
      guard let number = UInt16(name[name.index(after: colon)...]) else {
        throw HTTPError(reason: "\(url): the port is not a number below 65536")
      }
      port = Int(number)
      name = name[..<colon]
    }
    if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
    guard !name.isEmpty, !name.contains("@") else {
      throw HTTPError(reason: "\(url): not a URL")
    }
    host = String(name)
  }
}

/// One request on its connection: sends it and collects the response.
private final class HTTPRetrieval: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  private let head: HTTPRequestHead
  private let body: [UInt8]
  private let bodyMaximum: Int
  private let promise: EventLoopPromise<HTTPResponse>
  private var response: HTTPResponse?

  init(
    head: HTTPRequestHead, body: [UInt8], bodyMaximum: Int, promise: EventLoopPromise<HTTPResponse>
  ) {
    self.head = head
    self.body = body
    self.bodyMaximum = bodyMaximum
    self.promise = promise
  }

  func channelActive(context: ChannelHandlerContext) {
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    if !body.isEmpty {
      let buffer = context.channel.allocator.buffer(bytes: body)
      context.write(wrapOutboundOut(.body(.byteBuffer(buffer))), promise: nil)
    }
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      guard head.status.code >= 200 else { return }
      var response = HTTPResponse(status: Int(head.status.code))
      response.headers = head.headers.map { ($0.name, $0.value) }
      self.response = response
    case .body(let part):
      guard (response?.body.count ?? 0) + part.readableBytes <= bodyMaximum else {
        fail(HTTPError(reason: "the answer is longer than \(bodyMaximum) bytes"), context)
        return
      }
      response?.body.append(contentsOf: part.readableBytesView)
    case .end:
      guard let response else { return }
      promise.succeed(response)
      context.close(promise: nil)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    fail(error is HTTPParserError ? HTTPError(reason: "the answer is not HTTP") : error, context)
  }

  func channelInactive(context: ChannelHandlerContext) {
    promise.fail(HTTPError(reason: "the connection was closed before the answer was complete"))
    context.fireChannelInactive()
  }

  private func fail(_ error: any Error, _ context: ChannelHandlerContext) {
    promise.fail(error)
    context.close(promise: nil)
  }
}

extension EventLoopFuture where Value: Sendable {
  /// Returns the outcome as a `Result` instead of throwing an error.
  fileprivate func result() async -> Result<Value, any Error> {
    do {
      return .success(try await get())
    } catch {
      return .failure(error)
    }
  }
}
