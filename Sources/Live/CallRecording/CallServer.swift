public import Live
import Signaling
import Tape

/// Records the calls of browsers, of WHIP publishers and of WHEP players.
///
/// It is what `retake record serve` runs. Each call is a peer that sends back what it receives.
/// Browsers open `pageURL`; other peers POST an offer to `/offer` below `url`, as `SignalingRoutes`
/// says; publishers go to `/whip`, players to `/whep`.
public struct CallServer: Sendable {
  private let service: CallService
  private let server: HTTPServer

  /// The address of the server, without a path.
  public var url: String { server.url }
  /// The address of the page, with the token that lets it do everything.
  public var pageURL: String { server.pageURL }
  /// Yields whenever a call has ended.
  public var endedCalls: AsyncStream<Void> { service.endedCalls }

  /// Begins to serve.
  ///
  /// - Parameters:
  ///   - out: the take of all calls, which must not be there; or a folder, which is there or ends
  ///     in a slash, for a take of each call.
  ///   - host: the address to listen on.
  ///   - port: 0 finds a free one.
  ///   - callsMaximum: how many calls run at once at the most.
  ///   - options: what the sessions have in common; where they write is for `out` to say.
  ///   - notice: gets a sentence for what goes wrong with what is sent.
  /// - Throws: `TapeError` where nothing can be written, `HTTPError` where the port is taken.
  public init(
    recordingTo out: String, host: String = "127.0.0.1", port: Int = 0, callsMaximum: Int = 100,
    options: Session.Options = Session.Options(),
    notice: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws {
    let recording = CallRecordingOptions(
      out: out,
      session: { take in
        var session = options
        session.takePath = take
        return session
      },
      takePath: { prefix throws(TapeError) in
        guard !TakeNames.isFolder(out) else { return try TakeNames.free(in: out, prefix: prefix) }
        guard FileBytes.kind(of: out) == nil else {
          throw TapeError(
            path: out, place: "", reason: "it is there: choose another name or remove the file",
            kind: .failed)
        }
        return out
      })
    let service = try CallService(
      options: recording, plan: SendPlan(.echo), callsMaximum: callsMaximum,
      connectionLimit: .seconds(30), failures: SendFailures(notice))
    let routes = SignalingRoutes(
      calls: service, sessions: SessionRoutes(sessions: service, iceServers: []))
    server = try await HTTPServer.listen(host: host, port: port) { await routes.respond(to: $0) }
    self.service = service
    do {
      try await service.open()
    } catch {
      await server.shutdown()
      throw error
    }
  }

  /// Ends all calls and completes their takes.
  public func finish() async throws -> RecordingReport {
    await server.shutdown()
    return try await service.finish()
  }
}
