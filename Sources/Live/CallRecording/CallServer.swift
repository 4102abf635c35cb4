import Glibc
public import Live
package import Peer
import Replay
import Signaling
package import Tape

/// Records calls from browsers, WHIP publishers and WHEP players, as `retake record serve` does.
///
/// Each call's peer echoes the media it receives. Browsers open `pageURL`; other peers POST an
/// offer to `/offer` below `url` (see `SignalingRoutes`); publishers use `/whip`, players `/whep`.
public struct CallServer: Sendable {
  private let service: CallService
  private let server: HTTPServer

  /// The server's address, without a path.
  public var url: String { server.url }
  /// The page's address, with a token that grants every right.
  public var pageURL: String { server.pageURL }
  /// Yields whenever a call has ended.
  public var endedCalls: AsyncStream<Void> { service.endedCalls }

  /// Starts listening and recording.
  ///
  /// - Parameters:
  ///   - out: the path of one take for all calls, which must not exist yet; or a folder for one
  ///     take per call, which must exist or end in a slash.
  ///   - host: the address to listen on.
  ///   - port: 0 finds a free one.
  ///   - callsMaximum: the maximum number of simultaneous calls.
  ///   - options: the settings shared by all sessions; `out` determines their paths.
  ///   - notice: receives one sentence for each failure or warning about sent media.
  /// - Throws: `TapeError` if nothing can be written, `HTTPError` if the port is already in use.
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
            path: out, place: "",
            reason: "it exists already: choose another name or remove the file",
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

/// Where recorded calls are written, and how their sessions and peers are configured.
package struct CallRecordingOptions: Sendable {
  let folder: String
  /// Whether each call has its own take.
  let isFolder: Bool
  let peer: PeerConfiguration
  let videoCodec: VideoCodecChoice?
  /// Returns the options of the session that writes `take`.
  let session: @Sendable (_ take: String) -> Session.Options
  /// Returns a new take's path; its name begins with the prefix unless the user named the file.
  let takePath: @Sendable (_ prefix: String) throws(TapeError) -> String

  /// - Parameter out: one take for all calls, or a folder for one take per call; nil means one take
  ///   in the current folder.
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

/// Names new takes.
package enum TakeNames {
  /// Returns whether a path names an existing folder or ends in a slash.
  package static func isFolder(_ out: String?) -> Bool {
    guard let out else { return false }
    return out.hasSuffix("/") || FileBytes.kind(of: out) == .folder
  }

  /// Returns an unused path for a new take in a folder, which is created if necessary.
  ///
  /// The name consists of the prefix, the time and, for all but the first take in a second, a
  /// number.
  package static func free(in out: String?, prefix: String) throws(TapeError) -> String {
    let folder = out ?? "."
    // Only the owner may read the folder: takes contain keys and conversations.
    if case .failure(let code) = WholeFile.makeFolder(folder) {
      throw TapeError(
        path: folder, place: "", reason: "the folder cannot be created: \(code)", kind: .failed)
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
  /// Begins a session, on a shared loop or on a loop of its own.
  package static func recording(_ options: Options, on loop: MediaLoop? = nil) throws(TapeError)
    -> Session
  {
    do throws(SessionError) {
      return try Session(options, loop: loop)
    } catch {
      throw TapeError(path: "", place: "", reason: error.description, kind: .failed)
    }
  }

  /// Ends the session and returns its take's summary.
  package func finished(_ path: String) async throws(TapeError) -> TakeSummary {
    guard let summary = try await finish() else {
      throw TapeError(path: path, place: "", reason: "nothing was recorded")
    }
    return summary
  }
}

/// Formats a byte count, such as `12.3 MB`.
package func byteText(_ bytes: Int) -> String {
  switch bytes {
  case ..<1000: "\(bytes) B"
  case ..<1_000_000: decimal(Double(bytes) / 1e3, 1) + " kB"
  case ..<1_000_000_000: decimal(Double(bytes) / 1e6, 1) + " MB"
  default: decimal(Double(bytes) / 1e9, 2) + " GB"
  }
}
