import ArgumentParser
import CallRecording
import FoundationEssentials
import Importing
import Live
import PageRecording
import Peer
import Reenactment
import Replay
import SDP
import Signaling
import Synchronization
import Tape
import Wire

/// Plays the media that a recorded call received to a live client.
struct ReenactCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reenact",
    abstract: "Play one end of a recorded call to a live client, such as a browser.",
    discussion: """
      The client replaces a recorded receiver (--peer) and is sent the packets that the receiver \
      got, each at its recorded time after the connection: lost packets stay lost, late ones late. \
      ICE, DTLS and SRTP are new; SSRCs, payload types and header extensions are negotiated with \
      the client. A codec that it lacks is named, and the call refused.

      The client opens the page, posts its offer to /offer or to /whep, or gets one from /mkoffer; \
      or Retake calls it: --call posts an offer, --whip publishes to an endpoint. One client is \
      served. Retransmissions are sent as recorded (--repair as-recorded), or when the client \
      requests a packet that the take has (honest). Key frames cannot be made.

      --out is a new take of the call with the client; the page's own reports and statistics are \
      written beside it. --against chromium runs a headless Chromium on the page, or on that of \
      --url, and compares its statistics with --expect: the exit status is 1 if one does not hold.

      Examples:
        retake reenact bad.take --peer callee --out again.take
        retake reenact bad.take --against chromium --expect "freezeCount <= 1"
        retake reenact bad.take --whip http://127.0.0.1:8081/whip --repair honest
      """)

  @Argument(
    help: "The take of the recorded call.", completion: .file(extensions: ["take"]),
    transform: Taking.path)
  var take: String

  @OptionGroup var receiver: PeerOption

  @Option(
    help: """
      How requests for lost packets are answered: as-recorded, or honest for each with the packet \
      if the take has it. Default: as-recorded.
      """)
  var repair = RepairRule.asRecorded

  @Option(
    name: .shortAndLong, help: "The new take. Default: a name with the time.",
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String?

  @Option(
    help: "Post an offer as JSON to this URL, as record call does, in place of waiting for one.",
    transform: Taking.url(["http"]))
  var call: String?

  @Option(
    help: "Publish to this WHIP endpoint in place of waiting for an offer.",
    transform: Taking.url(["http", "https"]))
  var whip: String?

  @Option(
    name: .customLong("whip-token"),
    help: "The bearer token for the endpoint of --whip. \(Taking.secretForm)",
    transform: Taking.secret(Taking.value(BearerToken.wanted)))
  var whipToken: BearerToken?

  @OptionGroup var listening: ListenOptions

  @Option(
    help: """
      A local address that ICE may gather on; may be given several times. Default: all but \
      loopback, or loopback if there is no other; with --against, loopback.
      """,
    transform: Taking.value("an address is one of IPv4 or IPv6, as in 192.0.2.1 or 2001:db8::1"))
  var bind: [IPAddress] = []

  @Option(
    name: .customLong("connect-within"),
    help: "End when a client has not connected within this many seconds. Default: 30.",
    transform: Taking.seconds(1...86_400))
  var connectSeconds = 30.0

  @Option(
    help: "Run this client, headless, and judge what it reports: chromium.",
    transform: ClientProgram.reader)
  var against: ClientProgram?

  @Option(
    help: """
      The page that the client of --against opens. Default: Retake's own, which receives and \
      shows.
      """,
    transform: Taking.url(["http", "https"]))
  var url: String?

  @Option(
    name: .customLong("jitter-buffer-target"),
    help: ArgumentHelp(
      """
      How much Retake's own page has the client of --against buffer, up to 4 s, as in 400ms: \
      jitterBufferTarget of its receivers. Default: what the client chooses.
      """, valueName: "time"),
    transform: Taking.seconds(0...4))
  var jitterBufferTarget: Double?

  @Option(
    help: "The program to run for --against. Default: chromium, chromium-browser or google-chrome.",
    completion: .file(), transform: Taking.path)
  var browser: String?

  @Option(
    help: ArgumentHelp(
      """
      What the client's getStats has to say at the end, as in "freezeCount <= 1" or \
      "video.framesDecoded > 100"; may be given several times. Of received streams unless a type \
      of statistics stands before the member.
      """, valueName: "condition"),
    transform: Taking.value(StatExpectation.wanted))
  var expect: [StatExpectation] = []

  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs at the end.")
  var json = false

  func validate() throws {
    if call != nil, whip != nil {
      throw ValidationError("--call and --whip are two ways to the client: give one.")
    }
    if whipToken != nil, whip == nil {
      throw ValidationError(
        "--whip-token is for the endpoint of --whip: give both, or leave it out.")
    }
    guard against == nil else {
      if call != nil || whip != nil {
        throw ValidationError(
          "--against runs a client that calls: leave out \(call == nil ? "--whip" : "--call").")
      }
      if url != nil, jitterBufferTarget != nil {
        throw ValidationError(
          "--jitter-buffer-target is for Retake's own page: a page of --url sets its own.")
      }
      return
    }
    let needing = [
      ("--url", url != nil), ("--browser", browser != nil), ("--expect", !expect.isEmpty),
      ("--jitter-buffer-target", jitterBufferTarget != nil),
    ]
    if let (name, _) = needing.first(where: \.1) {
      throw ValidationError("\(name) is about the client of --against: add --against chromium.")
    }
  }

  func run() async throws {
    let peer = try receiver.number(in: take)
    let progress = Progress("reading \(CommandReading.oneLine(take))")
    let plan = try Self.reading { () throws(TapeError) in
      try ReenactmentPlan(
        take: take, peer: peer, hasSpares: repair == .honest,
        progress: { at, end in
          progress.show("\(decimal(at.seconds, 0)) of \(decimal(end.seconds, 0)) s")
        })
    }
    progress.clear()
    let program = try against.map { _ in try Self.program(browser) }
    let path = try RecordOptions.newTakePath(out, prefix: "reenact", overwrite)
    try await ReenactmentRun(command: self, plan: plan, path: path, program: program).run()
  }

  /// Reads a plan; throws a usage error if the chosen peer cannot be played.
  private static func reading(
    _ body: () throws(TapeError) -> ReenactmentPlan
  ) throws -> ReenactmentPlan {
    do throws(TapeError) {
      return try body()
    } catch {
      guard error.place == "--peer" else { throw CommandFailure(error) }
      throw CommandFailure(.usage, error.description)
    }
  }

  private static func program(_ given: String?) throws -> String {
    do throws(BrowserError) {
      return try HeadlessBrowser.program(given)
    } catch {
      throw CommandFailure(.noSuchFile, error.description)
    }
  }
}

extension RepairRule: ExpressibleByArgument {}

extension StatExpectation: ExpressibleByArgument {}

/// A client that can be run.
enum ClientProgram: String, CaseIterable, Sendable {
  case chromium

  static let reader: Taking.Reader<ClientProgram> = { word in
    guard let program = ClientProgram(rawValue: word) else {
      throw Taking.Refusal("a client is chromium; start any other one yourself, as --listen says")
    }
    return program
  }
}

// MARK: - ReenactmentRun

/// One run: the signaling, the client, and the outcome.
private struct ReenactmentRun {
  let command: ReenactCommand
  let plan: ReenactmentPlan
  let path: String
  let program: String?

  private struct Parts {
    var service: ReenactmentService
    var pages: PageService
    var server: HTTPServer
  }

  func run() async throws {
    let stop = StopSignal()
    var options = Session.Options()
    options.takePath = path
    options.label = "re-enactment of peer \(plan.peer) of \(FileBytes.name(of: plan.take))"
    options.bind = bind
    let session = try openSession(options)
    let service = ReenactmentService(
      plan, in: session, configuration: PeerConfiguration(), repair: command.repair,
      connectionLimit: .seconds(command.connectSeconds), takePath: path)
    let parts: Parts
    do {
      parts = try await serve(service)
    } catch {
      _ = try await finish(session, path)
      discard(path)
      throw error
    }
    var judgements: [ReenactmentReport.Judgement] = []
    var failure: CommandFailure?
    do {
      let judged: [ReenactmentReport.Judgement]? = try await stop.interrupting {
        try await play(parts)
      }
      judgements = judged ?? []
    } catch {
      failure = error as? CommandFailure ?? CommandFailure(.inputOutput, "\(error)")
    }
    let (outcome, changes) = (await service.outcome, await service.changesSent)
    await service.close()
    let summaries = await parts.pages.finish()
    await parts.server.shutdown()
    _ = try await finish(session, path)
    guard let outcome, outcome.player.hasBegun else {
      discard(path)
      for summary in summaries { discard(summary.take) }
      throw await silence(service, failure)
    }
    var report = try reading { () throws(TapeError) in
      try ReenactmentReport(
        plan, outcome, changesSent: changes, repair: command.repair, recording: path)
    }
    report.judgements = judgements
    report.pageRecordings = summaries.map(\.take)
    if command.json {
      try Output.line(report.json)
    } else {
      try Output.line(report.lines.joined(separator: "\n"))
    }
    if let failure { throw failure }
    if judgements.contains(where: { !$0.holds }) { throw CommandFailure(.difference, "") }
  }

  /// Why nothing was played.
  private func silence(
    _ service: ReenactmentService, _ failure: CommandFailure?
  ) async -> CommandFailure {
    if let failure { return failure }
    if let refusal = await service.refused.last {
      return CommandFailure(.unmet, "\(plan.take): no client could be served: \(refusal)")
    }
    return CommandFailure(
      .unmet, "\(plan.take): no client connected, so nothing was played and \(path) is not written")
  }

  private var bind: BindPolicy {
    if !command.bind.isEmpty { return .addresses(command.bind) }
    guard command.against != nil, let loopback = IPAddress("127.0.0.1") else { return .automatic }
    return .addresses([loopback])
  }

  // MARK: Signaling

  private func serve(_ service: ReenactmentService) async throws -> Parts {
    let (path, overwrite) = (path, command.overwrite)
    let pages = PageService(
      PageService.Settings(), isSingle: false,
      takePath: { _ throws(TapeError) in
        let stem = path.hasSuffix(".take") ? String(path.dropLast(5)) : path
        for number in 1... {
          let name = number == 1 ? "\(stem)-page.take" : "\(stem)-page-\(number).take"
          if overwrite.force, FileBytes.kind(of: name) == .file { discard(name) }
          if FileBytes.kind(of: name) == nil { return name }
        }
        return "\(stem)-page.take"
      },
      notice: { printError("retake: \($0)") })
    // The token of the listening server; random until the server listens.
    let token = Mutex(BearerToken.random())
    let scheme = command.listening.address.certificate == nil ? "ws" : "wss"
    let routes = ReenactmentRoutes(service)
    let server = try await command.listening.server(
      sockets: pages.routes,
      access: { access in
        access.readsTokenFromQuery = true
        access.scriptPaths = PageService.scriptPaths
        if let origin = command.url.flatMap({ WatchPage.origin(of: $0) }) {
          access.origins.append(origin)
        }
      },
      { request in
        if PageService.scriptPaths.contains(request.path) {
          return pages.respond(to: request, webSocketScheme: scheme, token: token.withLock { $0 })
        }
        return await routes.respond(to: request)
      })
    token.withLock { $0 = server.token }
    return Parts(service: service, pages: pages, server: server)
  }

  // MARK: The client

  private func play(_ parts: Parts) async throws -> [ReenactmentReport.Judgement] {
    if let program { return try await play(to: program, parts) }
    if let url = command.whip {
      try await publish(to: url, parts.service)
    } else if let url = command.call {
      let following = try await offer(to: url, parts.service)
      for await _ in parts.service.finished { break }
      following?.cancel()
      try await Task.sleep(for: BrowserTrial.settling)
      return []
    } else {
      let url = parts.server.url
      printError("open \(parts.server.pageURL) in the client, or POST its offer to \(url)/offer")
      printError("WHEP players go to \(parts.server.url)/whep")
    }
    for await _ in parts.service.finished { break }
    try await Task.sleep(for: BrowserTrial.settling)
    return []
  }

  private func publish(to url: String, _ service: ReenactmentService) async throws {
    let client = SessionClient(.whip, endpoint: url, token: command.whipToken)
    do {
      let (id, offer) = try await service.offer(over: "whip")
      let session = try await client.open(offer: offer.sdp)
      try await service.accept(answer: session.description, call: id)
    } catch let error as HTTPError {
      throw CommandFailure(.inputOutput, error.reason)
    } catch let refusal as CallRefusal {
      throw CommandFailure(.inputOutput, "\(url): \(refusal.reason)")
    }
  }

  /// Calls a peer.
  /// - Returns: a task that passes on the later offers of the recorded sender; nil if the peer did
  ///   not name its call.
  private func offer(
    to url: String, _ service: ReenactmentService
  ) async throws -> Task<Void, Never>? {
    do {
      let (id, offer) = try await service.offer(over: "http")
      let target = try RecordCall.target(url)
      let (answer, call) = try await RecordCall.exchange(offer, target)
      try await service.accept(answer: answer.sdp, call: id)
      guard let call else { return nil }
      return Task {
        do {
          while !Task.isCancelled {
            switch try await service.next(call: id) {
            case .offer(let offer):
              let description = SessionDescription(type: .offer, sdp: offer.sdp)
              let (answer, _) = try await RecordCall.exchange(description, target, call: call)
              try await service.accept(answer: answer.sdp, call: id)
            case .end: return
            case .candidate, .nothing: continue
            }
          }
        } catch {
          printError("retake: the peer does not go on: \(error)")
        }
      }
    } catch let refusal as CallRefusal {
      throw CommandFailure(.inputOutput, "\(url): \(refusal.reason)")
    }
  }

  private func play(to program: String, _ parts: Parts) async throws
    -> [ReenactmentReport.Judgement]
  {
    let token = parts.server.token.text
    let query = WatchPage.query(
      jitterBufferTarget: command.jitterBufferTarget.map { Int(($0 * 1_000).rounded()) })
    let own = "\(parts.server.url)/?\(query)&token=\(token)"
    // Retake's own page includes the recorder itself.
    let recorder = RecorderScript.text(
      RecorderScript.Configuration(
        address: "\(parts.server.webSocketURL)\(PageService.socketPath)?token=\(token)"))
    let trial = BrowserTrial(
      program: program, page: command.url ?? own, script: command.url == nil ? "" : recorder,
      connectionLimit: .seconds(command.connectSeconds))
    let objects: [JSONValue]
    do throws(BrowserError) {
      objects = try await trial.run(parts.service)
    } catch {
      throw CommandFailure(.inputOutput, error.description)
    }
    return command.expect.map { ReenactmentReport.Judgement($0, of: objects) }
  }
}
