import Wire

/// A stats object in the form of the room SDKs: flat, with its members by name.
public struct Statistics: Hashable, Sendable {
  /// The same for the same thing in every report.
  public var id: String
  /// `inbound-rtp`, `candidate-pair`, ...
  public var type: String
  /// Unix time of the sample in seconds.
  public var timeStamp: Double
  /// The members by their W3C names.
  public var values: [String: StatsValue]

  /// The form of a W3C object.
  public init(_ object: StatsObject) {
    id = object.id
    type = object.type
    timeStamp = object.timestamp / 1000
    values = Dictionary(object.members.map { ($0.name, $0.value) }) { first, _ in first }
  }

  /// The object as JSON with its values in the order of their names.
  public var json: String {
    let members = values.sorted { $0.key < $1.key }.map { ($0.key, JSONText($0.value)) }
    return JSONText.object([
      ("id", .text(id)), ("type", .text(type)), ("timeStamp", .number(timeStamp)),
      ("values", .object(members)),
    ]).text
  }
}

/// What the room SDKs report of one direction: of the session that sends, or of the one that
/// receives.
public struct StatisticsReport: Hashable, Sendable {
  /// By id.
  public var statistics: [String: Statistics]
  /// Unix time of the report in seconds; 0 without objects.
  public var timeStamp: Double

  /// The form of a W3C report.
  public init(_ report: StatsReport) {
    statistics = Dictionary(report.objects.map { ($0.id, Statistics($0)) }) { first, _ in first }
    timeStamp = (report.objects.map(\.timestamp).max() ?? 0) / 1000
  }

  /// The report as JSON with its objects in the order of their ids.
  public var json: String {
    let objects = statistics.sorted { $0.key < $1.key }.map { ($0.key, JSONText($0.value.json)) }
    return JSONText.object([
      ("timeStamp", .number(timeStamp)), ("statistics", .object(objects)),
    ]).text
  }
}

extension StatsReport {
  /// What this side sends, in the SDKs' form (getLocalStatsReport): the sent streams with their
  /// sources, the peer's reports on them, and the transport below.
  public var local: StatisticsReport { direction("outbound-rtp") }

  /// What this side receives, in the SDKs' form (getRemoteStatsReport).
  public var remote: StatisticsReport { direction("inbound-rtp") }

  private func direction(_ type: String) -> StatisticsReport {
    StatisticsReport(reachable(from: objects.filter { $0.type == type }.map(\.id)))
  }
}
