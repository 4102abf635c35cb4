import FoundationEssentials
import Media
import Peer
import Queries
import RTP
package import Tape
import Wire

/// Describes a row of a step on one line.
struct RowText {
  /// The layer that the row belongs to, such as `ice` or `media`.
  let layer: String
  let title: String

  init(_ rows: RowList, _ row: Int, isInput: Bool = false) {
    let table = rows.table(row)
    func text(_ column: String) -> String {
      guard let index = table.column(column), rows.has(index, in: row) else { return "" }
      return rows.text(row, index)
    }
    switch table {
    case .packet:
      let packet = PacketText(PacketRow(rows, row)?.bytes ?? [])
      layer = packet.layer
      title = "packet \(directionName(isInput)) \(packet.title)"
    case .relayed:
      layer = text("protocol")
      let size = RelayedRow(rows, row)?.bytes.count ?? 0
      title = "\(layer.uppercased()) packet of \(size) bytes from the other leg"
    case .path:
      layer = "ice"
      title = "a new path \(text("local")) to \(text("remote"))"
    case .network:
      layer = "ice"
      title = "\(text("kind")) \(text("address"))"
    case .state:
      layer = text("machine")
      title = "\(text("machine")) state \(text("from_state")) to \(text("to_state"))"
    case .candidate:
      layer = "ice"
      title = "\(text("type")) \(text("candidate_type")) \(text("address")) port \(text("port"))"
    case .candidatePair:
      layer = "ice"
      title =
        "candidate pair \(text("pair")): \(text("local")) to \(text("remote")), \(text("state"))"
    case .callReply:
      layer = "api"
      title = "the reply to call \(text("call"))"
    case .rtcp:
      layer = "rtcp"
      title = "RTCP \(text("type")) \(text("direction")), ssrc \(text("ssrc"))"
    case .track:
      layer = "jsep"
      title = "track \(text("track")) \(text("kind")) \(text("direction"))"
    case .stat:
      layer = "stats"
      title = "stats object \(text("type")) \(text("id"))"
    case .event:
      let event = EventText(type: text("type"), detail: text("detail"))
      (layer, title) = (event.layer, event.title)
    case .channel:
      layer = "sctp"
      title = "data channel \(text("channel")) \(text("state"))"
    case .message:
      layer = "sctp"
      title =
        "message \(text("direction")) on data channel \(text("channel")), \(text("size")) bytes"
    case .format, .frame, .level, .contribution, .speech:
      layer = "media"
      title = RowText.media(table, text)
    case .coverage:
      layer = "coverage"
      title =
        text("what") == "deduced"
        ? "judged: \(text("reason"))"
        : "not seen: \(CoverageText.line(what: text("what"), reason: text("reason")))"
    default:
      layer = table.name
      title = "\(table.name) row"
    }
  }

  private static func media(_ table: Table, _ text: (String) -> String) -> String {
    switch table {
    case .format: "a new \(text("codec")) format \(text("direction")), \(text("outcome"))"
    // Concealed audio has no packet.
    case .frame where text("rtp_time") == "0" && text("size") == "0":
      "audio that fills a gap, without a packet"
    case .frame: "frame with RTP time \(text("rtp_time")), \(text("size")) bytes"
    case .contribution:
      "voice \(text("contributor")) in track \(text("track")) \(text("direction"))"
    case .speech: "speech \(text("phase")) on track \(text("track")) \(text("direction"))"
    default: "\(table.name) of track \(text("track")) \(text("direction"))"
    }
  }
}

private struct EventText {
  let layer: String
  let title: String

  init(type: String, detail: String) {
    switch type {
    case "secured", "keylog", "certificate": layer = "dtls"
    case "track", "trackended", "addstream", "removestream", "negotiationneeded": layer = "jsep"
    case "icecandidate", "candidateremoved", "icecandidateerror", "selectedcandidatepairchange":
      layer = "ice"
    case "speaker", "enabled", "disabled", "mute", "unmute", "ended": layer = "media"
    case "bufferedamountlow", "datachannelerror": layer = "sctp"
    case "refused":
      let refusal = CanonicalJSON.value(Refusal.self, from: detail)
      layer = refusal?.layer ?? "api"
      title = "event refused: \(refusal?.reason ?? detail)"
      return
    default:
      // The details of events from rooms and audio sessions are JSON.
      (layer, title) = ("api", "event \(EventWords.text(type: type, detail: detail))")
      return
    }
    title = "event \(type)"
  }

  private struct Refusal: Decodable {
    var layer: String
    var reason: String
  }
}

/// Describes the input of a step, for reports and the debugger.
package struct InputText {
  /// The input with its step, time and peer.
  package let line: String
  /// The input without its step, time and peer.
  package let title: String

  package init(_ step: TapeChunk.Step) {
    title = InputText.title(step)
    line =
      "step \(step.head.number)  \(timeText(step.head.at.nanoseconds))  \(step.actorName)  "
      + title
  }

  private static func title(_ step: TapeChunk.Step) -> String {
    (step.input as? PeerInput).map(title) ?? step.input.title
  }

  private static func title(_ input: PeerInput) -> String {
    switch input {
    case .genesis: return "genesis"
    case .interfaces(let addresses, _):
      return "interfaces " + addresses.map(\.description).joined(separator: " ")
    case .datagram(let datagram, _):
      return "packet in \(PacketText(datagram.bytes).title) from \(datagram.remote)"
    case .deadline: return "deadline"
    case .call(let id, let call):
      let name = "\(call)".prefix { $0 != "(" }
      return "call \(id) \(name)"
    case .send(let id, let message):
      return "call \(id) send \(message.bytes.count) bytes on data channel \(message.channel)"
    case .captured(let transceiver, let media):
      switch media {
      case .audio(let block): return "\(block.frameCount) samples for transceiver \(transceiver)"
      case .videoFrame(let videoFrame), .frame(let videoFrame, _):
        return "picture \(videoFrame.width)x\(videoFrame.height) for transceiver \(transceiver)"
      case .encoded(let codec, let stream):
        return
          "\(codec.rawValue) video frame of \(stream.count) bytes for transceiver \(transceiver)"
      }
    case .answer(.socketBound(let id, let address)): return "socket \(id) bound to \(address)"
    case .answer(.socketFailed(let id, let code)): return "socket \(id) failed with error \(code)"
    case .answer(.nameResolved(let id, let addresses)):
      return "name \(id) resolved to " + addresses.map(\.description).joined(separator: " ")
    case .answer(.streamAccepted(let local, let remote)): return "\(remote) connected to \(local)"
    case .sendFailed(let failure):
      return "sending to \(failure.remote) failed with \(failure.code)"
    case .signaling(let message):
      return "signaling \(message.type) \(message.isInbound ? "received" : "sent")"
    case .relayed(let packet):
      return "\(packet.kind) of \(packet.bytes.count) bytes from the other leg"
    }
  }
}

// MARK: - RowFacts

/// Remembers rows that later rows refer to by number: paths, frame formats and peers.
///
/// It must see the rows of every step, starting with the first.
package struct RowMemory {
  private var paths: [Int64: (local: String, remote: String)] = [:]
  private var formats: [Int64: [Value]] = [:]
  private var labels: [UInt32: String] = [:]

  package init() {}

  /// Remembers the rows of a step that later rows may refer to.
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

  package func label(of peer: UInt32) -> String { labels[peer] ?? "" }
}

/// A row with the fields and words that conditions can match.
struct RowFacts {
  let rows: RowList
  let row: Int
  let peer: UInt32
  /// Whether the row is part of the step's input rather than its outputs.
  let isInput: Bool
  let memory: RowMemory

  var table: Table { rows.table(row) }

  /// Returns the value of a field, which may be a column or come from a view; nil if there is none.
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

  /// Returns whether a word, in lower case, describes the row.
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
    if case .blob(let bytes) = rows[row, column: "bytes"] { return bytes }
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
