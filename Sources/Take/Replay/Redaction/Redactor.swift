import FoundationEssentials
import Media
import Peer
package import Tape
import Wire

/// Makes a take that can be shared from one that cannot: it has other keys, addresses, names,
/// messages and media, and replays wherever possible.
///
/// Every row is replaced first, inputs and outputs alike. Then the stack is driven with the new
/// inputs; if the session has the same outcome, this is the new take. If it does not, or still
/// contains anything of the original, the replaced rows become the new take: facts that are never
/// executed. No take is delivered before a search has found nothing of the original in it.
package struct Redactor {
  /// The result of a redaction: what was removed, and how the new take was made.
  package struct Summary: Sendable {
    package var removed: [String]
    /// The number of names and secrets replaced, and of addresses.
    package var words: Int
    package var addresses: Int
    package var steps: Int
    /// Whether replaying the new take executes the stack.
    package var isExecuted: Bool
    /// The reason that nothing in it is executed; nil if everything is.
    package var reason: String?
    /// The number of texts and bytes searched for at the end; none was found.
    package var searched: Int
    /// The guarantee that a replay of it provides.
    package var sentence: String
  }

  private let path: String
  private let output: String
  private let parts: Redaction.Parts
  private let makePeer: TakeVerification.MakePeer
  private let standIns: StandIns
  private let text: RedactedText
  private let header: TakeHeader

  /// Writes the new take; `output` must not exist.
  ///
  /// - Parameter secret: 32 random bytes, which must be discarded afterwards.
  package static func run(
    path: String, output: String, parts: Redaction.Parts, secret: [UInt8],
    makePeer: @escaping TakeVerification.MakePeer = TakeVerification.stack
  ) throws(TapeError) -> Summary {
    do throws(TapeError) {
      return try Redactor(path, output, parts, secret, makePeer).made()
    } catch {
      for name in [output, output + ".rows"] { FileBytes.remove(name) }
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
    let rows = output + ".rows"
    defer { FileBytes.remove(rows) }
    let survey = try RedactionSurvey(path: path, text)
    let media = try learn()
    var reason: String?
    let drawn = try drawnBytes(survey, &reason)
    if header.redacted?.isFactsOnly == true { reason = "nothing of it is executed already" }
    let known = reason
    try writeRows(to: rows, survey, drawn, isFactsOnly: reason != nil)
    let scan = RedactionScan(standIns, media: media)
    try produce(from: rows, scan, &reason)
    if try scan.leak(in: output) != nil {
      // A replaced text is still there, perhaps as a part of a longer word: writes the take again
      // without it.
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
          + "say where it is in a bug report, without what it is")
    }
    let redacted = Redaction(parts, isFactsOnly: reason != nil, version: retakeVersion)
    return Summary(
      removed: parts.names, words: standIns.replaced.count,
      addresses: standIns.replacedAddresses.count, steps: try TapeReader(path: output).stepCount(),
      isExecuted: reason == nil, reason: reason, searched: scan.count,
      sentence: redacted.sentence)
  }

  /// Makes the new take: executed if possible, or the rows as facts, for a reason.
  private func produce(
    from rows: String, _ scan: RedactionScan, _ reason: inout String?
  ) throws(TapeError) {
    if reason == nil {
      reason = try execute(rows)
      if reason == nil, let leak = try scan.leak(in: output) {
        reason = "executed, it shows something of the original in \(leak.place)"
      }
      guard reason != nil else { return }
      FileBytes.remove(output)
    }
    try copyFacts(from: rows)
  }

  // MARK: Learning

  /// Reads all texts once, so that every name is known before the first is replaced; returns pieces
  /// of the media to search for later.
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

  /// Collects a piece from the middle of a frame or message, unless it has too little variety.
  private func collect(_ rows: RowList, _ row: Int, _ media: inout [[UInt8]]) {
    guard media.count < Self.piecesMaximum else { return }
    var bytes: [UInt8]?
    switch rows.table(row) {
    case .frame where parts.contains(.media): bytes = FrameRow(rows, row)?.bytes
    case .message where parts.contains(.messages): bytes = MessageRow(rows, row)?.bytes
    // The frames and messages in a relay's packets are searched for separately.
    case .content where parts.contains(.media) && !RedactedRows.isRelayed(rows, row):
      bytes = ContentRow(rows, row)?.bytes
    default: break
    }
    guard let bytes, bytes.count >= 32 else { return }
    let start = (bytes.count - Self.piece) / 2
    let piece = Array(bytes[start..<start + Self.piece])
    if Set(piece).count > 6 { media.append(piece) }
  }

  /// Returns the bytes that each actor drew from its random streams.
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
      reason = "the take itself cannot be executed here"
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

  /// Returns the original as a replay left it; nil if it does not replay identically.
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
        // On another processor, codecs produce other results, which the recorded ones replace.
        guard
          let other = substitution.standingIn(
            for: divergence, in: path, header, by: toolchain)
        else { return nil }
        substitution = other
      }
    }
    return nil
  }

  /// Drives the stack with the original's inputs without comparing, as for takes of another
  /// revision; returns its actors, or nil if that is impossible.
  private func redriven() throws(TapeError) -> [DrivenActor]? {
    let again = output + ".again"
    defer { FileBytes.remove(again) }
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

  private func newHeader(isFactsOnly: Bool) -> TakeHeader {
    var new = header
    new.label = text.value(header.label)
    // Replaces tags in order, because what stands for a word may depend on the words before it.
    let tags = header.tags.sorted { $0.key < $1.key }.map {
      (text.value($0.key), text.value($0.value, key: $0.key))
    }
    new.change(tags: Dictionary(tags) { first, _ in first })
    let before = header.redacted?.parts ?? []
    new.redaction =
      Redaction(parts.union(before), isFactsOnly: isFactsOnly, version: retakeVersion).number
    return new
  }

  /// Writes the take with every row replaced.
  ///
  /// - Parameter scrub: replaces what is left in texts after that.
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

  /// Drives the stack with the replaced inputs; returns the reason that the result is unusable, or
  /// nil.
  private func execute(_ rows: String) throws(TapeError) -> String? {
    var options = Redrive.Options()
    options.header = newHeader(isFactsOnly: false)
    do throws(TapeError) {
      _ = try Redrive(
        path: rows, output: output, options: options, codecs: { LibraryCodecs() }, peer: makePeer
      ).run()
      let misses = Pin(mode: .meaning, measures: try Measures(path: path))
        .misses(of: try Measures(path: output))
      if let miss = misses.first { return "executed, its results differ: \(miss)" }
      let replayer = try Replayer(
        path: output, codecs: { LibraryCodecs() }, peer: makePeer)
      guard case .identical = try replayer.run().verdict else {
        return "executed twice, its results differ"
      }
      return nil
    } catch {
      return "it cannot be executed: \(error.reason)"
    }
  }

  /// Makes the replaced rows the new take.
  private func copyFacts(from rows: String) throws(TapeError) {
    let reader = try TapeReader(path: rows)
    let copy = try TakeCopy(path: output, header: newHeader(isFactsOnly: true))
    while let chunk = try reader.chunk() {
      for step in chunk.steps { try copy.append(step.head, chunk.rows, step.rows) }
    }
    try copy.finish(isComplete: reader.ending != nil)
  }
}
