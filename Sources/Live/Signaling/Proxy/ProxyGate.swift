import NIOCore
import NIOHTTP1

/// Decides which requests a proxy forwards, and rewrites fields that name the proxy or the server.
///
/// A proxy calls only one server. Other web pages must not reach that server through the proxy, so
/// requests for other host names (DNS rebinding) and requests from pages of other origins are
/// refused. Pages of the proxy's origin and of the server's origin may call.
struct ProxyGate: Sendable {
  /// The server, as `scheme://authority`.
  let upstreamOrigin: String
  let upstreamAuthority: String
  private let names: Set<HostName>
  private let origins: Set<String>
  private let isSecure: Bool

  /// - Parameters:
  ///   - hosts: host names that requests may use, besides loopback.
  ///   - origins: further origins whose pages may call.
  init(upstream: HTTPTarget, hosts: [String], origins: [String], isSecure: Bool) {
    let scheme = upstream.isSecure ? "https" : "http"
    upstreamAuthority = upstream.authority
    upstreamOrigin = "\(scheme)://\(upstream.authority)".lowercased()
    names = Set(hosts.map { HostName($0) })
    self.origins = Set(origins.map { $0.lowercased() })
    self.isSecure = isSecure
  }

  /// Returns the refusal of a request; nil if the request is forwarded.
  func refusal(of head: HTTPRequestHead) -> HTTPResponse? {
    guard head.uri.hasPrefix("/"), head.method != .CONNECT, head.method != .TRACE else {
      return .refusal(400, "the relay forwards only requests for a path on its server")
    }
    let hosts = head.headers["host"]
    guard hosts.count == 1, let host = hosts.first, let authority = Authority(host) else {
      return .refusal(400, "the request must have exactly one Host field")
    }
    guard authority.name.isLoopback || names.contains(authority.name) else {
      return .refusal(
        421,
        "this relay does not answer to the name \(authority.name.text.prefix(100)); start it with "
          + "--allow-host to allow that name")
    }
    if let origin = head.headers.first(name: "origin")?.lowercased() {
      guard origin == ownOrigin(host) || origin == upstreamOrigin || origins.contains(origin) else {
        return .refusal(
          403,
          "pages of \(origin.prefix(100)) may not call this relay; start it with --allow-origin to "
            + "allow them")
      }
      return nil
    }
    // Without an Origin field, only the page's site is known (Fetch Metadata).
    guard head.headers.first(name: "sec-fetch-site") == "cross-site", origins.isEmpty,
      head.headers.first(name: "sec-fetch-mode") != "navigate"
    else { return nil }
    return .refusal(403, "pages of other origins may not call this relay")
  }

  /// Returns the proxy's origin with the host name that a request uses.
  private func ownOrigin(_ host: String) -> String {
    "\(isSecure ? "https" : "http")://\(host)".lowercased()
  }

  // MARK: Requests

  /// Fields that concern a single connection (RFC 9110 section 7.6.1), and fields that the proxy
  /// sets itself.
  private static let connectionFields: Set<String> = [
    "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization",
    "te", "trailer", "transfer-encoding", "upgrade",
  ]

  /// Returns the fields of a request for the server.
  ///
  /// The fields decline compressed bodies, because the proxy replaces signaling in bodies.
  func requestFields(_ head: HTTPRequestHead) -> HTTPHeaders {
    var fields = ProxyGate.passed(head.headers)
    let host = head.headers.first(name: "host") ?? ""
    fields.replaceOrAdd(name: "Host", value: upstreamAuthority)
    fields.replaceOrAdd(name: "Accept-Encoding", value: "identity")
    fields.remove(name: "expect")
    let own = ownOrigin(host)
    if fields.first(name: "origin")?.lowercased() == own {
      fields.replaceOrAdd(name: "Origin", value: upstreamOrigin)
    }
    if let referer = fields.first(name: "referer"), referer.lowercased().hasPrefix(own + "/") {
      fields.replaceOrAdd(name: "Referer", value: upstreamOrigin + referer.dropFirst(own.count))
    }
    return fields
  }

  /// Removes the fields that concern a single connection, and returns the others.
  private static func passed(_ fields: HTTPHeaders) -> HTTPHeaders {
    let named = Set(fields[canonicalForm: "connection"].map { $0.lowercased() })
    return HTTPHeaders(
      fields.filter { field in
        let name = field.name.lowercased()
        return !connectionFields.contains(name) && !named.contains(name)
      }.map { ($0.name, $0.value) })
  }

  // MARK: Responses

  /// Returns the fields of a response for the client.
  func responseFields(_ head: HTTPResponseHead, to request: HTTPRequestHead) -> HTTPHeaders {
    let host = request.headers.first(name: "host") ?? ""
    var fields = HTTPHeaders()
    for (name, value) in ProxyGate.passed(head.headers) {
      switch name.lowercased() {
      // A browser would apply this policy to every server on the proxy's host.
      case "strict-transport-security": continue
      case "location", "content-location":
        fields.add(name: name, value: relocated(value, host))
      case "set-cookie": fields.add(name: name, value: cookie(value))
      case "access-control-allow-origin" where value.lowercased() == upstreamOrigin:
        fields.add(name: name, value: request.headers.first(name: "origin") ?? value)
      default: fields.add(name: name, value: value)
      }
    }
    addPermission(to: &fields, for: request)
    return fields
  }

  /// Returns a redirect's target, in which the proxy replaces the server; other targets are
  /// unchanged.
  private func relocated(_ place: String, _ host: String) -> String {
    let rest = place.dropFirst(upstreamOrigin.count)
    guard place.lowercased().hasPrefix(upstreamOrigin),
      rest.isEmpty || ["/", "?", "#"].contains(rest.first)
    else { return place }
    return ownOrigin(host) + rest
  }

  /// Returns a cookie for the proxy's host: without `Domain` and, if the proxy has no TLS, without
  /// attributes that require TLS.
  private func cookie(_ text: String) -> String {
    let parts = text.split(separator: ";", omittingEmptySubsequences: false)
    let kept = parts.enumerated().compactMap { index, part -> String? in
      let word = part.trimmed.lowercased()
      if index == 0 { return String(part) }
      if word.hasPrefix("domain=") { return nil }
      guard !isSecure else { return String(part) }
      if word == "secure" || word == "partitioned" { return nil }
      return word == "samesite=none" ? " SameSite=Lax" : String(part)
    }
    return kept.joined(separator: ";")
  }

  // MARK: Pages of the server

  /// Returns whether a request comes from one of the server's pages, for which the proxy is another
  /// origin.
  private func isOfServersPage(_ request: HTTPRequestHead) -> Bool {
    guard let origin = request.headers.first(name: "origin")?.lowercased() else { return false }
    return origin == upstreamOrigin
      && origin != ownOrigin(request.headers.first(name: "host") ?? "")
  }

  /// Returns the fields that answer a CORS preflight from one of the server's pages; nil for other
  /// requests, which the server answers.
  func preflight(_ request: HTTPRequestHead) -> HTTPHeaders? {
    guard request.method == .OPTIONS, isOfServersPage(request),
      let method = request.headers.first(name: "access-control-request-method")
    else { return nil }
    var fields = HTTPHeaders()
    addPermission(to: &fields, for: request)
    fields.add(name: "Access-Control-Allow-Methods", value: method)
    if let names = request.headers.first(name: "access-control-request-headers") {
      fields.add(name: "Access-Control-Allow-Headers", value: names)
    }
    fields.add(name: "Access-Control-Max-Age", value: "600")
    return fields
  }

  /// Allows the server's pages to read the responses that they could read without the proxy.
  private func addPermission(to fields: inout HTTPHeaders, for request: HTTPRequestHead) {
    if request.headers.first(name: "access-control-request-private-network") == "true" {
      fields.replaceOrAdd(name: "Access-Control-Allow-Private-Network", value: "true")
    }
    guard isOfServersPage(request), !fields.contains(name: "access-control-allow-origin"),
      let origin = request.headers.first(name: "origin")
    else { return }
    fields.add(name: "Access-Control-Allow-Origin", value: origin)
    fields.add(name: "Access-Control-Allow-Credentials", value: "true")
    let readable = Set(fields.map { $0.name.lowercased() })
      .filter { !$0.hasPrefix("access-control-") && $0 != "set-cookie" }
    if !readable.isEmpty {
      fields.add(
        name: "Access-Control-Expose-Headers", value: readable.sorted().joined(separator: ", "))
    }
    fields.add(name: "Vary", value: "Origin")
  }
}

// MARK: - Bodies

/// How a body is forwarded.
enum ProxiedBody {
  /// In parts as they arrive, because it contains no signaling.
  case stream
  /// Complete, with its signaling replaced.
  case whole
  /// Line by line: a stream of events.
  case lines

  private static let texts: Set<String> = [
    "application/json", "text/json", "text/plain", "application/sdp",
    "application/trickle-ice-sdpfrag", "application/x-www-form-urlencoded", "application/xml",
    "text/xml", "application/xmpp+xml", "multipart/form-data", "multipart/mixed",
  ]
  private static let streams: Set<String> = [
    "text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl",
  ]
  private static let binaries: Set<String> = [
    "application/x-protobuf", "application/protobuf", "application/vnd.google.protobuf",
    "application/x-google-protobuf", "application/grpc", "application/grpc-web",
    "application/grpc-web+proto", "application/msgpack", "application/x-msgpack",
    "application/cbor", "application/connect+proto", "application/proto",
  ]

  /// Determines how to forward a body from its Content-Type; a body without that field is forwarded
  /// whole.
  init(_ fields: HTTPHeaders) {
    guard let field = fields.first(name: "content-type") else {
      self = .whole
      return
    }
    let type = String(field.prefix { $0 != ";" }[...].trimmed).lowercased()
    if ProxiedBody.streams.contains(type) {
      self = .lines
    } else if ProxiedBody.texts.contains(type) || ProxiedBody.binaries.contains(type)
      || type.hasSuffix("+json")
    {
      self = .whole
    } else {
      self = .stream
    }
  }

  /// Returns the content encoding (RFC 9110 section 8.4) that keeps a body from being searched; nil
  /// if there is none.
  static func encoding(_ fields: HTTPHeaders) -> String? {
    let named = fields[canonicalForm: "content-encoding"].map { $0.lowercased() }
      .filter { $0 != "identity" && !$0.isEmpty }
    return named.isEmpty ? nil : named.joined(separator: ", ")
  }
}

/// A message from a client or a server that may contain signaling.
package struct ProxiedMessage: Sendable {
  /// Identifies the message's WebSocket or HTTP exchange.
  package var channel: Int
  package var isFromClient: Bool
  /// `http` or `websocket`.
  package var transport: String
  /// The message's request, such as `POST /whip`.
  package var place: String
  /// The request's path and query.
  package var path = ""
  /// The path and query that the response's `Location` field names; nil if it names none.
  package var location: String?
  /// The media type; nil if there is none.
  package var type: String?
  package var bytes: [UInt8]
  /// Sends the client a further text over the WebSocket of the server's message, and returns
  /// whether it was sent; nil over HTTP, and for the client's own messages.
  package var sendToClient: (@Sendable (String) async -> Bool)?

  package init(
    channel: Int, isFromClient: Bool, transport: String, place: String, type: String?,
    bytes: [UInt8]
  ) {
    self.channel = channel
    self.isFromClient = isFromClient
    self.transport = transport
    self.place = place
    self.type = type
    self.bytes = bytes
  }
}

/// The decision about a message.
package enum ProxiedOutcome: Sendable {
  case unchanged
  case replaced([UInt8])
  /// The message was for the relay, and is not forwarded.
  case consumed
  /// The message must not be forwarded; one sentence says why.
  case refused(String)
}
