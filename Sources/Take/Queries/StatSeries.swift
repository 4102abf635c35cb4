package import Tape
import Wire

/// All samples of a take's stats in the order of time: what `retake stats --series` prints.
///
/// An object that did not change since the sample before has no line, as it has no row.
package enum StatSeries {
  /// How a series is printed.
  package enum Format: String, CaseIterable, Sendable {
    /// One object per line, in the shape of browsers with its time and peer in front: `at_ns` and
    /// `peer_label`, and as before in seconds and as `peer`.
    case lines
    /// One member per line: `seconds,peer,type,id,member,value`.
    case csv
  }

  /// Prints the samples of some types, or of all when none is named, in pieces.
  ///
  /// - Parameter isWanted: false when what follows may be left out.
  /// - Returns: how many samples of objects there were.
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

  /// A JSON string without its quotes; what is escaped stays so.
  private func plain(_ value: String) -> String { String(value.dropFirst().dropLast()) }
}
