/// A value of a stats member.
public enum StatsValue: Hashable, Sendable {
  /// A counter or a whole number.
  case integer(Int64)
  /// A measure: seconds, a level, a rate.
  case number(Double)
  /// An identifier, a state, an address.
  case text(String)
  /// A flag.
  case flag(Bool)
  /// A nested record, as W3C has for quality limitation durations.
  case record([StatsMember])
}

/// A member of a stats object: its W3C name and value.
public struct StatsMember: Hashable, Sendable {
  /// The W3C name.
  public var name: String
  /// The value.
  public var value: StatsValue

  /// Creates a member.
  public init(_ name: String, _ value: StatsValue) {
    self.name = name
    self.value = value
  }
}

/// One stats object (W3C RTCStats and its heirs); members that do not apply are absent.
public struct StatsObject: Hashable, Sendable {
  /// Unpredictable but the same for the same thing in every report.
  public var id: String
  /// `inbound-rtp`, `candidate-pair`, ...
  public var type: String
  /// Unix time of the sample in milliseconds.
  public var timestamp: Double
  /// The other members in the order of the standard.
  public var members: [StatsMember]

  /// Creates an object.
  public init(id: String, type: String, timestamp: Double, members: [StatsMember]) {
    self.id = id
    self.type = type
    self.timestamp = timestamp
    self.members = members
  }
}

/// What getStats gives: stats objects in a fixed order.
public struct StatsReport: Hashable, Sendable {
  /// The objects.
  public var objects: [StatsObject]

  /// Creates a report.
  public init(objects: [StatsObject] = []) { self.objects = objects }
}
