package import Tape

/// What has to stand in for the libraries of this machine when a take was made with others.
package struct Substitution: Hashable, Sendable {
  /// Whether the take's frames stand in for the codecs.
  package var skipsCodecs = false
  /// What of DTLS and SRTP is taken from the recording.
  package var security: RecordedSecurity.Parts = []
  /// Whether the rest can be compared byte for byte.
  package var isReplayable = true
  /// What is said about it.
  package var notes: [String] = []

  package init() {}

  /// Compares the toolchains of a take and of this machine; throws when the take cannot be read.
  ///
  /// Another processor alone changes nothing here: codecs mostly come to the same on it. Where they
  /// do not, see `standingIn`.
  package init(of path: String, _ header: TakeHeader, by toolchain: Toolchain) throws(TapeError) {
    try self.init(
      of: path, header,
      parts: toolchain.differences(from: header.toolchain).map(\.part).filter { $0 != "cpu" })
  }

  /// Lets the frames of a take stand in for codecs that come to something else on another
  /// processor, as a divergence shows; nil when that is not what happened.
  package func standingIn(
    for divergence: Divergence, in path: String, _ header: TakeHeader, by toolchain: Toolchain
  ) -> Substitution? {
    let parts = toolchain.differences(from: header.toolchain).map(\.part)
    guard parts.contains("cpu"), !skipsCodecs, header.keepsMedia else { return nil }
    let libraries = Substitution.codecLibraries(path, step: divergence.step)
    guard !libraries.isEmpty else { return nil }
    var changed = self
    changed.skipsCodecs = true
    changed.notes.append(
      "\(libraries.joined(separator: " or ")) comes to something else on this processor at step "
        + "\(divergence.step): its frames stand in for the codecs")
    return changed
  }

  /// The libraries that made the frames of a step, encoded or decoded.
  private static func codecLibraries(_ path: String, step: Int) -> [String] {
    var libraries: [String] = []
    guard let connection = try? TakeFile.open(path),
      let rows = try? connection.prepare(
        "SELECT DISTINCT codec FROM frame WHERE step = ? ORDER BY codec")
    else { return [] }
    rows.bind(Int64(step), at: 1)
    while (try? rows.step()) == true {
      switch rows.text(0)?.lowercased() {
      case "opus": libraries.append("opus")
      case "vp8", "vp9": libraries.append("vpx")
      case "h264": libraries.append("openh264")
      case "av1": libraries.append("dav1d")
      default: break
      }
    }
    return libraries
  }

  /// Lets recorded results stand in for everything that a library makes, wherever the take has
  /// them; throws when the take cannot be read.
  package init(all path: String, _ header: TakeHeader) throws(TapeError) {
    try self.init(of: path, header, parts: ["openssl", "srtp", "opus", "vpx", "openh264", "dav1d"])
  }

  /// What stands in when it is asked for: what differs of the libraries, or all of them where
  /// nothing does; throws when nothing can.
  package init(asked path: String, _ header: TakeHeader, by toolchain: Toolchain)
    throws(TapeError)
  {
    let parts = toolchain.differences(from: header.toolchain).map(\.part)
    if parts.isEmpty {
      try self.init(all: path, header)
    } else {
      try self.init(of: path, header, parts: parts)
    }
    guard isReplayable else {
      throw TapeError(
        path: path, place: "",
        reason: "nothing can stand in for its libraries: " + notes.joined(separator: "; "))
    }
  }

  private init(of path: String, _ header: TakeHeader, parts: [String]) throws(TapeError) {
    guard !parts.isEmpty else { return }
    let names = parts.joined(separator: ", ")
    // Features of the processor change the results of codecs only.
    if parts.contains(where: { ["opus", "vpx", "openh264", "dav1d", "cpu"].contains($0) }) {
      isReplayable = header.keepsMedia
      skipsCodecs = header.keepsMedia
      if skipsCodecs {
        notes.append("made with other \(names): its frames stand in for the codecs")
      } else {
        notes.append("made with other \(names) and without media: only its digests are checked")
        return
      }
    }
    if parts.contains("openssl") {
      guard try Substitution.hasKeyLog(path) else {
        isReplayable = false
        notes.append("made with other \(names) and without a key log: only its digests are checked")
        return
      }
      security.insert(.dtls)
      notes.append("made with other openssl: its key log and flights stand in for DTLS")
    }
    if parts.contains("srtp") {
      security.insert(.srtp)
      notes.append("made with other srtp: its packets stand where they hold the same")
    }
  }

  /// Whether a take tells the secrets of its associations; old ones do not.
  private static func hasKeyLog(_ path: String) throws(TapeError) -> Bool {
    let connection = try TakeFile.open(path)
    do throws(SQLiteError) {
      return try connection.integer(
        """
        SELECT NOT EXISTS (SELECT 1 FROM event WHERE type = 'secured')
          OR EXISTS (SELECT 1 FROM event WHERE type = 'keylog')
        """) == 1
    } catch {
      throw TapeError(path: path, place: "event", error)
    }
  }
}
