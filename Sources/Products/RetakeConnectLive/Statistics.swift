import Stats

/// A time in seconds, as CoreFoundation calls it.
public typealias CFTimeInterval = Double

/// A W3C statistics object.
public struct Statistics {
  /// The identifier, the same in every report.
  public var id: String
  /// `inbound-rtp`, `candidate-pair`, ...
  public var type: String
  /// The Unix time of the sample in seconds.
  public var timeStamp: CFTimeInterval
  /// The members by name: numbers, strings, Booleans and nested members.
  public var values: [String: Any]

  static func all(_ report: StatisticsReport?) -> [String: Statistics] {
    (report?.statistics ?? [:]).mapValues { object in
      Statistics(
        id: object.id, type: object.type, timeStamp: object.timeStamp,
        values: object.values.mapValues { $0.plain })
    }
  }
}

extension StatsValue {
  /// The value as a plain Foundation type.
  fileprivate var plain: Any {
    switch self {
    case .integer(let number): Int(truncatingIfNeeded: number)
    case .number(let number): number
    case .text(let text): text
    case .flag(let flag): flag
    case .record(let members):
      Dictionary(members.map { ($0.name, $0.value.plain) }) { first, _ in first }
    }
  }
}
