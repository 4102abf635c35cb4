package import Wire

/// Something that another WebRTC stack reported about itself, whichever file it stood in.
///
/// Names are those of the W3C API: `setLocalDescription`, `iceconnectionstatechange`.
package struct ReportedEvent: Hashable, Sendable {
  /// What was reported.
  package enum Content: Hashable, Sendable {
    /// A connection was made, with the configuration that it got.
    case connection(configuration: JSONValue?)
    /// A function of the API was called.
    case call(name: String, arguments: JSONValue?)
    /// A call of that name succeeded.
    case success(name: String, result: JSONValue?)
    /// A call of that name failed; the reason in words or as an object.
    case failure(name: String, reason: JSONValue?)
    /// An event was fired, or something else was logged.
    case event(name: String, detail: JSONValue?)
    case stats(ReportedStats)
  }

  /// The connection as its file names it; nil for what is about the page as a whole.
  package var connection: String?
  /// Unix time in milliseconds; nil where the file has none for it.
  package var unixMilliseconds: Double?
  package var content: Content
  /// What a call and its result share, where the file has it.
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

/// A report of getStats, whole or as what changed since the one before.
package struct ReportedStats: Hashable, Sendable {
  /// How an object relates to the same one of the report before.
  package enum Form: String, Hashable, Sendable {
    /// Each object has all its members, and one that is missing is gone.
    case whole
    /// Each object has the members that changed, and one that is missing is gone.
    case changedMembers
    /// Only objects and members that changed are there; one that is gone is null.
    case changes
  }

  /// An object by its id; members nil: it is gone.
  package struct Object: Hashable, Sendable {
    package var id: String
    /// All but the id, `type` and `timestamp` among them.
    package var members: [JSONValue.Member]?

    package init(id: String, members: [JSONValue.Member]?) {
      self.id = id
      self.members = members
    }
  }

  package var form: Form
  /// Unix time in milliseconds of objects without a time of their own; nil: that of the event.
  package var timestamp: Double?
  package var objects: [Object]

  package init(form: Form, timestamp: Double?, objects: [Object]) {
    self.form = form
    self.timestamp = timestamp
    self.objects = objects
  }

  /// The report as a value that is written down, and read again by `init(_:)`.
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

  /// Reads what `value` wrote; nil for anything else.
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

  /// Reads a report as getStats gives it: a map from id to object.
  ///
  /// - Parameter timestamp: the time of objects that have none, or 0.
  package init(map value: JSONValue, form: Form, timestamp: Double?) {
    self.form = form
    self.timestamp = timestamp
    objects = value.members.compactMap { member in
      guard case .object(let members) = member.value else {
        return member.value == .null ? Object(id: member.name, members: nil) : nil
      }
      return Object(id: member.name, members: members.filter { $0.name != "id" })
    }
  }
}
