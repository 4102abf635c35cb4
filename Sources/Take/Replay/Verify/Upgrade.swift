import FoundationEssentials
import Media
import Peer
package import Tape
import Wire

/// A take that this build recreated from another build's inputs, and how it changed.
package struct Upgrade: Sendable, Codable {
  package var path: String
  package var output: String
  package var formatBefore: Int64
  package var format: Int64
  package var toolVersionBefore: String
  package var toolVersion: String
  /// The libraries and CPU features that differ from the old take's.
  package var toolchain: [ToolchainDifference]
  package var stepsBefore: Int
  package var steps: Int
  /// The first recorded step that came out differently; nil if none did.
  package var firstDifference: Int?
  /// Results that come from the recording because this machine's libraries would produce others.
  package var substituted: [String]
  /// The measures that changed by more than their tolerance.
  package var misses: [Miss]

  /// Recreates a take; `output` must not exist.
  ///
  /// - Parameter decodes: whether observers and peers decode all media that this build can decode.
  package init(
    path: String, output: String, decodes: Bool = false,
    kinds: MachineKinds = MachineKinds(),
    makePeer: @escaping TakeVerification.MakePeer = TakeVerification.stack
  ) throws(TapeError) {
    self.path = path
    self.output = output
    let before = try TapeReader(path: path).header
    let present = try Toolchain.current(for: path)
    var header = before
    header.format = TakeHeader.currentFormat
    header.toolVersion = retakeVersion
    header.revision = stackRevision
    let substitution = try Substitution(of: path, before, by: present)
    var toolchain = present
    // Results that come from the recording were still produced by the original library versions.
    if substitution.security.contains(.dtls) { toolchain.openssl = before.toolchain.openssl }
    if substitution.security.contains(.srtp) { toolchain.srtp = before.toolchain.srtp }
    header.change(toolchain: toolchain)
    substituted = substitution.notes.filter { !$0.contains("frames") }
    (formatBefore, format) = (before.format, header.format)
    (toolVersionBefore, toolVersion) = (before.toolVersion, header.toolVersion)
    self.toolchain = present.differences(from: before.toolchain).map {
      ToolchainDifference(part: $0.part, recorded: $0.there, present: $0.here)
    }
    var options = Redrive.Options()
    options.header = header
    options.security = substitution.security
    options.adapt = { Upgrade.adapted($0, decodes: decodes) }
    let isNew = FileBytes.kind(of: output) == nil
    let summary: Redrive.Summary
    do throws(TapeError) {
      summary = try Redrive(
        path: path, output: output, options: options, kinds: kinds, codecs: { LibraryCodecs() },
        peer: makePeer
      ).run()
    } catch {
      // The incomplete take is removed, but not a file that existed before.
      if isNew { FileBytes.remove(output) }
      throw error
    }
    stepsBefore = summary.recordedSteps
    steps = summary.steps
    firstDifference = summary.firstDifference
    misses = Pin(mode: .meaning, measures: try Measures(path: path))
      .misses(of: try Measures(path: output))
  }

  /// Adapts a genesis to this build's observer and, if requested, enables all decoders.
  private static func adapted(_ input: any RecordedInput, decodes: Bool) -> any RecordedInput {
    switch input {
    case ObserverInput.genesis(var genesis):
      genesis.revision = observerRevision
      genesis.playsG711 = true
      genesis.countsEarlyRepeats = true
      genesis.repairsFully = true
      genesis.judgesClosely = true
      genesis.followsKeys = true
      genesis.findsIdentifiers = true
      if decodes { genesis.decodeAll() }
      return ObserverInput.genesis(genesis)
    case PeerInput.genesis(var genesis) where decodes:
      genesis.configuration.decoders = LibraryCodecs.furtherDecoders
      return PeerInput.genesis(genesis)
    default: return input
    }
  }

  /// The changes as text on several lines.
  package var text: String {
    var lines = ["\(output): \(counted(steps, "step")), \(path) had \(stepsBefore)"]
    if format != formatBefore { lines.append("  format \(formatBefore) is now \(format)") }
    if toolVersion != toolVersionBefore {
      lines.append("  recorded by Retake \(toolVersionBefore), recreated by \(toolVersion)")
    }
    lines += toolchain.map {
      $0.part == "cpu" ? "  \($0.summary)" : "  \($0.part): \($0.recorded) is now \($0.present)"
    }
    lines += substituted.map { "  \($0)" }
    if let firstDifference {
      lines.append("  step \(firstDifference) is the first that differs")
    } else {
      lines.append("  every step gave the recorded outputs")
    }
    lines.append(
      misses.isEmpty
        ? "  the session has the same results" : "  the session no longer has the same results:")
    lines += misses.map { "    \($0)" }
    return lines.joined(separator: "\n")
  }

  /// The changes as a JSON object.
  package var json: String { CanonicalJSON.text(self) }
}

// MARK: - Minimiser

/// Makes a diverging take as short as possible without changing the divergence.
///
/// Later steps are dropped, and so are the other actors, because actors share nothing but a clock.
/// All earlier steps of the diverging actor are needed: their outputs are in the take and are
/// compared.
package struct Minimiser {
  /// The size of the short take and of the original.
  package struct Summary: Hashable, Sendable, Codable {
    package var path: String
    package var output: String
    package var steps: Int
    package var recordedSteps: Int
    package var bytes: Int
    package var recordedBytes: Int
    /// The divergence of the short take, which has the same layer, output and field as the
    /// original's.
    package var divergence: Divergence
  }

  /// Why a take cannot be shortened.
  package enum Refusal: Error, Hashable, Sendable {
    case unreadable(TapeError)
    case identical
    case altered(Alteration)
    /// The short take does not diverge, or diverges elsewhere.
    case different(String)
  }

  /// Writes the short take to `output`, which must not exist.
  package static func run(
    path: String, output: String,
    makePeer: @escaping TakeVerification.MakePeer = TakeVerification.stack
  ) throws(Refusal) -> Summary {
    let first = try divergence(of: path, makePeer)
    let short: Divergence
    let isNew = FileBytes.kind(of: output) == nil
    do throws(TapeError) {
      try shorten(path, to: first, output)
    } catch {
      if isNew { FileBytes.remove(output) }
      throw .unreadable(error)
    }
    do throws(Refusal) {
      short = try divergence(of: output, makePeer)
    } catch {
      FileBytes.remove(output)
      guard case .identical = error else { throw error }
      throw .different("what differs in \(path) does not differ without the other peers")
    }
    guard short.layer == first.layer, short.what == first.what, short.field == first.field else {
      FileBytes.remove(output)
      throw .different("alone, the peer differs in \(short.layer), not in \(first.layer)")
    }
    return Summary(
      path: path, output: output, steps: short.step, recordedSteps: try stepCount(path),
      bytes: FileBytes.size(of: output), recordedBytes: FileBytes.size(of: path), divergence: short)
  }

  private static func divergence(
    of path: String, _ makePeer: @escaping TakeVerification.MakePeer
  ) throws(Refusal) -> Divergence {
    let verdict: Verdict
    do throws(TapeError) {
      let replayer = try Replayer(path: path, codecs: { LibraryCodecs() }, peer: makePeer)
      verdict = try replayer.run().verdict
    } catch {
      throw .unreadable(error)
    }
    switch verdict {
    case .diverged(let found): return found
    case .identical: throw .identical
    case .altered(let alteration): throw .altered(alteration)
    }
  }

  /// Copies the diverging actor's steps up to the divergence.
  private static func shorten(_ path: String, to divergence: Divergence, _ output: String)
    throws(TapeError)
  {
    let reader = try TapeReader(path: path)
    let copy = try TakeCopy(path: output, header: reader.header)
    var numbers = RowNumbering()
    while let chunk = try reader.chunk() {
      for step in chunk.steps where step.head.number <= divergence.step {
        guard step.head.actor == divergence.actor else { continue }
        let rows = numbers.renumbered(chunk.rows, step.rows)
        try copy.append(step.head, rows, 0..<rows.count)
      }
      if let last = chunk.steps.last, last.head.number >= divergence.step { break }
    }
    try copy.finish()
  }

  private static func stepCount(_ path: String) throws(Refusal) -> Int {
    do throws(TapeError) {
      return try TapeAudit.run(path: path).steps
    } catch {
      throw .unreadable(error)
    }
  }
}
