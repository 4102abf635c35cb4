import Live
import Peer
import Reenactment
import Signaling
import Tape
import Wire

/// A re-enactment after which a client's statistics are not as expected, or that could not be made.
public struct ReenactmentFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The take.
  public var path: String
  /// What is not as expected, each as a sentence.
  public var sentences: [String]

  /// The whole failure, for a test report.
  public var description: String { "\(path): \(sentences.joined(separator: "; "))" }
}

/// Plays what was received in a recorded call to a page in a headless Chromium, and throws unless
/// the statistics of its connections are as expected.
///
/// Each packet leaves at its recorded distance from the connected state, so the test lasts as long
/// as the call.
///
/// try await expectReenactment("Captures/freezes.take", peer: 2, "freezeCount <= 1")
/// - Parameters:
///   - path: the take; a relative path starts at the package's folder, where tests run.
///   - peer: the number of the recorded receiver, whose place the page takes; nil for the only peer
///     that received media.
///   - url: the page, which calls the server at `port`; nil for Retake's own page.
///   - jitterBufferTarget: how much Retake's own page has the browser buffer, in milliseconds; nil
///     leaves it to the browser.
///   - port: where offers are answered at 127.0.0.1 (`/offer`, `/whep`); 0 finds a free one.
///   - browser: the program; nil for the first Chromium in PATH.
///   - out: where the call with the page is recorded; nil records nothing.
///   - expectations: as for `retake reenact --expect`.
/// - Throws: `ReenactmentFailure`.
public func expectReenactment(
  _ path: String, peer: Int? = nil, page url: String? = nil, jitterBufferTarget: Int? = nil,
  port: Int = 0, browser: String? = nil, recordingTo out: String? = nil, _ expectations: String...
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
  let objects: [JSONValue]
  do {
    objects = try await statistics(
      of: ReenactmentPlan(take: path, peer: peer.map { Int64($0) }), url, jitterBufferTarget, port,
      try HeadlessBrowser.program(browser), out)
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

/// Plays a plan to a page, and returns the statistics of its connections.
private func statistics(
  of plan: ReenactmentPlan, _ url: String?, _ jitterBufferTarget: Int?, _ port: Int,
  _ program: String, _ out: String?
) async throws -> [JSONValue] {
  var options = Session.Options()
  options.takePath = out
  if let loopback = IPAddress("127.0.0.1") { options.bind = .addresses([loopback]) }
  let session = try Session(options)
  let limit = Duration.seconds(30)
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
  let trial = BrowserTrial(program: program, page: page, connectionLimit: limit)
  let result: Result<[JSONValue], BrowserError>
  do throws(BrowserError) {
    result = .success(try await trial.run(service))
  } catch {
    result = .failure(error)
  }
  let refusal = await service.refused.last
  let hasPlayed = await service.outcome?.player.hasBegun ?? false
  await service.close()
  await server.shutdown()
  try await session.finish()
  let objects = try result.get()
  guard hasPlayed else {
    throw BrowserError(description: refusal ?? "the page did not connect within 30 s")
  }
  return objects
}
