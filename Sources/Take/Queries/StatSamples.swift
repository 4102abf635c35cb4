package import Stats
package import Tape
package import Wire

/// Each peer's stats as of an instant, from the last `stat` rows up to it.
package struct StatSamples: Sendable {
  /// A stats object (RTCStats), as of its last sample.
  package struct Object: Hashable, Sendable {
    package var id: String
    package var type: String
    package var timestamp: Double
    /// The members as JSON.
    package var members: String

    package init(id: String, type: String, timestamp: Double, members: String) {
      self.id = id
      self.type = type
      self.timestamp = timestamp
      self.members = members
    }

    /// Converts an object of a stats report.
    package init(_ object: StatsObject) {
      self.init(
        id: object.id, type: object.type, timestamp: object.timestamp,
        members: object.membersJSON)
    }

    /// The names of the members and their values as JSON, in the report's order.
    package var list: [(name: String, value: String)] { StatMembers.list(members) }

    /// The complete object as JSON, as browsers print it.
    package var json: String {
      var text = "{"
      appendBody(to: &text)
      return text
    }

    /// Appends the object's JSON without the opening brace, so that other members may precede it.
    func appendBody(to text: inout String) {
      text += "\"id\":"
      JSONText.append(id, to: &text)
      text += ",\"timestamp\":"
      text += JSONText.number(timestamp).text
      text += ",\"type\":"
      JSONText.append(type, to: &text)
      let rest = members.dropFirst()
      if rest != "}" { text += "," }
      // Unlike `+=`, `append(contentsOf:)` does not count the characters of the two strings.
      text.append(contentsOf: rest)
    }
  }

  /// The stats objects of a peer.
  package struct Peer: Sendable {
    package var number: Int64
    package var label: String
    package var objects: [Object]

    package init(number: Int64, label: String, objects: [Object]) {
      self.number = number
      self.label = label
      self.objects = objects
    }
  }

  package private(set) var peers: [Peer] = []

  /// Creates samples from stats that were not read from a take.
  package init(peers: [Peer]) { self.peers = peers }

  /// Reads the stats of all peers as of an instant, or as of the take's end.
  package init(path: String, at instant: Wire.Instant?) throws(TapeError) {
    let connection = try TakeFile.open(path)
    do throws(SQLiteError) {
      for (peer, label) in try PeerLabels(connection).entries {
        peers.append(
          Peer(
            number: peer, label: label,
            objects: try StatSamples.objects(of: peer, connection, at: instant)))
      }
    } catch {
      throw TapeError(path: path, error)
    }
  }

  /// A peer's stats report in the take.
  package struct Instant: Hashable, Sendable {
    package var peer: Int64
    /// The step in which the getStats call returned.
    package var step: Int
    package var atNanoseconds: Int64
    package var objectCount: Int64
  }

  /// Returns the stats reports of all peers in order, except those on a single sender or receiver.
  package static func instants(path: String) throws(TapeError) -> [Instant] {
    let connection = try TakeFile.open(path)
    var instants: [Instant] = []
    do throws(SQLiteError) {
      let statement = try connection.prepare(
        """
        SELECT peer, reply_at_ns, reply_step,
          iif(json_type(reply) = 'object', reply ->> '$.objects', reply)
        FROM call
        WHERE name = 'getStats' AND reply IS NOT NULL
          AND arguments NOT LIKE '%"receiver"%' AND arguments NOT LIKE '%"sender"%'
        ORDER BY row
        """)
      while try statement.step() {
        let (peer, at, step, count) = statement.values(
          Int64.self, Int64.self, Int.self, Int64.self)
        instants.append(
          Instant(peer: peer, step: step, atNanoseconds: at, objectCount: count))
      }
    } catch {
      throw TapeError(path: path, error)
    }
    return instants
  }

  /// Returns the newest row of each object that still existed at the instant.
  ///
  /// An object that did not change has no newer row. When an object disappears, the next report's
  /// reply names it as `gone`.
  private static func objects(
    of peer: Int64, _ connection: borrowing SQLiteConnection, at instant: Wire.Instant?
  ) throws(SQLiteError) -> [Object] {
    let statement = try connection.prepare(
      """
      SELECT id, type, timestamp_ms, members FROM stat
      WHERE row IN (SELECT max(row) FROM stat WHERE peer = ?1 AND at_ns <= ?2 GROUP BY id)
        AND NOT EXISTS (
          SELECT 1 FROM call_reply, json_each(call_reply.reply, '$.gone') AS gone
          WHERE call_reply.peer = ?1 AND call_reply.at_ns <= ?2 AND call_reply.row > stat.row
            AND call_reply.reply LIKE '{"objects":%' AND gone.value = stat.id
        )
      ORDER BY type, row
      """)
    statement.bind(peer, at: 1)
    statement.bind(instant?.nanoseconds ?? .max, at: 2)
    var objects: [Object] = []
    while try statement.step() {
      let (id, type, timestamp, members) = statement.values(
        String.self, String.self, Double.self, String?.self)
      objects.append(
        Object(id: id, type: type, timestamp: timestamp, members: members ?? "{}"))
    }
    return objects
  }
}

// MARK: - StatSeries

/// All of a take's stats samples in time order: the output of `retake stats --series`.
///
/// While an object does not change, it has no rows and therefore no lines.
package enum StatSeries {
  /// How the samples are printed.
  package enum Format: String, CaseIterable, Sendable {
    /// One object per line in the browsers' form, preceded by its time and peer: `at_ns` and
    /// `peer_label`, and the older `at` (in seconds) and `peer`.
    case lines
    /// One member per line: `seconds,peer,type,id,member,value`.
    case csv
  }

  /// Writes the samples of some types, or of all types if the list is empty.
  ///
  /// - Parameter isWanted: called between samples; false stops the output.
  /// - Returns: the number of samples, each of one object.
  @discardableResult
  package static func write(
    path: String, types: [String], format: Format, selection: TakeSelection = TakeSelection(),
    isWanted: () -> Bool = { true },
    write: @escaping (String) -> Void
  ) throws(TapeError) -> Int {
    let connection = try TakeFile.open(path)
    var count = 0
    var pieces = Pieces(write)
    if format == .csv {
      pieces.add(CSVText.line(["seconds", "peer", "type", "id", "member", "value"]))
    }
    do throws(SQLiteError) {
      let statement = try connection.prepare(
        """
        SELECT stat.peer, stat.at_ns, peer.label, type, id, timestamp_ms, members
        FROM stat JOIN peer ON peer.peer = stat.peer ORDER BY stat.row
        """)
      while isWanted(), try statement.step() {
        let (peer, at, label, type, id, timestamp, members) = statement.values(
          Int64.self, Int64.self, String.self, String.self, String.self, Double.self, String?.self)
        guard types.isEmpty || types.contains(type), selection.holds(peer: peer, at: at) else {
          continue
        }
        count += 1
        let sample = Sample(
          atNanoseconds: at, peer: label,
          object: StatSamples.Object(
            id: id, type: type, timestamp: timestamp, members: members ?? "{}"))
        switch format {
        case .lines: sample.appendLine(to: &pieces.text)
        case .csv: sample.appendMembers(to: &pieces.text)
        }
        pieces.flush(atLeast: Pieces.length)
      }
    } catch {
      throw TapeError(path: path, error)
    }
    pieces.flush()
    return count
  }
}

private struct Sample {
  var atNanoseconds: Int64
  var peer: String
  var object: StatSamples.Object

  private var seconds: String { JSONText.number(Double(atNanoseconds) / 1e9).text }

  func appendLine(to text: inout String) {
    text += "{\"at_ns\":\(atNanoseconds),\"peer_label\":"
    JSONText.append(peer, to: &text)
    text += ",\"at\":"
    text += seconds
    text += ",\"peer\":"
    JSONText.append(peer, to: &text)
    text += ","
    object.appendBody(to: &text)
    text += "\n"
  }

  func appendMembers(to text: inout String) {
    let head = "\(seconds),\(CSVText.field(peer)),\(object.type),\(object.id),"
    for (name, value) in StatMembers.list(object.members) {
      text += head
      text += name
      text += ","
      text += value.hasPrefix("\"") ? CSVText.field(plain(value)) : value
      text += "\r\n"
    }
  }

  /// Strips the quotes from a JSON string but leaves its escapes.
  private func plain(_ value: String) -> String { String(value.dropFirst().dropLast()) }
}

// MARK: - StatMembers

/// Splits the members of a `stat` row, whose JSON may be invalid if the file was altered.
enum StatMembers {
  /// Returns the names and their values as JSON, in order.
  ///
  /// A member of a nested record is named `record.member`.
  static func list(_ json: String) -> [(name: String, value: String)] {
    var members: [(name: String, value: String)] = []
    let bytes = Array(json.utf8)
    var place = 0
    read(bytes, &place, prefix: "", depth: 0, into: &members)
    return members
  }

  /// The maximum depth of nested records, which real statistics never reach.
  private static let depthLimit = 3

  private static func read(
    _ bytes: [UInt8], _ place: inout Int, prefix: String, depth: Int,
    into members: inout [(name: String, value: String)]
  ) {
    guard place < bytes.count, bytes[place] == UInt8(ascii: "{") else { return }
    place += 1
    while place < bytes.count, bytes[place] == UInt8(ascii: "\"") {
      let name = prefix + text(bytes, skipString(bytes, &place), trim: 1)
      guard place < bytes.count, bytes[place] == UInt8(ascii: ":") else { return }
      place += 1
      if place < bytes.count, bytes[place] == UInt8(ascii: "{"), depth < depthLimit {
        read(bytes, &place, prefix: name + ".", depth: depth + 1, into: &members)
      } else {
        members.append((name, text(bytes, skipValue(bytes, &place), trim: 0)))
      }
      guard place < bytes.count, bytes[place] == UInt8(ascii: ",") else { break }
      place += 1
    }
    if place < bytes.count { place += 1 }
  }

  private static func text(_ bytes: [UInt8], _ range: Range<Int>, trim: Int) -> String {
    let end = max(range.lowerBound + trim, range.upperBound - trim)
    return String(decoding: bytes[min(range.lowerBound + trim, end)..<end], as: UTF8.self)
  }

  private static func skipString(_ bytes: [UInt8], _ place: inout Int) -> Range<Int> {
    let start = place
    place += 1
    while place < bytes.count, bytes[place] != UInt8(ascii: "\"") {
      place += bytes[place] == UInt8(ascii: "\\") ? 2 : 1
    }
    place = min(place + 1, bytes.count)
    return start..<place
  }

  private static func skipValue(_ bytes: [UInt8], _ place: inout Int) -> Range<Int> {
    guard place < bytes.count else { return place..<place }
    if bytes[place] == UInt8(ascii: "\"") { return skipString(bytes, &place) }
    let start = place
    while place < bytes.count, bytes[place] != UInt8(ascii: ","), bytes[place] != UInt8(ascii: "}")
    {
      place += 1
    }
    return start..<place
  }
}
