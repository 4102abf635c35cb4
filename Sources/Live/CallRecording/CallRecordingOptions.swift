import Glibc
package import Live
package import Peer
import Replay
package import Tape

/// Where calls are recorded, and how their peers behave.
package struct CallRecordingOptions: Sendable {
  /// The folder for one take per call, or for the take of all of them.
  let folder: String
  /// Whether each call has a take of its own.
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
  /// Whether a path names a folder: one that is there, or one that ends in a slash.
  package static func isFolder(_ out: String?) -> Bool {
    guard let out else { return false }
    return out.hasSuffix("/") || FileBytes.kind(of: out) == .folder
  }

  /// The path of a new take in a folder, which is made if it is not there: one with the time and a
  /// number that is free.
  package static func free(in out: String?, prefix: String) throws(TapeError) -> String {
    let folder = out ?? "."
    // For its owner alone: takes hold keys and what people said.
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
  /// Begins a session, on a loop that it shares or on one of its own.
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

/// A number of bytes for people: `12.3 MB`.
package func byteText(_ bytes: Int) -> String {
  switch bytes {
  case ..<1000: "\(bytes) B"
  case ..<1_000_000: decimal(Double(bytes) / 1e3, 1) + " kB"
  case ..<1_000_000_000: decimal(Double(bytes) / 1e6, 1) + " MB"
  default: decimal(Double(bytes) / 1e9, 2) + " GB"
  }
}
