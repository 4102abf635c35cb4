import FoundationEssentials
import Page
import Queries
import Signaling
import Tape

/// Shows takes and folders of takes in browsers on this machine, as `retake open` does.
///
/// Pages offer packets, SQL and media, and are updated while a take is being recorded.
public struct TakeServer: Sendable {
  private let server: HTTPServer

  /// The page's address, with the required token.
  public var pageURL: String { server.pageURL }

  /// Starts serving on 127.0.0.1.
  ///
  /// - Parameters:
  ///   - paths: takes, and folders of takes.
  ///   - port: 0 finds a free one.
  ///   - tool: the `retake` program, which answers SQL queries in separate processes that can be
  ///     ended at any moment; without it queries are refused.
  /// - Throws: `TapeError` for a path without a take, `HTTPError` if the port cannot be opened.
  public init(_ paths: [String], port: Int = 0, tool: String? = nil) async throws {
    let takes = try OpenTakes(paths: paths, queries: QueryProcess(tool: tool))
    await takes.readAhead()
    let routes = OpenRoutes(takes: takes)
    var access = AccessRules()
    access.wantsToken = true
    var limits = HTTPServer.Limits()
    limits.idleSeconds = 600
    server = try await HTTPServer.listen(
      host: "127.0.0.1", port: port, limits: limits, access: access
    ) { await routes.respond(to: $0) }
  }

  /// Ends the server and all its connections.
  public func shutdown() async { await server.shutdown() }
}

// MARK: - OpenRoutes

/// The HTTP interface that a served page's script uses: returns JSON and bytes.
struct OpenRoutes: Sendable {
  let takes: OpenTakes

  func respond(to request: HTTPRequest) async -> HTTPResponse {
    let isPost = ["/sql", "/csv"].contains(request.path)
    guard request.method == (isPost ? "POST" : "GET") || request.method == "HEAD" else {
      return .refusal(405, "\(request.path.prefix(100)) supports only \(isPost ? "POST" : "GET")")
    }
    do throws(OpenTakes.Refusal) {
      return try await answer(request)
    } catch {
      return .refusal(error.isUnknown ? 404 : 422, error.reason)
    }
  }

  private func answer(_ request: HTTPRequest) async throws(OpenTakes.Refusal) -> HTTPResponse {
    let name = request.query("name") ?? ""
    switch request.path {
    case "/": return page
    case "/takes": return json(await takes.catalogue())
    case "/take":
      let reading = try await takes.begin(name, isOverview: request.query("overview") != nil)
      return bytes(reading, "application/octet-stream")
    case "/late":
      let columns = try await takes.late(try number("session", request))
      return bytes(columns, "application/octet-stream")
    case "/more":
      let reading = try await takes.more(
        try number("session", request), isBrief: request.query("brief") != nil)
      return bytes(reading, "application/octet-stream")
    case "/findings": return json(try await takes.findings(name))
    case "/stats": return json(try await takes.stats(name, at: try number("at", request)))
    case "/packets":
      return json(
        try await takes.packets(
          name, filter: request.query("filter") ?? "", from: number("from", request),
          count: min(number("count", request), 500)))
    case "/packet-at":
      return json(
        try await takes.packetIndex(
          name, filter: request.query("filter") ?? "", at: number("at", request)))
    case "/packet": return json(try await takes.packet(name, row: number("row", request)))
    case "/clear": return json(try await takes.clear(name, row: number("row", request)))
    case "/media":
      let media = try await takes.media(
        name,
        PageMedia.Place(
          peer: number("peer", request), direction: request.query("direction") ?? "",
          track: number("track", request), kind: request.query("kind") ?? ""))
      var response = bytes(media.bytes, media.type)
      response.headers.append(("X-Begin", String(media.begin)))
      return response
    case "/schema":
      // If the request names a take, return that take's tables; otherwise return all tables,
      // columns and functions that queries may use, with examples.
      guard request.query("name") != nil else { return json(QuerySchema().json) }
      return json(try await takes.schema(name))
    case "/csv":
      let query = String(decoding: request.body, as: UTF8.self)
      let lines = try await takes.rows(name, sql: query, as: .csv)
      return bytes(Array(lines.utf8), "text/csv; charset=utf-8; header=present")
    case "/sql":
      let query = String(decoding: request.body, as: UTF8.self)
      return json(try await takes.rows(name, sql: query))
    default:
      throw OpenTakes.Refusal(
        "there is nothing at \(request.path.prefix(100))", isUnknown: true)
    }
  }

  private func number<Number: LosslessStringConvertible>(_ name: String, _ request: HTTPRequest)
    throws(OpenTakes.Refusal) -> Number
  {
    guard let value = request.query(name).flatMap({ Number($0) }) else {
      throw OpenTakes.Refusal("\(request.path) needs a number as \(name)")
    }
    return value
  }

  private var page: HTTPResponse {
    var response = HTTPResponse(
      type: "text/html; charset=utf-8", body: Array(ServedPage.html.utf8))
    response.headers.append(("Content-Security-Policy", ServedPage.policy))
    return hardened(response)
  }

  private func json(_ text: String) -> HTTPResponse { hardened(HTTPResponse(json: text)) }

  private func bytes(_ bytes: [UInt8], _ type: String) -> HTTPResponse {
    hardened(HTTPResponse(type: type, body: bytes))
  }

  /// Keeps browsers from storing a take or guessing another content type.
  private func hardened(_ response: HTTPResponse) -> HTTPResponse {
    var response = response
    response.headers += [
      ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
      ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin"),
    ]
    return response
  }
}
