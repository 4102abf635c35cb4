package import SDP
package import Wire

/// A message from a participant to the server of Retake's own room protocol.
///
/// Messages are JSON objects with a `type`, on a WebSocket with the subprotocol `retake-room`. If a
/// message has a number as `request`, the server answers with a `result` that has the same number.
package enum RoomRequest: Hashable, Sendable {
  /// The WebSocket subprotocol that both sides name in the handshake.
  package static let subprotocol = "retake-room"

  /// The first message, answered by `joined` or a critical `error`.
  ///
  /// `resumes` names the session of a lost transport, which the server continues if it still
  /// exists.
  case join(RoomJoin, resumes: String?)
  /// An offer on the sending connection, with all local media; answered by `answer` and `result`.
  case offer(request: UInt32, sdp: String, media: [RoomLocalMedia])
  /// The answer to the server's offer on the receiving connection.
  case answer(sdp: String)
  /// A candidate; nil after the last one.
  case candidate(RoomConnection, CandidateInit?)
  /// Stop sending all media.
  case stop(request: UInt32)
  /// Local media changed its extra value or was switched on or off.
  case update(RoomMedia)
  case subscribe(request: UInt32, [UInt32])
  case unsubscribe(request: UInt32, [UInt32])
  case profile(request: UInt32, media: UInt32, VideoProfile)
  case pause(request: UInt32, media: UInt32, isPaused: Bool)
  /// A message to participants; to all if there are no targets.
  case message(request: UInt32, UserMessage)
  /// Request an offer with an ICE restart.
  case restart
  /// A new token, replacing the one used to join.
  case renew(token: String)
  case leave

  package var text: String { json.json }

  private var json: JSONValue {
    switch self {
    case .join(let join, let resumes):
      .members(
        ("type", "join"), ("room", .text(join.room)), ("role", .text(join.role.rawValue)),
        ("name", .text(join.displayName)), ("participant", join.participant.map { .text($0) }),
        ("token", join.token.map { .text($0) }), ("metadata", JSONValue(text: join.metadata)),
        ("resumes", resumes.map { .text($0) }),
        ("voices", join.voices.map { .integer(Int64($0)) }))
    case .offer(let request, let sdp, let media):
      .members(
        ("type", "offer"), ("request", .integer(Int64(request))), ("sdp", .text(sdp)),
        ("media", .list(media.map(\.json))))
    case .answer(let sdp): .members(("type", "answer"), ("sdp", .text(sdp)))
    case .candidate(let connection, let candidate):
      .members(
        ("type", "candidate"), ("connection", .text(connection.rawValue)),
        ("candidate", .candidate(candidate)))
    case .stop(let request): .request("stop", request)
    case .update(let media): .members(("type", "update"), ("media", media.json))
    case .subscribe(let request, let media): .request("subscribe", request, ("media", media.json))
    case .unsubscribe(let request, let media):
      .request("unsubscribe", request, ("media", media.json))
    case .profile(let request, let media, let profile):
      .request(
        "profile", request, ("media", .integer(Int64(media))), ("profile", .text(profile.rawValue)))
    case .pause(let request, let media, let isPaused):
      .request("pause", request, ("media", .integer(Int64(media))), ("paused", .flag(isPaused)))
    case .message(let request, let message):
      .request(
        "message", request, ("targets", .list(message.targets.map { .text($0) })),
        ("kind", .text(message.type)), ("text", .text(message.text)))
    case .restart: .members(("type", "restart"))
    case .renew(let token): .members(("type", "renew"), ("token", .text(token)))
    case .leave: .members(("type", "leave"))
    }
  }

  /// Parses a message.
  /// - Throws: `JSONError` if it is invalid or has an unknown type.
  package init(parsing text: String) throws(JSONError) {
    let fields = try RoomFields(try JSONValue(parsing: text))
    let type = try fields.text("type")
    if let request = try RoomRequest.session(type, fields) {
      self = request
    } else {
      self = try RoomRequest.media(type, fields)
    }
  }

  private static func session(_ type: String, _ fields: RoomFields) throws(JSONError)
    -> RoomRequest?
  {
    switch type {
    case "join":
      var join = RoomJoin(
        room: try fields.text("room"), role: try fields.value("role", ConnectionRole.self),
        displayName: try fields.optionalText("name") ?? "",
        participant: try fields.optionalText("participant"),
        token: try fields.optionalText("token", limit: 4096),
        metadata: try fields.json("metadata"))
      join.voices = try fields.optionalNumber("voices")
      return .join(join, resumes: try fields.optionalText("resumes"))
    case "offer":
      return .offer(
        request: try fields.number("request"),
        sdp: try fields.text("sdp", limit: RoomFields.descriptionBytes),
        media: try fields.objects("media") { (fields) throws(JSONError) in
          try RoomLocalMedia(fields)
        })
    case "answer":
      return .answer(sdp: try fields.text("sdp", limit: RoomFields.descriptionBytes))
    case "candidate":
      let fields = (
        try fields.value("connection", RoomConnection.self), try fields.optionalObject("candidate")
      )
      guard let candidate = fields.1 else { return .candidate(fields.0, nil) }
      return .candidate(fields.0, try CandidateInit(candidate))
    case "restart": return .restart
    case "renew": return .renew(token: try fields.text("token", limit: 4096))
    case "leave": return .leave
    default: return nil
    }
  }

  private static func media(_ type: String, _ fields: RoomFields) throws(JSONError) -> RoomRequest {
    switch type {
    case "stop": return .stop(request: try fields.number("request"))
    case "update": return .update(try RoomMedia(try fields.object("media")))
    case "subscribe":
      return .subscribe(request: try fields.number("request"), try fields.numbers("media"))
    case "unsubscribe":
      return .unsubscribe(request: try fields.number("request"), try fields.numbers("media"))
    case "profile":
      return .profile(
        request: try fields.number("request"), media: try fields.number("media"),
        try fields.value("profile", VideoProfile.self))
    case "pause":
      return .pause(
        request: try fields.number("request"), media: try fields.number("media"),
        isPaused: try fields.flag("paused"))
    case "message":
      return .message(
        request: try fields.number("request"),
        UserMessage(
          targets: try fields.texts("targets"),
          type: try fields.optionalText("kind") ?? "normal",
          text: try fields.text("text", limit: RoomFields.textBytes)))
    default: throw JSONError(reason: "the type \(type.prefix(40)) is unknown")
    }
  }
}

extension JSONValue {
  /// Creates a request; the answer will have the same number.
  static func request(_ type: String, _ request: UInt32, _ members: (String, JSONValue)...)
    -> JSONValue
  {
    .object(
      [Member("type", .text(type)), Member("request", .integer(Int64(request)))]
        + members.map { Member($0, $1) })
  }
}

extension [UInt32] {
  var json: JSONValue { .list(map { .integer(Int64($0)) }) }
}
