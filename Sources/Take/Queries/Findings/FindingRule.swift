package import Tape
import Wire

/// Something that an engineer would look for in a take, with the query that finds or shows it.
package struct FindingRule: Sendable {
  /// What a detection of a rule is about.
  ///
  /// Detections of one rule about the same thing are one finding, and a cause explains only
  /// symptoms of what it is about.
  package enum Scope: Sendable {
    /// One stream in one direction, seen by either end.
    case stream
    /// Everything that goes from one end of a connection to the other.
    case flow
    /// A connection, with both of its ends.
    case connection
    /// One end: its process, microphone, camera or interfaces.
    case end
    /// The take as a whole.
    case call
  }

  /// A number that a rule decides by.
  package struct Threshold: Sendable {
    /// As the query names it after a colon: `:least_share`.
    ///
    /// Lower case with underscores.
    package let name: String
    package let value: Double
    /// `ms`, `s`, `%`, `packets`, ...; empty for a ratio.
    package let unit: String
    /// What it bounds, and where it comes from: `more is loss; RKB networkaudiolossout`.
    package let source: String

    package init(_ name: String, _ value: Double, _ unit: String, _ source: String) {
      self.name = name
      self.value = value
      self.unit = unit
      self.source = source
    }
  }

  /// What a rule in Swift looks at, besides the facts: its thresholds, as they are in force.
  package struct Limits: Sendable {
    var values: [String: Double] = [:]
    /// The value of a threshold of the rule; 0 for a name that it does not have.
    package subscript(name: String) -> Double { values[name] ?? 0 }
  }

  /// Detects in Swift.
  ///
  /// It must not depend on the order of a dictionary.
  package typealias Detector =
    @Sendable (CallFacts, Limits, borrowing SQLiteConnection) throws(SQLiteError) -> [Detection]

  /// The id: lower case with hyphens.
  ///
  /// It stays valid for ever.
  package let id: String
  package var severity: FindingSeverity
  /// A noun phrase in the words of a person, without the subject: `Packet loss`.
  package let title: String
  package let scope: Scope
  package let thresholds: [Threshold]
  /// The ids of rules that may stand above this one, the likeliest cause first.
  package let causes: [String]
  /// The ids of rules that take this one back where they fired about the same thing at that time.
  package let silentUnder: [String]
  /// Whether it adds up rows of packets, frames or statistics, so that of a part of a take it must
  /// see the rows of that part alone.
  package let sumsUp: Bool
  /// Whether it only explains: it stands between a cause and a symptom, and is no finding alone.
  package let isLink: Bool
  /// One statement, with thresholds as `:name`.
  ///
  /// Without `detector` it gives `peer`, `from_ns`, `to_ns`, `evidence` and optionally the columns
  /// of `Detection`; with it, the rows that show it.
  let template: String
  let detector: Detector?
  /// Thresholds that a file of rules moved.
  var moved: [String: Double] = [:]

  package init(
    id: String, severity: FindingSeverity, title: String, scope: Scope = .stream,
    thresholds: [Threshold] = [], causes: [String] = [], silentUnder: [String] = [],
    sumsUp: Bool = false, isLink: Bool = false, sql: String, detector: Detector? = nil
  ) {
    self.id = id
    self.severity = severity
    self.title = title
    self.scope = scope
    self.thresholds = thresholds
    self.causes = causes
    self.silentUnder = silentUnder
    self.sumsUp = sumsUp
    self.isLink = isLink
    self.template = sql
    self.detector = detector
  }

  var limits: Limits {
    var limits = Limits()
    for threshold in thresholds {
      limits.values[threshold.name] = moved[threshold.name] ?? threshold.value
    }
    return limits
  }

  /// The query with its thresholds as numbers, which anyone can run.
  package var sql: String {
    // The longest names first, as one may begin like another.
    thresholds.sorted { $0.name.utf8.count > $1.name.utf8.count }.reduce(template) {
      let value = moved[$1.name] ?? $1.value
      let isWhole = value == value.rounded() && abs(value) < 9e15
      return $0.replacing(":" + $1.name, with: isWhole ? "\(Int64(saturating: value))" : "\(value)")
    }
  }

  /// Where a query that needs all rows adds up those of a part of the take: see `sql(of:)`.
  static let window = "/* only a part */"

  /// The query for a part of the take.
  func sql(of selection: TakeSelection) -> String {
    let (from, to) = (selection.fromNanoseconds, selection.toNanoseconds)
    return from == .min && to == .max
      ? sql : sql.replacing(Self.window, with: "AND at_ns BETWEEN \(from) AND \(to)")
  }

  /// When the take ends; one that was cut short has no ending.
  static let end = TakeInfo.end
}
