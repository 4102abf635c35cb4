import ArgumentParser
import CallRecording
import FoundationEssentials
import Importing
import PageRecording
import Signaling
import Tape

/// Records the calls that web pages report.
struct RecordPage: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "page",
    abstract: "Record what pages report about their own calls.",
    discussion: """
      Serves a script that a page includes before its own scripts. The script reports the page's \
      WebRTC calls, states, candidates, descriptions, tracks and statistics: each second, at each \
      state change, and more often while connecting. It carries on after reloads and lost \
      connections. Each session, which is a browser tab, becomes a take of the kind reported.

      The pages' origins are named with --origin. The script's address has the token; \
      ?media=encoded in it also requests the frames that the page receives. A page that cannot be \
      changed can be recorded with the Chromium extension that --extension writes, or with an \
      import() of the module in the console. Applications with rtcstats-js only need the address.

      Examples:
        retake record page --origin https://app.example --out calls/
        retake record page --origin https://app.example --extension recorder/
        retake record page --listen 127.0.0.1:8080 --origin http://localhost:3000
        retake record page --origin https://app.example --ring 60s --on finding:high
      """)

  @Option(
    name: .shortAndLong,
    help: """
      A folder for one take per session, or the take of a single session. Default: a name with the \
      time for each.
      """,
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String?

  @Option(
    help: "End the recording after this many seconds; without it, Ctrl-C ends it.",
    transform: Taking.seconds(0.001...1_000_000))
  var seconds: Double?

  @Option(help: "Free text stored in the takes.", transform: Taking.text())
  var label = ""

  @OptionGroup var tagging: TagOption

  @OptionGroup var listening: ListenOptions

  /// The media that scripts send.
  enum Media: String, ExpressibleByArgument, CaseIterable {
    case none, encoded
  }

  @Option(
    help: """
      Whether scripts send the encoded frames that pages receive, if their address does not say: \
      none or encoded. Default: none.
      """)
  var media = Media.none

  @Flag(
    name: .customLong("no-media-copy"),
    help: "Do not store unencrypted copies of the encoded media.")
  var omitsMedia = false

  @Option(
    help: "How often scripts read statistics, in milliseconds. Default: 1000.",
    transform: Taking.whole(100...60_000))
  var interval = 1000

  @Option(
    help: "How many sessions may run at once; further ones are refused. Default: 100.",
    transform: Taking.whole(1...10_000))
  var sessions = 100

  @Option(
    name: .customLong("session-megabytes"),
    help: """
      How much a session may report; anything beyond that is not written. Default: 256.
      """,
    transform: Taking.whole(1...1_000_000))
  var sessionMegabytes = 256

  @Option(
    name: .customLong("total-megabytes"),
    help: "How much all sessions together may report. Default: 10000.",
    transform: Taking.whole(1...1_000_000))
  var totalMegabytes = 10_000

  @Option(
    name: .customLong("gone-after"),
    help: """
      How long a session waits for a page that is reloaded or has lost its connection, in seconds. \
      Default: 60.
      """,
    transform: Taking.seconds(1...86_400))
  var absence = 60.0

  @Option(
    help: """
      Write the Chromium extension into this folder, for pages of the given origins; it contains \
      the address and the token.
      """,
    completion: .directory, transform: Taking.path)
  var `extension`: String?

  @Flag(help: "End the recording when the first session ends.")
  var once = false

  @OptionGroup var ring: RingOptions

  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs at the end.")
  var json = false

  func validate() throws {
    guard self.extension == nil || origins.contains(where: { $0 != "null" }) else {
      throw ValidationError(
        "--extension needs the pages' origins: add --origin https://app.example.")
    }
  }

  private var origins: [String] { listening.allowedOrigins.map(\.text) }

  private var settings: PageService.Settings {
    var settings = PageService.Settings()
    settings.label = label
    settings.tags = tagging.tags
    settings.keepsMedia = !omitsMedia
    settings.sessionsMaximum = sessions
    settings.sessionBytes = sessionMegabytes * 1_000_000
    settings.totalBytes = totalMegabytes * 1_000_000
    settings.absence = .seconds(absence)
    settings.hasMedia = media == .encoded
    settings.intervalMilliseconds = interval
    return settings
  }

  /// The plan of a flight recorder that also reacts to failing connections; nil without `--ring`.
  private var ringPlan: RingPlan? {
    var take = ImportSettings()
    take.label = label
    take.tags = tagging.tags
    take.keepsMedia = !omitsMedia
    return ring.plan(take) { $0.wishes.append(.failure) }
  }

  func run() async throws {
    let (out, overwrite) = (out, overwrite)
    let isSingle = out != nil && !TakeNames.isFolder(out)
    if isSingle {
      // Report a bad path now, not when the first page connects.
      _ = try RecordOptions.newTakePath(out, prefix: "page", overwrite)
    }
    let stop = StopSignal()
    var settings = settings
    settings.ring = ringPlan
    let service = PageService(
      settings, isSingle: isSingle,
      takePath: { prefix throws(TapeError) in
        do {
          return try RecordOptions.newTakePath(out, prefix: prefix, overwrite)
        } catch {
          let reason = (error as? CommandFailure)?.message ?? "\(error)"
          throw TapeError(path: "", place: "", reason: reason, kind: .failed)
        }
      },
      notice: { printError("retake: \($0)") })
    let token = listening.token ?? .random()
    let scheme = listening.address.certificate == nil ? "ws" : "wss"
    let server = try await listening.server(
      sockets: service.routes,
      access: { access in
        access.token = token
        access.readsTokenFromQuery = true
        access.scriptPaths = PageService.scriptPaths
        access.openPaths = []
      }, { service.respond(to: $0, webSocketScheme: scheme, token: token) })
    do {
      try writeExtension(server, token)
    } catch {
      await server.shutdown()
      throw error
    }
    printAddresses(server, token)
    let endsWithSession = once
    await stop.wait(seconds: seconds) {
      for await _ in service.endedSessions where endsWithSession { return }
    }
    await server.shutdown()
    var report = RecordingReport()
    for summary in await service.finish() {
      let media = summary.partWords
      report.add(
        RecordingReport.Take(
          path: summary.take, steps: summary.steps, packets: 0, bytes: summary.bytes, peers: []),
        media: media)
    }
    try report.show(json: json)
  }

  private func printAddresses(_ server: HTTPServer, _ token: BearerToken) {
    let address = "\(server.url)/page.js?token=\(token.text)"
    printError("include <script src=\"\(address)\"></script> before the page's own scripts,")
    printError(
      "or run await import(\"\(address.replacing("/page.js", with: "/page.mjs"))\") at the console;"
    )
    printError(
      "rtcstats-js connects to \(server.webSocketURL)/?rtcstats-token=\(token.text)")
    if origins.isEmpty {
      printError(
        "no origin was given: only pages of an --origin such as https://app.example can report")
    }
    printError("takes contain addresses and descriptions; Ctrl-C ends the recording")
  }

  private func writeExtension(_ server: HTTPServer, _ token: BearerToken) throws {
    guard let folder = self.extension else { return }
    if case .failure(let code) = WholeFile.makeFolder(folder) {
      throw CommandFailure(
        .inputOutput, "\(CommandReading.oneLine(folder)): the folder cannot be made: \(code)")
    }
    var configuration = RecorderScript.Configuration(
      address: "\(server.webSocketURL)\(PageService.socketPath)?token=\(token.text)")
    configuration.hasMedia = media == .encoded
    configuration.intervalMilliseconds = interval
    let files = RecorderScript.extensionFiles(
      configuration, origins: origins.filter { $0 != "null" })
    for file in files {
      let path = folder.hasSuffix("/") ? folder + file.name : "\(folder)/\(file.name)"
      // Written without WritingWhole, whose signal handling would end the process before its takes
      // are complete.
      do throws(WholeFile.Failure) {
        try WholeFile.write(file.text.utf8, to: path, overwrite.present)
      } catch {
        throw CommandFailure(error)
      }
    }
    printError("Chromium loads the extension from \(CommandReading.oneLine(folder)): Load unpacked")
  }
}
