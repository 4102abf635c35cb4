import Media
import Peer
import RTP
package import Tape
import Wire

/// A row in words: what an output was.
struct RowText {
  /// The layer that made the output.
  let layer: String
  /// The output on one line.
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
      title = "the answer to call \(text("call"))"
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
        ? "judged: \(text("reason"))" : "not seen: \(text("what")), because \(text("reason"))"
    default:
      layer = table.name
      title = "\(table.name) row"
    }
  }

  /// A row about media in words.
  private static func media(_ table: Table, _ text: (String) -> String) -> String {
    switch table {
    case .format: "a new \(text("codec")) format \(text("direction")), \(text("outcome"))"
    case .frame: "frame with RTP time \(text("rtp_time")), \(text("size")) bytes"
    case .contribution:
      "voice \(text("contributor")) in track \(text("track")) \(text("direction"))"
    case .speech: "speech \(text("phase")) on track \(text("track")) \(text("direction"))"
    default: "\(table.name) of track \(text("track")) \(text("direction"))"
    }
  }
}

/// An event in words.
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
      // Of rooms and audio sessions, whose rows say in JSON what happened.
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

/// An input in words.
package struct InputText {
  /// The input with its step, time and peer.
  package let line: String
  /// The input alone.
  package let title: String

  /// Describes the input of a step.
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
    }
  }
}
