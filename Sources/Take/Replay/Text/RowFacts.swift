import FoundationEssentials
package import Tape

/// What rows of a take refer to by number: paths, frame formats and peers.
///
/// It learns from the rows as they pass by, so it begins with the first one.
package struct RowMemory {
  private var paths: [Int64: (local: String, remote: String)] = [:]
  private var formats: [Int64: [Value]] = [:]
  private var labels: [UInt32: String] = [:]

  package init() {}

  /// Records the rows of a step.
  package mutating func learn(_ rows: RowList, _ range: Range<Int>) {
    for row in range {
      switch rows.table(row) {
      case .path:
        guard let path = PathRow(rows, row) else { continue }
        paths[path.number] = (path.local, path.remote)
      case .format:
        guard let format = FormatRow(rows, row) else { continue }
        formats[format.number] = rows.row(row)
      case .peer:
        guard let peer = PeerRow(rows, row) else { continue }
        labels[peer.peer.number] = peer.label
      default: break
      }
    }
  }

  fileprivate func path(_ number: Int64) -> (local: String, remote: String)? { paths[number] }

  fileprivate func format(_ number: Int64, _ column: String) -> Value? {
    guard let index = Table.format.column(column) else { return nil }
    return formats[number].map { $0[index] }
  }

  /// The label of a peer.
  package func label(of peer: UInt32) -> String { labels[peer] ?? "" }
}

/// A row with the names and words by which people look for it.
struct RowFacts {
  let rows: RowList
  let row: Int
  let peer: UInt32
  /// Whether the row belongs to the input of its step.
  let isInput: Bool
  let memory: RowMemory

  var table: Table { rows.table(row) }

  /// The value of a field: a column, or what a view of the take adds to it.
  func field(_ name: String) -> String? {
    switch (table, name) {
    case (_, "peer"): return String(peer)
    case (_, "label"): return memory.label(of: peer)
    case (.packet, "direction"): return directionName(isInput)
    case (.packet, "protocol"):
      let layer = packet.layer
      return layer == "ice" ? "stun" : layer
    case (.packet, "size"): return String(bytes.count)
    case (.packet, "payload_type"): return integer("marker_type").map { String($0 & 0x7f) }
    case (.packet, "marker"): return integer("marker_type").map { String($0 >> 7 & 1) }
    case (.packet, "local"): return integer("path").flatMap { memory.path($0)?.local }
    case (.packet, "remote"): return integer("path").flatMap { memory.path($0)?.remote }
    default: break
    }
    if let column = table.column(name), rows.has(column, in: row) {
      return rows[row, column] == .null ? nil : rows.text(row, column)
    }
    if table == .frame, let format = integer("format"), let value = memory.format(format, name) {
      return value == .null ? nil : value.summary
    }
    return nil
  }

  /// Whether a word, in lower case, is one of those that describe the row.
  func has(_ word: String) -> Bool {
    switch table {
    case .packet:
      return word == directionName(isInput) || word == field("protocol")
        || words(of: packet.title).contains(word)
    case .state: return word == field("machine") || word == field("to_state")
    case .frame:
      return ["direction", "kind", "outcome", "codec"].contains { field($0) == word }
        || word == "key" && field("key") == "1"
    case .event, .callRequest, .signaling, .rtcp, .track, .candidate, .network, .candidatePair:
      return table.columnNames.contains { name in
        name != "message" && name != "fields" && field(name)?.lowercased() == word
      }
    default: return table.columnNames.contains { field($0)?.lowercased() == word }
    }
  }

  private var bytes: [UInt8] {
    if case .blob(let bytes)? = rows.row(row).last { return bytes }
    return []
  }

  private var packet: PacketText { PacketText(bytes) }

  private func integer(_ column: String) -> Int64? {
    if case .integer(let number) = rows[row, column: column] { return number }
    return nil
  }

  private func words(of title: String) -> [String] {
    title.lowercased().split { !$0.isLetter && !$0.isNumber }.map { String($0) }
  }
}
