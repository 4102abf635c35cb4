import Glibc
public import Live
package import Peer
import Replay
import Signaling
package import Tape

/// Records the calls of browsers, of WHIP publishers and of WHEP players.
///
/// `retake record serve` runs it. Each call is a peer that echoes its received media. Browsers open
/// `pageURL`; other peers POST an offer to `/offer` below `url` (see `SignalingRoutes`); publishers
/// use `/whip`, players `/whep`.
public struct CallServer: Sendable {
  private let service: CallService
  private let server: HTTPServer

  /// The address of the server, without a path.
  public var url: String { server.url }
  /// The address of the page, with the token that lets it do everything.
  public var pageURL: String { server.pageURL }
  /// Yields whenever a call has ended.
  public var endedCalls: AsyncStream<Void> { service.endedCalls }

  /// Starts serving.
  ///
  /// - Parameters:
  ///   - out: the take of all calls, which must not exist; or a folder, which exists or ends in a
  ///     slash, for one take per call.
  ///   - host: the address to listen on.
  ///   - port: 0 finds a free one.
  ///   - callsMaximum: the maximum number of simultaneous calls.
  ///   - options: the settings shared by all sessions; `out` determines their paths.
  ///   - notice: receives one sentence per failure of sent media.
  /// - Throws: `TapeError` if nothing can be written, `HTTPError` if the port is taken.
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

// MARK: - CallRecordingOptions

/// The output paths of recorded calls, and the behavior of their peers.
package struct CallRecordingOptions: Sendable {
  /// The folder for one take per call, or for the take of all of them.
  let folder: String
  /// Whether each call has its own take.
  let isFolder: Bool
  let peer: PeerConfiguration
  let videoCodec: VideoCodecChoice?
  /// The options of the session that writes a take.
  let session: @Sendable (_ take: String) -> Session.Options
  /// The path of a new take, whose name begins with a prefix unless one file was asked for.
  let takePath: @Sendable (_ prefix: String) throws(TapeError) -> String

  /// - Parameter out: the take of all calls, or a folder for a take of each; nil: a take in the
  ///   present folder.
  package init(
    out: String?, peer: PeerConfiguration = PeerConfiguration(),
    videoCodec: VideoCodecChoice? = nil,
    session: @escaping @Sendable (String) -> Session.Options,
    takePath: @escaping @Sendable (String) throws(TapeError) -> String
  ) {
    folder = out ?? "."
    isFolder = TakeNames.isFolder(out)
    self.peer = peer
    self.videoCodec = videoCodec
    self.session = session
    self.takePath = takePath
  }
}

/// Names of new takes.
package enum TakeNames {
  /// Whether a path names a folder: one that exists, or one that ends in a slash.
  package static func isFolder(_ out: String?) -> Bool {
    guard let out else { return false }
    return out.hasSuffix("/") || FileBytes.kind(of: out) == .folder
  }

  /// The path of a new take in a folder, which is created if necessary: a name with the time and a
  /// free number.
  package static func free(in out: String?, prefix: String) throws(TapeError) -> String {
    let folder = out ?? "."
    // Readable by its owner only: takes contain keys and conversations.
    if case .failure(let code) = NewFile.makeFolder(folder) {
      throw TapeError(
        path: folder, place: "", reason: "the folder cannot be made: \(code)", kind: .failed)
    }
    let stamp = timestamp()
    for number in 0... {
      let name = number == 0 ? "\(prefix)-\(stamp).take" : "\(prefix)-\(stamp)-\(number).take"
      let path = out == nil ? name : folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
      if FileBytes.kind(of: path) == nil { return path }
    }
    return prefix
  }

  private static func timestamp() -> String {
    var (now, parts) = (time(nil), tm())
    gmtime_r(&now, &parts)
    var text = [CChar](repeating: 0, count: 32)
    let length = strftime(&text, text.count, "%Y%m%d-%H%M%S", &parts)
    return String(decoding: text.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

extension Session {
  /// Begins a session, on a shared loop or on its own.
  package static func recording(_ options: Options, on loop: MediaLoop? = nil) throws(TapeError)
    -> Session
  {
    do throws(SessionError) {
      return try Session(options, loop: loop)
    } catch {
      throw TapeError(path: "", place: "", reason: error.description, kind: .failed)
    }
  }

  /// Ends the session and its take.
  package func finished(_ path: String) async throws(TapeError) -> TakeSummary {
    guard let summary = try await finish() else {
      throw TapeError(path: path, place: "", reason: "nothing was recorded")
    }
    return summary
  }
}

/// Formats a number of bytes: `12.3 MB`.
package func byteText(_ bytes: Int) -> String {
  switch bytes {
  case ..<1000: "\(bytes) B"
  case ..<1_000_000: decimal(Double(bytes) / 1e3, 1) + " kB"
  case ..<1_000_000_000: decimal(Double(bytes) / 1e6, 1) + " MB"
  default: decimal(Double(bytes) / 1e9, 2) + " GB"
  }
}
