import Dispatch
import Live
import Peer
import Reenactment
import Replay
import Signaling
import Tape
import Wire

// MARK: - Replays

/// How a replay is compared with its take.
public enum ReplayComparison: Sendable {
  /// Compares as specified by the pin next to the take (`call.pin.json`, written by `retake pin`),
  /// or exactly if there is no pin.
  case asPinned
  /// Compares every packet, state, frame, timer and random draw.
  case exact
  /// Compares the session's outcome, within the pin's tolerances or the default tolerances.
  case meaning
}

/// An error for a take whose replay differs from the recording or its pin.
public struct ReplayFailure: Error, Sendable, CustomStringConvertible {
  /// The take's path.
  public var path: String
  /// The layer that behaves differently: `ice`, `dtls`, `rtp`, `media`, `timer`, ...; `altered` for
  /// a modified file, `meaning` for a failed check, `partial` if RETAKE_STRICT=1 requires more than
  /// this machine's libraries can replay, `unreadable` for a file that is not a take.
  public var kind: String
  /// The differing step, counted from 1; nil if the difference concerns several steps.
  public var step: Int?
  /// The differences on several lines, with recorded and replayed values.
  public var details: String
  /// The command that reproduces the failure.
  public var command: String

  /// The complete failure, for a test report.
  public var description: String { "\(path): \(details)\nTo see it again: \(command)" }
}

/// Replays a take and throws if the stack behaves differently.
///
/// Works in Swift Testing and in XCTest: the thrown error fails the test, and its text names the
/// layer, the step and the field.
///
///     @Test func theCallOfJune() async throws { try await expectReplay("Captures/june.take") }
///
/// - Parameters:
///   - path: the take; a relative path starts at the package's folder, where tests run.
///   - comparison: how to compare.
/// - Throws: `ReplayFailure`, whose `kind` says why the replay did not pass.
public func expectReplay(_ path: String, _ comparison: ReplayComparison = .asPinned) async throws {
  let mode: Pin.Mode? =
    switch comparison {
    case .asPinned: nil
    case .exact: .exact
    case .meaning: .meaning
    }
  // A replay is a long computation, which must not block the cooperative pool.
  let result = await withCheckedContinuation { continuation in
    DispatchQueue.global().async {
      let result = TakeVerification.run(
        path: path, mode: mode, isStrict: TakeVerification.isStrictHere)
      continuation.resume(returning: result)
    }
  }
  guard !result.isPassed else { return }
  var step: Int?
  switch result.outcome {
  case .diverged(let divergence): step = divergence.step
  case .altered(let alteration): step = alteration.step
  case .passed, .missed, .partial, .unreadable: break
  }
  throw ReplayFailure(
    path: path, kind: result.kind, step: step, details: result.details, command: result.command)
}

// MARK: - Re-enactments

/// The error for a re-enactment that failed, or whose client's statistics are not as expected.
public struct ReenactmentFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The take's path.
  public var path: String
  /// The expectations that do not hold, or the reason for the failure, as sentences.
  public var sentences: [String]

  /// The path and all sentences, for a test report.
  public var description: String { "\(path): \(sentences.joined(separator: "; "))" }
}

/// Plays the received media of a recorded call to a page in a headless Chromium, and throws unless
/// the statistics of the page's connections are as expected.
///
///     try await expectReenactment("Captures/freezes.take", peer: 2, "freezeCount <= 1")
///
/// Packets are sent with their recorded timing, so the test takes as long as the call.
///
/// - Parameters:
///   - path: the take; a relative path starts at the package's folder, where tests run.
///   - peer: the number of the recorded receiver, which the page replaces; nil for the only peer
///     that received media.
///   - url: the page, which calls the server at `port`; nil for Retake's page.
///   - upstream: the page's own server, as for `retake reenact --upstream`: the page reaches it at
///     `port`, and receives the recorded packets instead of the server's media; nil if the page
///     signals to Retake.
///   - jitterBufferTarget: the jitter buffer target that Retake's page sets, in milliseconds; nil
///     for the browser's default.
///   - port: the port on 127.0.0.1 that answers offers (`/offer`, `/whep`) or relays to `upstream`;
///     0 finds a free one.
///   - browser: the executable; nil for the first Chromium in PATH.
///   - out: the take in which to record the call with the page; nil records nothing.
///   - expectations: as for `retake reenact --expect`.
/// - Throws: `ReenactmentFailure` with a sentence for each expectation that does not hold, or with
///   the reason why the call could not be reenacted.
public func expectReenactment(
  _ path: String, peer: Int? = nil, page url: String? = nil, upstream: String? = nil,
  jitterBufferTarget: Int? = nil, port: Int = 0, browser: String? = nil,
  recordingTo out: String? = nil, _ expectations: String...
) async throws {
  func failure(_ sentence: String) -> ReenactmentFailure {
    ReenactmentFailure(path: path, sentences: [sentence])
  }
  let wanted = try expectations.map { text in
    guard let expectation = StatExpectation(argument: text) else {
      throw failure("\(text): \(StatExpectation.wanted)")
    }
    return expectation
  }
  if upstream != nil, url == nil {
    throw failure("with a server of its own, the page has to be named as well")
  }
  let objects: [JSONValue]
  do {
    let plan = try ReenactmentPlan(take: path, peer: peer.map { Int64($0) })
    let program = try HeadlessBrowser.program(browser)
    let limit = Duration.seconds(30)
    let stage =
      if let url, let upstream {
        try await relay(plan, to: upstream, for: url, port, out, limit)
      } else { try await serve(plan, to: url, jitterBufferTarget, port, out, limit) }
    let trial = BrowserTrial(program: program, page: stage.page, connectionLimit: limit)
    objects = try await statistics(of: trial, stage)
  } catch let error as ReenactmentFailure {
    throw error
  } catch {
    throw failure((error as? TapeError)?.reason ?? "\(error)")
  }
  let missed = wanted.map { $0.judge(objects) }.filter { !$0.holds }
  guard missed.isEmpty else {
    throw ReenactmentFailure(path: path, sentences: missed.map(\.sentence))
  }
}

/// A running service that plays to a page, with the page's URL.
private struct Stage {
  var service: any Reenacting
  var page: String
  /// Stops the signaling server and completes the take.
  var end: @Sendable () async throws -> Void
}

/// Starts a service that plays to a page and does its own signaling.
private func serve(
  _ plan: ReenactmentPlan, to url: String?, _ jitterBufferTarget: Int?, _ port: Int,
  _ out: String?, _ limit: Duration
) async throws -> Stage {
  var options = Session.Options()
  options.takePath = out
  if let loopback = IPAddress("127.0.0.1") { options.bind = .addresses([loopback]) }
  let session = try Session(options)
  let service = ReenactmentService(
    plan, in: session, configuration: PeerConfiguration(), repair: .asRecorded,
    connectionLimit: limit, takePath: out ?? "")
  let routes = ReenactmentRoutes(service)
  var access = AccessRules()
  if let origin = url.flatMap({ WatchPage.origin(of: $0) }) { access.origins = [origin] }
  let server = try await HTTPServer.listen(host: "127.0.0.1", port: port, access: access) {
    await routes.respond(to: $0)
  }
  let page = url ?? "\(server.url)/?\(WatchPage.query(jitterBufferTarget: jitterBufferTarget))"
  return Stage(service: service, page: page) {
    await server.shutdown()
    try await session.finish()
  }
}

/// Starts a relay that plays recorded media instead of the media from a page's own server.
private func relay(
  _ plan: ReenactmentPlan, to upstream: String, for page: String, _ port: Int, _ out: String?,
  _ limit: Duration
) async throws -> Stage {
  var options = Session.Options()
  options.takePath = out
  let session = try Session(options)
  var proxied = ProxyServer.Settings(upstream: upstream)
  proxied.port = port
  if let origin = WatchPage.origin(of: page) { proxied.origins = [origin] }
  do {
    let relay = try await ReenactmentRelay(
      plan, in: session, repair: .asRecorded, proxied: proxied, connectionLimit: limit,
      notice: { _ in })
    return Stage(service: relay.service, page: page) { try await relay.finish() }
  } catch {
    try await session.finish()
    throw error
  }
}

/// Plays to a page in a browser, and returns the statistics of the page's connections.
private func statistics(of trial: BrowserTrial, _ stage: Stage) async throws -> [JSONValue] {
  let result: Result<[JSONValue], BrowserError>
  do throws(BrowserError) {
    result = .success(try await trial.run(stage.service))
  } catch {
    result = .failure(error)
  }
  let refusal = await stage.service.refused.last
  let hasPlayed = await stage.service.outcome?.player.hasBegun ?? false
  await stage.service.close()
  try await stage.end()
  let objects = try result.get()
  guard hasPlayed else {
    throw BrowserError(description: refusal ?? "the page did not connect within 30 s")
  }
  return objects
}
