package import Tape
import Wire

/// Compares the takes in two folders: medians and quantiles, findings, and pairs of takes with the
/// same label.
package struct FolderDiff: Sendable {
  /// A quantity measured for each take.
  struct Measure: Sendable {
    /// The name in JSON, which ends in the unit if there is one.
    var name: String
    var title: String
    /// The unit to display, and the factor that converts values to it.
    var unit: String
    var scale: Double
    /// A difference counts only if it exceeds both this amount and a tenth of the value.
    var least: Double
    /// Whether higher values are worse; nil if neither higher nor lower values are.
    var moreIsWorse: Bool?
    /// An expression over a row of the `take` table.
    var sql: String
  }

  /// A measure's distribution over one folder's takes.
  struct Distribution: Sendable {
    var count = 0
    var low = 0.0
    var median = 0.0
    var high = 0.0
  }

  /// A measure, compared between the folders.
  struct Row: Sendable {
    var measure: Measure
    var sides: [Distribution]
    /// Labels that have this measure in both folders: their number, the median change, and how many
    /// rose or fell significantly.
    var pairs = 0
    var pairedChange: Double?
    var rose = 0
    var fell = 0
    var differs = false
  }

  /// A finding's id, and the number of takes in each folder that have this finding.
  struct Found: Sendable {
    var id: String
    var severity: FindingSeverity
    var takes: [Int]
    var differs: Bool
  }

  /// A label whose takes differ between the folders in one measure.
  struct Change: Sendable {
    var label: String
    var measure: Measure
    var values: [Double]
  }

  /// The folders as the user named them, and the number of takes in each.
  package let folders: [String]
  let takes: [Int]
  private(set) var rows: [Row] = []
  private(set) var findings: [Found] = []
  /// The largest changes between takes with the same label.
  private(set) var changes: [Change] = []
  /// The number of labels in both folders, and the labels in only one.
  private(set) var commonLabels = 0
  private(set) var onlyLabels: [[String]] = []

  /// Whether nothing differs significantly and no label is listed as being in only one folder.
  package var isEmpty: Bool {
    !rows.contains(where: \.differs) && !findings.contains(where: \.differs)
      && onlyLabels.allSatisfy(\.isEmpty)
  }

  /// Differences below a tenth of a value, or of the takes, are not significant.
  private static let tolerance = 0.1
  private static let changeMaximum = 20

  static let measures: [Measure] = [
    Measure(
      name: "connected_ns", title: "connecting", unit: "ms", scale: 1e-6, least: 20e6,
      moreIsWorse: true, sql: "connected_ns"),
    Measure(
      name: "round_trip_ns", title: "round trip", unit: "ms", scale: 1e-6, least: 5e6,
      moreIsWorse: true, sql: "round_trip_ms * 1e6"),
    Measure(
      name: "jitter_ns", title: "jitter", unit: "ms", scale: 1e-6, least: 2e6, moreIsWorse: true,
      sql: "jitter_ms * 1e6"),
    Measure(
      name: "loss_share", title: "loss", unit: "%", scale: 100, least: 0.005, moreIsWorse: true,
      sql: "loss_share"),
    Measure(
      name: "frozen_share", title: "frozen", unit: "%", scale: 100, least: 0.005,
      moreIsWorse: true,
      sql: "iif(EXISTS (SELECT 1 FROM quality WHERE quality.take = take.take AND kind = 'video'), "
        + "frozen_ns * 1.0 / nullif(duration_ns, 0), NULL)"),
    Measure(
      name: "concealed_share", title: "concealed", unit: "%", scale: 100, least: 0.005,
      moreIsWorse: true, sql: "concealed_share"),
    Measure(
      name: "video_bits_per_second", title: "video", unit: "kbit/s", scale: 1e-3, least: 10_000,
      sql: bitRate("video")),
    Measure(
      name: "audio_bits_per_second", title: "audio", unit: "kbit/s", scale: 1e-3, least: 2_000,
      sql: bitRate("audio")),
    Measure(
      name: "frames_per_second", title: "slowest video", unit: "fps", scale: 1, least: 1,
      moreIsWorse: false,
      sql: "(SELECT min(frames_per_second) FROM quality WHERE quality.take = take.take)"),
    Measure(
      name: "findings", title: "findings", unit: "", scale: 1, least: 0.5, moreIsWorse: true,
      sql: "findings"),
    Measure(
      name: "duration_ns", title: "length", unit: "s", scale: 1e-9, least: 1e9,
      sql: "duration_ns"),
  ]

  private static func bitRate(_ kind: String) -> String {
    "(SELECT sum(bits_per_second) FROM quality WHERE quality.take = take.take "
      + "AND kind = '\(kind)')"
  }

  // MARK: Comparison

  /// One folder's values.
  private struct Side {
    /// Each measure's values, one per take, for all takes and for the takes of each label.
    var values = [[Double]](repeating: [], count: measures.count)
    var labelled: [String: [[Double]]] = [:]
    /// The number of takes with a finding, by its id.
    var findings: [String: (severity: FindingSeverity, takes: Int)] = [:]
    var takes = 0

    init(_ catalogue: TakeCatalogue) throws(TapeError) {
      let rows = try catalogue.read { (connection) throws(SQLiteError) in
        let columns = measures.map(\.sql).joined(separator: ", ")
        let found = try connection.prepare("SELECT label, \(columns) FROM take")
        var rows: [(label: String, values: [Double?])] = []
        while try found.step() {
          let values = measures.indices.map { found.values(from: $0 + 1, Double?.self) }
          rows.append((found.text(0) ?? "", values))
        }
        return rows
      }
      takes = rows.count
      for row in rows {
        for (index, value) in row.values.enumerated() {
          guard let value, value.isFinite else { continue }
          values[index].append(value)
          guard !row.label.isEmpty else { continue }
          labelled[row.label, default: Array(repeating: [], count: measures.count)][index]
            .append(value)
        }
      }
      findings = try catalogue.read { (connection) throws(SQLiteError) in
        // A take may have findings of one rule at several severities.
        let found = try connection.prepare(
          """
          SELECT id, group_concat(DISTINCT severity), count(DISTINCT take) FROM finding GROUP BY id
          """)
        var findings: [String: (severity: FindingSeverity, takes: Int)] = [:]
        while try found.step() {
          let (id, names, count) = found.values(String.self, String.self, Int.self)
          let severities = names.split(separator: ",").compactMap {
            FindingSeverity(name: String($0))
          }
          findings[id] = (severities.max() ?? .info, count)
        }
        return findings
      }
    }
  }

  package init(
    _ first: TakeCatalogue, _ second: TakeCatalogue, folders: [String]
  ) throws(TapeError) {
    self.folders = folders
    let sides = [try Side(first), try Side(second)]
    takes = sides.map(\.takes)
    let labels = sides.map { Set($0.labelled.keys) }
    let common = labels[0].intersection(labels[1]).sorted()
    commonLabels = common.count
    // If the folders have no label in common, labels do not identify pairs, so none is listed as
    // unpaired.
    onlyLabels =
      common.isEmpty
      ? [[], []]
      : [labels[0].subtracting(labels[1]).sorted(), labels[1].subtracting(labels[0]).sorted()]
    for (index, measure) in Self.measures.enumerated() {
      compare(measure, index, sides, common)
    }
    compareFindings(sides)
    changes.sort { Self.weight($0) > Self.weight($1) }
    changes.removeLast(max(0, changes.count - Self.changeMaximum))
  }

  private mutating func compare(
    _ measure: Measure, _ index: Int, _ sides: [Side], _ labels: [String]
  ) {
    let distributions = sides.map { Self.distribution($0.values[index]) }
    guard distributions.contains(where: { $0.count > 0 }) else { return }
    var row = Row(measure: measure, sides: distributions)
    if distributions.allSatisfy({ $0.count > 0 }) {
      row.differs =
        Self.differs(distributions[0].median, distributions[1].median, measure)
        || Self.differs(distributions[0].high, distributions[1].high, measure)
    }
    var differences: [Double] = []
    for label in labels {
      let values = sides.map { $0.labelled[label]?[index] ?? [] }
      guard values.allSatisfy({ !$0.isEmpty }) else { continue }
      let medians = values.map { Self.distribution($0).median }
      differences.append(medians[1] - medians[0])
      guard Self.differs(medians[0], medians[1], measure) else { continue }
      if medians[1] > medians[0] { row.rose += 1 } else { row.fell += 1 }
      changes.append(Change(label: label, measure: measure, values: medians))
    }
    row.pairs = differences.count
    if !differences.isEmpty {
      row.pairedChange = Self.distribution(differences).median
      // A change between paired takes may not be visible in the distribution.
      row.differs = row.differs || row.rose + row.fell > 0
    }
    rows.append(row)
  }

  private mutating func compareFindings(_ sides: [Side]) {
    let ids = Set(sides.flatMap { $0.findings.keys }).sorted()
    findings = ids.map { id in
      let takes = sides.map { $0.findings[id]?.takes ?? 0 }
      let shares = zip(takes, sides).map { Double($0) / Double(max($1.takes, 1)) }
      return Found(
        id: id, severity: sides.compactMap { $0.findings[id]?.severity }.max() ?? .info,
        takes: takes, differs: abs(shares[0] - shares[1]) >= Self.tolerance)
    }.sorted { ($0.differs ? 0 : 1, $1.severity, $0.id) < ($1.differs ? 0 : 1, $0.severity, $1.id) }
  }

  private static func differs(_ one: Double, _ other: Double, _ measure: Measure) -> Bool {
    abs(one - other) > max(measure.least, tolerance * max(abs(one), abs(other)))
  }

  private static func weight(_ change: Change) -> Double {
    abs(change.values[1] - change.values[0]) / change.measure.least
  }

  /// Computes the median and the 10th and 90th percentiles.
  static func distribution(_ values: [Double]) -> Distribution {
    let sorted = values.sorted()
    func quantile(_ share: Double) -> Double {
      guard let last = sorted.indices.last else { return 0 }
      let place = share * Double(last)
      let low = Int(place)
      let high = min(low + 1, last)
      return sorted[low] + (sorted[high] - sorted[low]) * (place - Double(low))
    }
    return Distribution(
      count: sorted.count, low: quantile(0.1), median: quantile(0.5), high: quantile(0.9))
  }
}
