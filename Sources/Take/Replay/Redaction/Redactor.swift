import FoundationEssentials
import Media
import Peer
package import Tape
import Wire

/// Makes a copy of a take that can be shared, with other keys, addresses, names, messages and
/// media.
///
/// First all rows are redacted, inputs and outputs alike. Then the stack is driven with the
/// redacted inputs. If the session has the same outcome, the stack's rows become the new take,
/// which can be replayed. If not, or if something of the original is left in them, the redacted
/// rows become the new take; replaying it only checks digests. Finally the new take is searched,
/// and discarded if anything of the original is found.
package struct Redactor {
  /// What a redaction removed, and how the new take was made.
  package struct Summary: Sendable {
    package var removed: [String]
    /// The number of names and secrets that were replaced, and the number of addresses.
    package var words: Int
    package var addresses: Int
    package var steps: Int
    /// Whether a replay of the new take runs the stack.
    package var isExecuted: Bool
    /// Why a replay of the new take cannot run the stack; nil if it can.
    package var reason: String?
    /// How many of the replaced texts the new take was searched for; none was found.
    package var searched: Int
    /// A sentence about what a replay of the new take proves.
    package var sentence: String
  }

  private let path: String
  private let output: String
  private let parts: Redaction.Parts
  private let makePeer: TakeVerification.MakePeer
  private let standIns: StandIns
  private let text: RedactedText
  private let header: TakeHeader

  /// Writes the new take to `output`, which must not exist.
  ///
  /// - Parameter secret: 32 random bytes, which must be discarded afterwards.
  package static func run(
    path: String, output: String, parts: Redaction.Parts, secret: [UInt8],
    makePeer: @escaping TakeVerification.MakePeer = TakeVerification.stack
  ) throws(TapeError) -> Summary {
    do throws(TapeError) {
      return try Redactor(path, output, parts, secret, makePeer).made()
    } catch {
      FileBytes.remove(output)
      throw error
    }
  }

  private init(
    _ path: String, _ output: String, _ parts: Redaction.Parts, _ secret: [UInt8],
    _ makePeer: @escaping TakeVerification.MakePeer
  ) throws(TapeError) {
    (self.path, self.output, self.parts, self.makePeer) = (path, output, parts, makePeer)
    header = try TapeReader(path: path).header
    standIns = StandIns(parts, secret: secret)
    text = RedactedText(standIns: standIns)
  }

  private func made() throws(TapeError) -> Summary {
    let rows = intermediate()
    defer { UnfinishedFiles.remove(rows) }
    let survey = try RedactionSurvey(path: path, text)
    let media = try learn()
    var reason: String?
    let drawn = try drawnBytes(survey, &reason)
    if header.redacted?.isFactsOnly == true { reason = "its rows were facts already" }
    let known = reason
    try writeRows(to: rows, survey, drawn, isFactsOnly: reason != nil)
    let scan = RedactionScan(standIns, media: media)
    try produce(from: rows, scan, &reason)
    if try scan.leak(in: output) != nil {
      // A replaced string is still there, perhaps inside a longer word. The take is written again,
      // with that occurrence replaced too.
      for name in [output, rows] { FileBytes.remove(name) }
      reason = known
      try writeRows(to: rows, survey, drawn, isFactsOnly: reason != nil) {
        scan.scrubbed($0, standIns)
      }
      try produce(from: rows, scan, &reason)
    }
    if let leak = try scan.leak(in: output) {
      throw TapeError(
        path: path, place: leak.place,
        reason: "\(leak.length) bytes of the original would still be there: nothing was written; "
          + "please report this place as a bug, without the bytes themselves")
    }
    let redacted = Redaction(parts, isFactsOnly: reason != nil, version: retakeVersion)
    return Summary(
      removed: parts.names, words: standIns.replaced.count,
      addresses: standIns.replacedAddresses.count, steps: try TapeReader(path: output).stepCount(),
      isExecuted: reason == nil, reason: reason, searched: scan.count,
      sentence: redacted.sentence)
  }

  /// Makes the new take by running the stack; if that fails, uses the redacted rows and sets
  /// `reason`.
  private func produce(
    from rows: String, _ scan: RedactionScan, _ reason: inout String?
  ) throws(TapeError) {
    if reason == nil {
      reason = try execute(rows)
      if reason == nil, let leak = try scan.leak(in: output) {
        reason = "a replay would reveal part of the original in \(leak.place)"
      }
      guard reason != nil else { return }
      FileBytes.remove(output)
    }
    try copyFacts(from: rows)
  }

  // MARK: Learning

  /// Reads all text once, so that every name is known before the first one is replaced.
  ///
  /// - Returns: excerpts of the media, to search for in the new take.
  private func learn() throws(TapeError) -> [[UInt8]] {
    let reader = try TapeReader(path: path)
    let rows = RedactedRows(text, nil)
    standIns.isLearning = true
    defer { standIns.isLearning = false }
    _ = newHeader(isFactsOnly: false)
    var media: [[UInt8]] = []
    while let chunk = try reader.chunk() {
      for step in chunk.steps {
        _ = rows.mapped(step, chunk.rows)
        for row in step.rows { collect(chunk.rows, row, &media) }
      }
    }
    return media
  }

  private static let piece = 24
  private static let piecesMaximum = 200_000

  /// Collects an excerpt from the middle of a frame or message, unless its bytes are too uniform.
  private func collect(_ rows: RowList, _ row: Int, _ media: inout [[UInt8]]) {
    guard media.count < Self.piecesMaximum else { return }
    var bytes: [UInt8]?
    switch rows.table(row) {
    case .frame where parts.contains(.media): bytes = FrameRow(rows, row)?.bytes
    case .message where parts.contains(.messages): bytes = MessageRow(rows, row)?.bytes
    // Media headers in relayed packets are kept, so these packets' contents are not searched for.
    case .content where parts.contains(.media) && !RedactedRows.isRelayed(rows, row):
      bytes = ContentRow(rows, row)?.bytes
    default: break
    }
    guard let bytes, bytes.count >= 32 else { return }
    let start = (bytes.count - Self.piece) / 2
    let piece = Array(bytes[start..<start + Self.piece])
    if Set(piece).count > 6 { media.append(piece) }
  }

  /// Returns the bytes that each actor drew from its random streams, by stream; sets `reason` if
  /// the original cannot be replayed.
  private func drawnBytes(_ survey: RedactionSurvey, _ reason: inout String?) throws(TapeError)
    -> [UInt32: [String: String]]
  {
    guard !survey.seeds.isEmpty, header.redacted?.isFactsOnly != true,
      !parts.isDisjoint(with: [.keys, .addresses, .names])
    else { return [:] }
    let actors: [DrivenActor]
    if let replayer = try identicalReplay() {
      actors = replayer.drivenActors
    } else if let driven = try redriven() {
      actors = driven
    } else {
      reason = "the original cannot be replayed here"
      return [:]
    }
    var scripts: [UInt32: [String: String]] = [:]
    for actor in actors {
      guard let seed = survey.seeds[actor.number] else { continue }
      var drawn = actor.machine.machineSnapshot?.drawnBytes ?? []
      if actor.endpoint == nil { drawn = [("signaling", actor.entropyDrawn)] }
      scripts[actor.number] =
        DrawnBytes(
          seed: seed, after: survey.scripts[actor.number] ?? [:], drawn: drawn, standIns
        ).scripts
    }
    return scripts
  }

  /// Replays the original; nil if that is impossible, or if the replay differs from it.
  private func identicalReplay() throws(TapeError) -> Replayer? {
    let toolchain = try Toolchain.current(for: path)
    var substitution = try Substitution(of: path, header, by: toolchain)
    while substitution.isReplayable {
      var options = Replayer.Options()
      options.skipsCodecs = substitution.skipsCodecs
      options.security = substitution.security
      let replayer = try Replayer(
        path: path, options: options, codecs: { LibraryCodecs() }, peer: makePeer)
      switch try replayer.run().verdict {
      case .identical: return replayer
      case .altered: return nil
      case .diverged(let divergence):
        // Codecs may produce other results on another processor; recorded frames then replace them.
        guard
          let other = substitution.standingIn(
            for: divergence, in: path, header, by: toolchain)
        else { return nil }
        substitution = other
      }
    }
    return nil
  }

  /// Runs the stack with the original inputs without comparing, for takes of other revisions; nil
  /// if that is impossible.
  private func redriven() throws(TapeError) -> [DrivenActor]? {
    let again = intermediate()
    defer { UnfinishedFiles.remove(again) }
    let substitution = try Substitution(of: path, header, by: try Toolchain.current(for: path))
    guard substitution.isReplayable else { return nil }
    var options = Redrive.Options()
    options.skipsCodecs = substitution.skipsCodecs
    options.security = substitution.security
    let redrive = try Redrive(
      path: path, output: again, options: options, codecs: { LibraryCodecs() }, peer: makePeer)
    _ = try redrive.run()
    return redrive.drivenActors
  }

  // MARK: Writing

  /// Returns a temporary file's name in the new take's folder.
  private func intermediate() -> String {
    let folder = FileBytes.folder(of: output)
    return UnfinishedFiles.name(in: folder.isEmpty || folder == "/" ? folder : folder + "/")
  }

  private func newHeader(isFactsOnly: Bool) -> TakeHeader {
    var new = header
    new.label = text.value(header.label)
    // Tags are redacted in key order, because a word's stand-in may depend on earlier words.
    let tags = header.tags.sorted { $0.key < $1.key }.map {
      (text.value($0.key), text.value($0.value, key: $0.key))
    }
    new.change(tags: Dictionary(tags) { first, _ in first })
    let before = header.redacted?.parts ?? []
    new.redaction =
      Redaction(parts.union(before), isFactsOnly: isFactsOnly, version: retakeVersion).number
    return new
  }

  /// Writes a take of the redacted rows.
  ///
  /// - Parameter scrub: replaces originals that are still in a redacted string; nil leaves them.
  private func writeRows(
    to rows: String, _ survey: RedactionSurvey, _ drawn: [UInt32: [String: String]],
    isFactsOnly: Bool, scrub: ((String) -> String)? = nil
  ) throws(TapeError) {
    let reader = try TapeReader(path: path)
    let copy = try TakeCopy(path: rows, header: newHeader(isFactsOnly: isFactsOnly))
    let mapping = RedactedRows(text, RedactedPackets(text, survey))
    mapping.drawn = drawn
    mapping.scrub = scrub
    while let chunk = try reader.chunk() {
      for step in chunk.steps {
        let mapped = mapping.mapped(step, chunk.rows)
        try copy.append(step.head, mapped, 0..<mapped.count)
      }
    }
    try copy.finish(isComplete: reader.ending != nil)
  }

  /// Runs the stack with the redacted inputs; returns why the result is unusable, or nil if it is
  /// usable.
  private func execute(_ rows: String) throws(TapeError) -> String? {
    var options = Redrive.Options()
    options.header = newHeader(isFactsOnly: false)
    do throws(TapeError) {
      _ = try Redrive(
        path: rows, output: output, options: options, codecs: { LibraryCodecs() }, peer: makePeer
      ).run()
      let misses = Pin(mode: .meaning, measures: try Measures(path: path))
        .misses(of: try Measures(path: output))
      if let miss = misses.first { return "the results of a replay differ: \(miss)" }
      let replayer = try Replayer(
        path: output, codecs: { LibraryCodecs() }, peer: makePeer)
      guard case .identical = try replayer.run().verdict else {
        return "two replays of it differ"
      }
      return nil
    } catch {
      return "its stack fails: \(error.reason)"
    }
  }

  /// Makes the redacted rows the new take.
  private func copyFacts(from rows: String) throws(TapeError) {
    let reader = try TapeReader(path: rows)
    let copy = try TakeCopy(path: output, header: newHeader(isFactsOnly: true))
    while let chunk = try reader.chunk() {
      for step in chunk.steps { try copy.append(step.head, chunk.rows, step.rows) }
    }
    try copy.finish(isComplete: reader.ending != nil)
  }
}
