package import Wire

/// An event that another WebRTC stack reported about itself, whatever the file format.
///
/// Names follow the W3C API: `setLocalDescription`, `iceconnectionstatechange`.
package struct ReportedEvent: Hashable, Sendable {
  /// What happened: an API call or its result, an event, or a statistics report.
  package enum Content: Hashable, Sendable {
    /// A connection was created with this configuration.
    case connection(configuration: JSONValue?)
    /// A function of the API was called.
    case call(name: String, arguments: JSONValue?)
    /// A call of that name succeeded.
    case success(name: String, result: JSONValue?)
    /// A call of that name failed; the reason is a string or an object.
    case failure(name: String, reason: JSONValue?)
    /// An event was fired, or something else was logged.
    case event(name: String, detail: JSONValue?)
    case stats(ReportedStats)
  }

  /// The connection's id in the file; nil for page-level events.
  package var connection: String?
  /// Unix time in milliseconds; nil if the file has none.
  package var unixMilliseconds: Double?
  package var content: Content
  /// The id that links a call with its result, if the file has one.
  package var correlation: String?

  package init(
    connection: String?, unixMilliseconds: Double?, content: Content, correlation: String? = nil
  ) {
    self.connection = connection
    self.unixMilliseconds = unixMilliseconds
    self.content = content
    self.correlation = correlation
  }
}

/// A getStats report, complete or as changes since the previous one.
package struct ReportedStats: Hashable, Sendable {
  /// How a report's objects relate to those in the previous report.
  package enum Form: String, CaseIterable, Hashable, Sendable {
    /// Each object is complete; an object that is not listed was removed.
    case whole
    /// Each object has only its changed members; an object that is not listed was removed.
    case changedMembers
    /// Only changed objects and members are present; null means removed.
    case changes
  }

  /// An object by id; nil members mean that it was removed.
  package struct Object: Hashable, Sendable {
    package var id: String
    /// All members but the id, including `type` and `timestamp`.
    package var members: [JSONValue.Member]?

    package init(id: String, members: [JSONValue.Member]?) {
      self.id = id
      self.members = members
    }
  }

  package var form: Form
  /// The Unix time, in milliseconds, of objects without a timestamp; nil for the event's time.
  package var timestamp: Double?
  package var objects: [Object]

  package init(form: Form, timestamp: Double?, objects: [Object]) {
    self.form = form
    self.timestamp = timestamp
    self.objects = objects
  }

  /// The report as a value for storage, as read by `init(_:)`.
  package var value: JSONValue {
    .members(
      ("form", .text(form.rawValue)), ("timestamp", timestamp.map { .number($0) }),
      (
        "objects",
        .object(
          objects.map { object in
            JSONValue.Member(object.id, object.members.map { .object($0) } ?? .null)
          })
      ))
  }

  /// Reads a stored report; fails if the value is malformed.
  package init?(_ value: JSONValue) {
    guard let form = value["form"]?.text.flatMap({ Form(rawValue: $0) }) else { return nil }
    self.form = form
    timestamp = value["timestamp"]?.number
    objects = (value["objects"]?.members ?? []).map { member in
      if case .object(let members) = member.value {
        Object(id: member.name, members: members)
      } else {
        Object(id: member.name, members: nil)
      }
    }
  }

  /// Parses a report in getStats form: a map from id to object.
  ///
  /// - Parameter timestamp: the time of objects without a timestamp; nil for the event's time.
  package init(map value: JSONValue, form: Form, timestamp: Double?) {
    self.form = form
    self.timestamp = timestamp
    objects = value.members.compactMap { member in
      guard case .object(let members) = member.value else {
        return member.value == .null ? Object(id: member.name, members: nil) : nil
      }
      return Object(id: member.name, members: members.statisticsMembers)
    }
  }
}

extension JSONValue {
  /// The value as a Unix time in milliseconds: a number, possibly in a string, or a date; nil if it
  /// is neither.
  ///
  /// No file says in which unit its times are. If a number falls into the years 2010 to 2059 as
  /// seconds, microseconds or nanoseconds, it is converted from that unit. Any other number is
  /// kept: it is in milliseconds, perhaps since a page was loaded or a machine started.
  var unixMilliseconds: Double? {
    let written = text.flatMap(Double.init).flatMap { $0.isFinite ? $0 : nil }
    guard let number = number ?? written else { return text.flatMap(ReportedDate.milliseconds) }
    let plausibleSeconds = 1_262_304_000.0..<2_840_140_800
    for unitsPerSecond in [1, 1e6, 1e9] where plausibleSeconds.contains(number / unitsPerSecond) {
      return number / unitsPerSecond * 1000
    }
    return number
  }
}

extension [JSONValue.Member] {
  /// A statistics object's members as a report keeps them: without the id, which is its key, and
  /// with all times in milliseconds (webrtc-stats, `DOMHighResTimeStamp`).
  var statisticsMembers: [JSONValue.Member] {
    compactMap { member in
      if member.name == "id" { return nil }
      guard member.name == "timestamp" || member.name.hasSuffix("Timestamp"),
        let time = member.value.unixMilliseconds, time != member.value.number
      else { return member }
      return JSONValue.Member(member.name, .number(time))
    }
  }
}
