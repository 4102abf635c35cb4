import Wire

/// A cause, with what it led to.
package struct Finding: Sendable {
  /// The id of its rule.
  package var id: String
  package var title: String
  /// The worst of its own and its symptoms'.
  package var severity: FindingSeverity
  package var scope: FindingRule.Scope
  /// Of whom: `caller's video to callee`, `from caller to callee`.
  package var subject: String
  /// What of it was found, in the order of time: of one stream, or of several that one fault hit.
  package var detections: [Detection]
  /// What the cause and its symptoms cost together.
  package var impact: FindingImpact
  /// What it led to, the worst first.
  package var symptoms: [Finding]
  /// Which stream its worst detection is of, where several were hit: `callee's audio`.
  package var worstStream: String?
  /// What could not be seen at that time and weakens it.
  package var doubts: [String] = []
  /// What replaying it otherwise showed, where that was asked for.
  package var explanation: String?

  package var fromNanoseconds: Int64 { detections.map(\.fromNanoseconds).min() ?? 0 }
  package var toNanoseconds: Int64 { detections.map(\.toNanoseconds).max() ?? 0 }

  /// Its worst detection.
  package var worst: Detection? {
    detections.max {
      ($0.impact.harmSeconds, $0.impact.share, $0.length, $1.fromNanoseconds)
        < ($1.impact.harmSeconds, $1.impact.share, $1.length, $0.fromNanoseconds)
    }
  }

  /// How long it lasted in all; what went on at the same time counts once.
  package var lengthNanoseconds: Int64 {
    Finding.union(detections.map { ($0.fromNanoseconds, $0.toNanoseconds) })
  }

  /// The ids of the cause and all of its symptoms, from the cause down.
  package var ids: [String] { [id] + symptoms.flatMap(\.ids) }

  static func union(_ spans: [(from: Int64, to: Int64)]) -> Int64 {
    var sum: Int64 = 0
    var end = Int64.min
    for span in spans.sorted(by: { $0.from < $1.from }) where span.to > end {
      sum &+= max(0, span.to &- max(span.from, end))
      end = span.to
    }
    return sum
  }
}

extension Detection {
  package var length: Int64 { toNanoseconds &- fromNanoseconds }
}
