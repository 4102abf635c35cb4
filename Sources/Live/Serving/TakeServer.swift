import Signaling
import Tape

/// Shows takes, and folders of takes, in browsers on this machine, as `retake open` does: packets,
/// SQL and media too, and takes that are being recorded as they grow.
public struct TakeServer: Sendable {
  private let server: HTTPServer

  /// The address of the page, with the token without which nothing is answered.
  public var pageURL: String { server.pageURL }

  /// Begins to serve on 127.0.0.1.
  ///
  /// - Parameters:
  ///   - paths: takes, and folders of takes.
  ///   - port: 0 finds a free one.
  ///   - tool: the program `retake`, which answers the SQL of pages in a process of its own that
  ///     can be ended at any moment; without it no queries are answered.
  /// - Throws: `TapeError` for a path with no take, `HTTPError` where the port is not to be had.
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
