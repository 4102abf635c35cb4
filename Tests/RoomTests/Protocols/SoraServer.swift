import Wire

@testable import Room

/// One connection at a Sora server, modelled on its public documentation and its clients' sources:
/// its replies to the client, and its messages about other participants who join and leave.
struct SoraServer {
  static let ownID = "OWN0"

  private(set) var connect: JSONValue?
  /// The client's answers, with their types, in order.
  private(set) var answers: [(type: String, sdp: String)] = []
  private(set) var pongs: [JSONValue] = []
  private(set) var disconnectReason: String?
  private(set) var candidates: [String] = []
  /// Other participants who send audio, in order of arrival.
  private(set) var others: [String] = []
  /// Members that a test adds to the server's offer.
  var offerMembers: [JSONValue.Member] = []

  /// Returns the replies to a client's message.
  mutating func receive(_ message: JSONValue) -> [JSONValue] {
    switch message["type"]?.text {
    case "connect"?:
      connect = message
      return [offer]
    case "answer"?:
      answers.append(("answer", message["sdp"]?.text ?? ""))
      return [created(Self.ownID)]
    case let type? where ["re-answer", "update"].contains(type):
      answers.append((type, message["sdp"]?.text ?? ""))
    case "candidate"?: candidates.append(message["candidate"]?.text ?? "")
    case "pong"?: pongs.append(message)
    case "disconnect"?: disconnectReason = message["reason"]?.text
    default: break
    }
    return []
  }

  private var offer: JSONValue {
    let members: [JSONValue.Member] = [
      .init("type", "offer"), .init("sdp", .text(sdp)), .init("client_id", "client"),
      .init("connection_id", .text(Self.ownID)), .init("session_id", "SESSION"),
      .init(
        "config",
        .members(
          (
            "iceServers",
            .list([
              .members(
                ("urls", .list(["turn:turn.example?transport=udp"])), ("username", "u"),
                ("credential", "c"))
            ])
          ), ("iceTransportPolicy", "relay"))),
      .init("mid", .members(("audio", "a"), ("video", "v"))),
    ]
    return .object(members + offerMembers)
  }

  /// The offer: the client's sections, and one for each other participant.
  private var sdp: String {
    let localSections =
      section("audio", mid: "a", "recvonly", nil) + section("video", mid: "v", "recvonly", nil)
    let more = others.map { section("audio", mid: "m" + $0, "sendonly", $0) }
    return "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n" + localSections + more.joined()
  }

  private func section(_ kind: String, mid: String, _ direction: String, _ stream: String?)
    -> String
  {
    "m=\(kind) 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:\(mid)\r\na=\(direction)\r\n"
      + (stream.map { "a=msid:\($0) track-\($0)\r\n" } ?? "")
  }

  private func created(_ id: String) -> JSONValue {
    let data = others.filter { $0 != id }.map {
      JSONValue.members(("connection_id", .text($0)), ("client_id", .text("client-" + $0)))
    }
    return .members(
      ("type", "notify"), ("event_type", "connection.created"), ("role", "sendrecv"),
      ("connection_id", .text(id)), ("client_id", .text("client-" + id)),
      ("data", id == Self.ownID ? .list(data) : nil))
  }

  /// Adds a participant who sends; returns the notification and the new offer.
  mutating func arrive(_ id: String, type: String = "re-offer") -> [JSONValue] {
    others.append(id)
    return [created(id), .members(("type", .text(type)), ("sdp", .text(sdp)))]
  }

  /// Removes a participant; returns the new offer and the notification.
  mutating func leave(_ id: String) -> [JSONValue] {
    others.removeAll { $0 == id }
    return [
      .members(("type", "re-offer"), ("sdp", .text(sdp))),
      .members(
        ("type", "notify"), ("event_type", "connection.destroyed"), ("connection_id", .text(id))),
    ]
  }
}
