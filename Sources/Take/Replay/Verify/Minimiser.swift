import FoundationEssentials
import Media
package import Tape

/// Shortens a take that diverges to the shortest one that still diverges in the same way.
///
/// Everything after the differing step goes: nothing there is ever reached. So do the other peers:
/// in a take peers share a clock and nothing else. Of what is left no step can be spared, because
/// each one's outputs are in the take and are compared.
package struct Minimiser {
  /// What was made.
  package struct Summary: Hashable, Sendable, Codable {
    package var path: String
    package var output: String
    package var steps: Int
    package var recordedSteps: Int
    package var bytes: Int
    package var recordedBytes: Int
    /// The difference as it shows in the short take.
    package var divergence: Divergence
  }

  /// Why there is nothing to shorten.
  package enum Refusal: Error, Hashable, Sendable {
    case unreadable(TapeError)
    case identical
    case altered(Alteration)
    /// The short take does not show the same difference.
    case different(String)
  }

  /// Writes the short take; `output` must not exist.
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
      bytes: size(output), recordedBytes: size(path), divergence: short)
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

  /// Writes the steps of one peer up to the one that differs.
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

  private static func size(_ path: String) -> Int {
    FileBytes.size(of: path)
  }
}
