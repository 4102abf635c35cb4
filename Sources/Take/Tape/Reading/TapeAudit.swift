package import Wire

/// Checks that a file is what was recorded, without replaying it.
package struct TapeAudit: Sendable {
  package var steps = 0
  /// The time of the last step that was good.
  package var at = Instant.zero
  /// Whether the recording ended in order; else its recorder was killed and the take ends early.
  package var isComplete = false
  /// The first thing that is not as it was recorded; nil when all is.
  package var alteration: Alteration?

  /// Reads a whole take; progress gets the time of the step that was just read.
  package static func run(path: String, progress: (Instant) -> Void = { _ in }) throws(TapeError)
    -> TapeAudit
  {
    let reader = try TapeReader(path: path)
    var audit = TapeAudit()
    audit.isComplete = reader.ending != nil
    do throws(TapeFault) {
      while let chunk = try reader.next() {
        audit.steps += chunk.steps.count
        if let last = chunk.steps.last {
          audit.at = last.head.at
          progress(last.head.at)
        }
      }
    } catch {
      switch error {
      case .unreadable(let reason): throw reason
      case .altered(let alteration, _): audit.alteration = alteration
      }
    }
    return audit
  }
}
