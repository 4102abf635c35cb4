import CFiles
package import Importing
import Observer
import Page
import Room
package import Signaling
package import Tape
import Wire

/// Records the calls that web pages report; `retake record page` runs it.
///
/// A page includes the script from `/page.js`, or from `/page.mjs` as a module. The script sends
/// its reports to `/socket`, and rtcstats-js sends its reports to any other path. Each session has
/// its own take.
package actor PageService {
  /// A page recorder's limits and defaults.
  package struct Settings: Sendable {
    package var label = ""
    /// The takes' tags by key.
    package var tags: [String: String] = [:]
    package var keepsMedia = true
    /// The maximum number of simultaneous sessions.
    package var sessionsMaximum = 100
    /// The maximum number of bytes of messages that one session may send.
    package var sessionBytes = 1 << 30
    /// The maximum number of bytes of messages that all sessions together may send.
    package var totalBytes = 10 << 30
    /// How long a session waits for a page that is reloading or has lost its connection.
    package var absence = Duration.seconds(60)
    /// Whether scripts send encoded frames by default.
    package var hasMedia = false
    /// The interval between readings of statistics, in milliseconds.
    package var intervalMilliseconds = 1000
    /// How to retain the last seconds of each session instead of recording takes; nil to record
    /// takes.
    package var ring: RingPlan?

    package init() {}
  }

  /// The reason that a take cannot be written.
  package typealias Failure = TapeError

  /// Returns a new take's path.
  ///
  /// The file's name begins with the prefix unless the user named the file.
  package typealias TakePath = @Sendable (_ prefix: String) throws(Failure) -> String

  /// Yields whenever a session that reported something has ended.
  package nonisolated let endedSessions: AsyncStream<Void>
  private let ended: AsyncStream<Void>.Continuation
  private let settings: Settings
  /// Whether there is only one take, so that only one session can be recorded.
  private let isSingle: Bool
  private let takePath: TakePath
  private let notice: @Sendable (String) -> Void
  private let budget: PageBudget
  private var entries: [String: Entry] = [:]
  private var isUsed = false
  private var isClosed = false
  private var summaries: [ReportedImport.Summary] = []
  private var numbers = 0

  private struct Entry {
    let session: PageSession
    /// The number of current connections, and how often that number has changed.
    var connections = 0
    var changes = 0
  }

  /// The maximum number of takes whose summaries are kept for the final report.
  private static let summariesMaximum = 10_000

  /// - Parameters:
  ///   - isSingle: whether there is only one take, so that only one session can be recorded.
  ///   - notice: receives a sentence for each problem with a take.
  package init(
    _ settings: Settings, isSingle: Bool, takePath: @escaping TakePath,
    notice: @escaping @Sendable (String) -> Void
  ) {
    self.settings = settings
    self.isSingle = isSingle
    self.takePath = takePath
    self.notice = notice
    budget = PageBudget(settings.totalBytes)
    (endedSessions, ended) = AsyncStream<Void>.makeStream()
  }

  // MARK: Sockets

  /// The path of the script's WebSocket.
  package static let socketPath = "/socket"

  /// The paths that pages send their reports to.
  package nonisolated var routes: [WebSocketRoute] {
    var limits = WebSocketLimits()
    limits.messageBytes = 4 << 20
    limits.unreadBytes = 8 << 20
    var other = WebSocketRoute(path: "/", subprotocols: ["rtcstats#*"], limits: limits) {
      await self.receive($0, $1, .rtcstats)
    }
    other.isPrefix = true
    return [
      WebSocketRoute(path: Self.socketPath, limits: limits) { await self.receive($0, $1, .script) },
      other,
    ]
  }

  private nonisolated func receive(
    _ socket: WebSocket, _ request: HTTPRequest, _ dialect: PageSession.Dialect
  ) async {
    let name: String
    switch dialect {
    case .script:
      guard let named = request.query("session"), ScriptUnit.isName(named) else {
        return socket.post(close: .policyViolation, reason: "the session has no name")
      }
      name = named
    case .rtcstats: name = await nextName()
    }
    let session: PageSession
    do throws(CallRefusal) {
      session = try await enter(name, request, dialect)
    } catch {
      await refuse(socket, dialect, error.reason)
      return
    }
    if dialect == .script { socket.post(.text(await session.greeting)) }
    reading: while let message = await socket.receive() {
      switch await session.receive(message) {
      case .nothing: break
      case .reply(let text): socket.post(.text(text))
      case .stop(let reason):
        await refuse(socket, dialect, reason)
        break reading
      }
    }
    await leave(name, dialect)
  }

  /// Closes a socket, saying why nothing more is written.
  private nonisolated func refuse(
    _ socket: WebSocket, _ dialect: PageSession.Dialect, _ reason: String
  ) async {
    if dialect == .script {
      let text = JSONText.object([("stop", .text(reason))]).text
      try? await socket.send(.text(text))
    }
    socket.post(close: .policyViolation, reason: reason)
  }

  // MARK: Sessions

  private func nextName() -> String {
    numbers += 1
    return "rtcstats \(numbers)"
  }

  private func enter(
    _ name: String, _ request: HTTPRequest, _ dialect: PageSession.Dialect
  ) throws(CallRefusal) -> PageSession {
    guard !isClosed else { throw CallRefusal(.busy, "the recording has ended") }
    if var entry = entries[name] {
      entry.connections += 1
      entry.changes += 1
      entries[name] = entry
      return entry.session
    }
    guard !isSingle || !isUsed else {
      throw CallRefusal(
        .busy,
        "--out names a single take, which already has its session: name a folder")
    }
    guard entries.count < settings.sessionsMaximum else {
      throw CallRefusal(
        .busy, "all \(settings.sessionsMaximum) sessions that --sessions allows are in use")
    }
    isUsed = true
    let prefix = dialect == .script ? "page-\(name.prefix(8))" : "rtcstats-\(numbers)"
    let session = PageSession(
      dialect, settings: settings, budget: budget, head: Self.head(of: request),
      path: { [takePath] () throws(TapeError) in try takePath(prefix) })
    var entry = Entry(session: session)
    entry.connections = 1
    entries[name] = entry
    return session
  }

  /// Returns the request's information about the client, without the token.
  private static func head(of request: HTTPRequest) -> JSONValue {
    .members(
      ("userAgent", request.header("User-Agent").map { .text($0) }),
      ("origin", request.header("Origin").map { .text($0) }),
      ("clientProtocol", request.header("Sec-WebSocket-Protocol").map { .text($0) }))
  }

  private func leave(_ name: String, _ dialect: PageSession.Dialect) async {
    guard var entry = entries[name] else { return }
    entry.connections -= 1
    entry.changes += 1
    entries[name] = entry
    guard entry.connections == 0 else { return }
    // rtcstats-js never resumes a session.
    if dialect == .rtcstats { return await end(name) }
    let changes = entry.changes
    let absence = settings.absence
    Task {
      try? await Task.sleep(for: absence)
      await self.end(name, ifStill: changes)
    }
  }

  private func end(_ name: String, ifStill changes: Int) async {
    guard let entry = entries[name], entry.connections == 0, entry.changes == changes else {
      return
    }
    await end(name)
  }

  private func end(_ name: String) async {
    guard let entry = entries.removeValue(forKey: name) else { return }
    do {
      guard let takes = try await entry.session.finish() else {
        if isSingle { isUsed = false }
        return
      }
      summaries += takes.prefix(max(0, Self.summariesMaximum - summaries.count))
    } catch {
      notice(error.description)
    }
    ended.yield()
  }

  /// Ends all sessions and completes their takes.
  ///
  /// - Returns: the takes' summaries, in the order in which sessions ended.
  package func finish() async -> [ReportedImport.Summary] {
    isClosed = true
    for name in entries.keys.sorted() { await end(name) }
    ended.finish()
    return summaries
  }

  // MARK: Scripts

  /// The script's paths: as a script and as a module.
  package static let scriptPaths: Set<String> = ["/page.js", "/page.mjs"]

  package nonisolated func respond(
    to request: HTTPRequest, webSocketScheme scheme: String, token: BearerToken
  ) -> HTTPResponse {
    guard ["GET", "HEAD", "OPTIONS"].contains(request.method) else {
      return .refusal(405, "\(request.path.prefix(100)) supports only GET")
    }
    if request.method == "OPTIONS" { return HTTPResponse(status: 204) }
    guard Self.scriptPaths.contains(request.path) else {
      return .refusal(
        404,
        "there is nothing at \(request.path.prefix(100)): scripts are at /page.js and /page.mjs")
    }
    guard let host = request.header("Host") else {
      return .refusal(400, "the request has no Host field")
    }
    var configuration = RecorderScript.Configuration(
      address: "\(scheme)://\(host)\(Self.socketPath)?token=\(token.text)")
    configuration.intervalMilliseconds = settings.intervalMilliseconds
    switch request.query("media") {
    case nil: configuration.hasMedia = settings.hasMedia
    case "encoded": configuration.hasMedia = true
    case "none": configuration.hasMedia = false
    default: return .refusal(422, "media must be encoded or none, as in /page.js?media=encoded")
    }
    let text = RecorderScript.text(configuration, isModule: request.path.hasSuffix(".mjs"))
    var response = HTTPResponse(type: "text/javascript; charset=utf-8", body: Array(text.utf8))
    response.headers += [
      ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
      // Let cross-origin isolated pages (COEP) load the script too: only the token restricts
      // access.
      ("Cross-Origin-Resource-Policy", "cross-origin"),
    ]
    return response
  }
}

// MARK: - RecorderScript

/// The script that records a page, for the page to include or for the extension to inject.
package struct RecorderScript: Sendable {
  /// What the script sends, how often, and where.
  package struct Configuration: Hashable, Sendable {
    /// The WebSocket's address, with the token in its query.
    package var address: String
    /// Whether encoded frames are sent.
    package var hasMedia = false
    /// The interval between readings of statistics, in milliseconds.
    package var intervalMilliseconds = 1000
    /// Whether another script of the extension opens the socket.
    package var isRelayed = false

    package init(address: String) { self.address = address }

    var line: String {
      // Escape `<`, so that no value can end the script element in which the script is embedded.
      let json = JSONText.object([
        ("address", .text(address)), ("media", .flag(hasMedia)),
        ("interval", .integer(intervalMilliseconds)), ("relay", .flag(isRelayed)),
      ]).text.replacing("<", with: "\\u003c")
      return "const retakeConfiguration = \(json);\n"
    }
  }

  /// All modules joined into one.
  private static let joined = PageScript(of: "main.js", in: modules)

  /// The reasons why the modules cannot be joined; a test checks that there are none.
  package static var problems: [String] { joined.problems }

  private static let modules: [String: String] = {
    var found: [String: String] = [:]
    var index: UInt32 = 0
    while let name = cfiles_recorder_module_name(index), let text = cfiles_recorder_module(index) {
      found[String(cString: name)] = String(cString: text)
      index += 1
    }
    return found
  }()

  /// Returns the script for `<script src>` or a console, or as a module that exports `recorder`.
  package static func text(_ configuration: Configuration, isModule: Bool = false) -> String {
    "(() => {\n\"use strict\";\n" + configuration.line + joined.text + "})();\n"
      + (isModule ? "export const recorder = globalThis.retakeRecorder;\n" : "")
  }

  /// Returns the extension's files with their names.
  ///
  /// - Parameter origins: the origins to record, such as `https://app.example`.
  package static func extensionFiles(
    _ configuration: Configuration, origins: [String]
  ) -> [(name: String, text: String)] {
    var configuration = configuration
    configuration.isRelayed = true
    let matches = JSONText.list(origins.map { .text("\($0)/*") }).text
    let manifest = String(cString: cfiles_recorder_manifest())
      .replacing("\"matches\": []", with: "\"matches\": \(matches)")
    let relay =
      "(() => {\n" + configuration.line + String(cString: cfiles_recorder_relay()) + "})();\n"
    return [
      ("manifest.json", manifest), ("relay.js", relay),
      ("recorder.js", text(configuration)),
    ]
  }
}
