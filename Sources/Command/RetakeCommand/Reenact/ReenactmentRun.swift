import ArgumentParser
import CallRecording
import FoundationEssentials
import Importing
import Live
import PageRecording
import Peer
import Reenactment
import Relaying
import Replay
import SDP
import Signaling
import Synchronization
import Tape
import Wire

/// One run: the signaling, the client, and the outcome.
struct ReenactmentRun {
  let command: ReenactCommand
  let plan: ReenactmentPlan
  let path: String
  let program: String?

  private struct Parts: Sendable {
    var service: any Reenacting
    /// Retake's own signaling; nil if the application has its own, through a relay.
    var own: Own?
    /// The server that the recorder's script reports to; nil if nothing records the page.
    var recorder: HTTPServer?
    /// Ends the signaling, the session and the take; returns the takes that pages recorded.
    var end: @Sendable () async throws -> [String]
  }

  private struct Own: Sendable {
    var service: ReenactmentService
    var server: HTTPServer
  }

  func run() async throws {
    let stop = StopSignal()
    var options = Session.Options()
    options.takePath = path
    options.label = "re-enactment of peer \(plan.peer) of \(FileBytes.name(of: plan.take))"
    options.bind = bind
    let session = try openSession(options)
    let parts: Parts
    do {
      parts =
        if let upstream = command.upstream {
          try await relay(to: upstream, in: session)
        } else { try await serve(in: session) }
    } catch {
      _ = try await finish(session, path)
      discard(path)
      throw error
    }
    let service = parts.service
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
    let pageTakes = try await parts.end()
    guard let outcome, outcome.player.hasBegun else {
      discard(path)
      for take in pageTakes { discard(take) }
      throw await silence(service, failure)
    }
    var report = try reading { () throws(TapeError) in
      try ReenactmentReport(
        plan, outcome, changesSent: changes, repair: command.repair, recording: path)
    }
    report.judgements = judgements
    report.pageRecordings = pageTakes
    if command.json {
      try Output.line(report.json)
    } else {
      try Output.line(report.lines.joined(separator: "\n"))
    }
    if let failure { throw failure }
    if judgements.contains(where: { !$0.holds }) { throw CommandFailure(.difference, "") }
  }

  /// Returns the reason that nothing was played.
  private func silence(
    _ service: any Reenacting, _ failure: CommandFailure?
  ) async -> CommandFailure {
    if let failure { return failure }
    if let refusal = await service.refused.last {
      return CommandFailure(.unmet, "\(plan.take): no client could be served: \(refusal)")
    }
    if let upstream = command.upstream {
      return CommandFailure(
        .unmet,
        "\(plan.take): no call was played, and \(path) is not written: the application must use "
          + "the address of --listen, and \(upstream) must send it media, such as another "
          + "participant's")
    }
    return CommandFailure(
      .unmet, "\(plan.take): no client connected, so nothing was played and \(path) is not written")
  }

  private var bind: BindPolicy {
    if !command.bind.isEmpty { return .addresses(command.bind) }
    guard command.against != nil, command.upstream == nil,
      let loopback = IPAddress("127.0.0.1")
    else { return .automatic }
    return .addresses([loopback])
  }

  // MARK: Signaling

  private func relay(to upstream: String, in session: Session) async throws -> Parts {
    let listening = command.listening
    var proxied = ProxyServer.Settings(upstream: upstream)
    proxied.host = listening.address.listen.host
    proxied.port = listening.address.listen.port
    proxied.hosts = listening.allowedHosts.map(\.name)
    proxied.origins = listening.allowedOrigins.map(\.text)
    if let origin = command.url.flatMap({ WatchPage.origin(of: $0) }) {
      proxied.origins.append(origin)
    }
    proxied.authorities = command.signaling.authorities
    proxied.identity = listening.address.identity
    let rules = try command.signaling.rules()
    let relay: ReenactmentRelay
    do throws(HTTPError) {
      relay = try await ReenactmentRelay(
        plan, in: session, repair: command.repair, proxied: proxied, rules: rules,
        connectionLimit: .seconds(command.connectSeconds), notice: { printError("retake: \($0)") })
    } catch {
      throw CommandFailure(.inputOutput, error.reason)
    }
    printError(
      "the relay to \(upstream) is \(relay.proxy.url): give it to the application instead")
    let pages = try await pageServer()
    return Parts(service: relay.service, own: nil, recorder: pages?.server) {
      let summaries = await pages?.service.finish() ?? []
      await pages?.server.shutdown()
      do throws(TapeError) {
        try await relay.finish()
      } catch {
        throw CommandFailure(.inputOutput, error.description)
      }
      return summaries.map(\.take)
    }
  }

  /// Starts a server that receives what a headless client's page reports; returns nil without such
  /// a page.
  ///
  /// A separate server is necessary, because the relay forwards everything that it receives to the
  /// application's server.
  private func pageServer() async throws -> (service: PageService, server: HTTPServer)? {
    guard program != nil, let origin = command.url.flatMap({ WatchPage.origin(of: $0) }) else {
      return nil
    }
    let pages = pageService()
    var access = AccessRules()
    access.readsTokenFromQuery = true
    access.origins = [origin]
    do throws(HTTPError) {
      let server = try await HTTPServer.listen(
        host: "127.0.0.1", port: 0, access: access, identity: nil, sockets: pages.routes
      ) { _ in HTTPResponse.refusal(404, "only pages of this re-enactment report here") }
      return (pages, server)
    } catch {
      throw CommandFailure(.inputOutput, error.reason)
    }
  }

  /// Creates the service that records pages' reports in takes next to the re-enactment's take.
  private func pageService() -> PageService {
    let (path, overwrite) = (path, command.overwrite)
    return PageService(
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
  }

  private func serve(in session: Session) async throws -> Parts {
    let path = path
    let service = ReenactmentService(
      plan, in: session, configuration: PeerConfiguration(), repair: command.repair,
      connectionLimit: .seconds(command.connectSeconds), takePath: path)
    let pages = pageService()
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
    return Parts(service: service, own: Own(service: service, server: server), recorder: server) {
      let summaries = await pages.finish()
      await server.shutdown()
      _ = try await finish(session, path)
      return summaries.map(\.take)
    }
  }

  // MARK: The client

  private func play(_ parts: Parts) async throws -> [ReenactmentReport.Judgement] {
    if let program { return try await play(to: program, parts) }
    var following: Task<Void, Never>?
    if let own = parts.own {
      if let url = command.whip {
        try await publish(to: url, own.service)
      } else if let url = command.call {
        following = try await offer(to: url, own.service)
      } else {
        let (page, url) = (own.server.pageURL, own.server.url)
        printError("open \(page) in the client, or POST its offer to \(url)/offer")
        printError("WHEP players go to \(url)/whep")
      }
    }
    for await _ in parts.service.finished { break }
    following?.cancel()
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

  /// Posts the recorded sender's offer to a peer that answers over HTTP.
  ///
  /// - Returns: a task that forwards the recorded sender's later offers; nil if the peer's answer
  ///   did not identify the call.
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
          printError("retake: the peer stopped signaling: \(error)")
        }
      }
    } catch let refusal as CallRefusal {
      throw CommandFailure(.inputOutput, "\(url): \(refusal.reason)")
    }
  }

  private func play(to program: String, _ parts: Parts) async throws
    -> [ReenactmentReport.Judgement]
  {
    let (page, script) = command.url.map { ($0, recorder(parts)) } ?? (ownPage(parts), "")
    let trial = BrowserTrial(
      program: program, page: page, script: script,
      connectionLimit: .seconds(command.connectSeconds))
    let objects: [JSONValue]
    do throws(BrowserError) {
      objects = try await trial.run(parts.service)
    } catch {
      throw CommandFailure(.inputOutput, error.description)
    }
    return command.expect.map { ReenactmentReport.Judgement($0, of: objects) }
  }

  /// Returns the URL of Retake's own page, which loads the recorder itself.
  private func ownPage(_ parts: Parts) -> String {
    guard let server = parts.own?.server else { return "" }
    let query = WatchPage.query(
      jitterBufferTarget: command.jitterBufferTarget.map { Int(($0 * 1_000).rounded()) })
    return "\(server.url)/?\(query)&token=\(server.token.text)"
  }

  /// Returns the recorder's script for a page other than Retake's own.
  private func recorder(_ parts: Parts) -> String {
    guard let server = parts.recorder else { return "" }
    return RecorderScript.text(
      RecorderScript.Configuration(
        address:
          "\(server.webSocketURL)\(PageService.socketPath)?token=\(server.token.text)"))
  }
}
