import Peer
package import SDP
package import Wire

/// A message from the server of Retake's own room protocol to a participant.
package enum RoomNotice: Hashable, Sendable {
  /// The room was joined.
  ///
  /// With `isResumed`, an earlier session continues, including its connections.
  case joined(
    participant: String, session: String, isResumed: Bool, members: [RoomMember], ICEServers)
  /// The answer to the participant's offer on the sending connection.
  case answer(sdp: String)
  /// An offer on the receiving connection, with all media that the server sends there.
  case offer(sdp: String, media: [RoomPlace])
  case candidate(RoomConnection, CandidateInit?)
  case result(request: UInt32, RoomFault?)
  /// Pairs of the participant's and the server's numbers for local media.
  case local([RoomLocalNumber])
  case entered(RoomMember)
  case left(participant: String, LeaveCause)
  case published(participant: String, [RoomMedia])
  case unpublished(participant: String, [UInt32])
  case changed(participant: String, RoomMedia)
  case talking(participant: String, Bool, level: Int?)
  /// All voices that the server currently sends; this message is used only if their number is
  /// limited.
  case voices([UInt32])
  /// A moderator switched local media off or on.
  case muted(local: UInt32, Bool)
  /// The layers wanted in a sent section.
  case layers(mid: String, [SendLayer])
  case message(UserMessage)
  /// An error; a critical one ends the room.
  case error(RoomFault, isCritical: Bool)
  /// The room has ended for this participant.
  case ended(RoomEnding)
  /// The participant should connect to another address.
  case moved(url: String)

  package var text: String { json.json }

  private var json: JSONValue {
    switch self {
    case .joined, .answer, .offer, .candidate, .result, .local, .layers: negotiation
    default: presence
    }
  }

  private var negotiation: JSONValue {
    switch self {
    case .joined(let participant, let session, let isResumed, let members, let servers):
      .members(
        ("type", "joined"), ("participant", .text(participant)), ("session", .text(session)),
        ("resumed", .flag(isResumed)), ("participants", .list(members.map(\.json))),
        ("iceServers", .list(servers.servers.map(\.json))),
        ("iceTransportPolicy", .text(servers.policy.rawValue)))
    case .answer(let sdp): .members(("type", "answer"), ("sdp", .text(sdp)))
    case .offer(let sdp, let media):
      .members(("type", "offer"), ("sdp", .text(sdp)), ("media", .list(media.map(\.json))))
    case .candidate(let connection, let candidate):
      .members(
        ("type", "candidate"), ("connection", .text(connection.rawValue)),
        ("candidate", .candidate(candidate)))
    case .result(let request, let fault):
      .members(
        ("type", "result"), ("request", .integer(Int64(request))), ("error", fault?.json))
    case .local(let pairs):
      .members(
        ("type", "local"),
        ("media", .list(pairs.map(\.json))))
    case .layers(let mid, let layers):
      .members(("type", "layers"), ("mid", .text(mid)), ("layers", .list(layers.map(\.json))))
    default: .null
    }
  }

  private var presence: JSONValue {
    switch self {
    case .entered(let member): .members(("type", "entered"), ("participant", member.json))
    case .left(let participant, let cause):
      .about("left", participant, ("cause", .text(cause.rawValue)))
    case .published(let participant, let media):
      .about("published", participant, ("media", .list(media.map(\.json))))
    case .unpublished(let participant, let media):
      .about("unpublished", participant, ("media", media.json))
    case .changed(let participant, let media):
      .about("changed", participant, ("media", media.json))
    case .talking(let participant, let isTalking, let level):
      .about(
        "talking", participant, ("talking", .flag(isTalking)),
        ("level", level.map { .integer(Int64($0)) } ?? .null))
    case .voices(let numbers): .members(("type", "voices"), ("media", numbers.json))
    case .muted(let local, let isMuted):
      .members(("type", "muted"), ("local", .integer(Int64(local))), ("muted", .flag(isMuted)))
    case .message(let message):
      .members(
        ("type", "message"), ("sender", .text(message.sender)),
        ("targets", .list(message.targets.map { .text($0) })), ("kind", .text(message.type)),
        ("text", .text(message.text)))
    case .error(let fault, let isCritical):
      .members(("type", "error"), ("error", fault.json), ("critical", .flag(isCritical)))
    case .ended(let ending):
      .members(
        ("type", "ended"), ("reason", .text(ending.reason.rawValue)),
        ("code", ending.code.map { .integer(Int64($0)) }), ("message", .text(ending.message)))
    case .moved(let url): .members(("type", "moved"), ("url", .text(url)))
    default: .null
    }
  }
}

extension JSONValue {
  static func about(_ type: String, _ participant: String, _ members: (String, JSONValue)...)
    -> JSONValue
  {
    .object(
      [Member("type", .text(type)), Member("participant", .text(participant))]
        + members.map { Member($0, $1) })
  }
}

// MARK: - Reading

extension RoomNotice {
  /// Parses a message.
  /// - Throws: `JSONError` if it is invalid or has an unknown type.
  package init(parsing text: String) throws(JSONError) {
    let fields = try RoomFields(try JSONValue(parsing: text))
    let type = try fields.text("type")
    if let notice = try RoomNotice.negotiation(type, fields) {
      self = notice
    } else if let notice = try RoomNotice.presence(type, fields) {
      self = notice
    } else {
      self = try RoomNotice.other(type, fields)
    }
  }

  private static func negotiation(_ type: String, _ fields: RoomFields) throws(JSONError)
    -> RoomNotice?
  {
    switch type {
    case "joined": return try joined(fields)
    case "answer":
      return .answer(sdp: try fields.text("sdp", limit: RoomFields.descriptionBytes))
    case "offer":
      return .offer(
        sdp: try fields.text("sdp", limit: RoomFields.descriptionBytes),
        media: try fields.objects("media") { (fields) throws(JSONError) in try RoomPlace(fields) })
    case "candidate":
      let connection = try fields.value("connection", RoomConnection.self)
      guard let candidate = try fields.optionalObject("candidate") else {
        return .candidate(connection, nil)
      }
      return .candidate(connection, try CandidateInit(candidate))
    case "result":
      let fault = try fields.optionalObject("error")
      guard let fault else { return .result(request: try fields.number("request"), nil) }
      return .result(request: try fields.number("request"), try RoomFault(fault))
    case "local":
      return .local(
        try fields.objects("media") { (fields) throws(JSONError) in try RoomLocalNumber(fields) })
    case "layers":
      return .layers(
        mid: try fields.text("mid"),
        try fields.objects("layers") { (fields) throws(JSONError) in try SendLayer(fields) })
    default: return nil
    }
  }

  private static func joined(_ fields: RoomFields) throws(JSONError) -> RoomNotice {
    let servers = try fields.objects("iceServers") { (fields) throws(JSONError) in
      try ICEServerConfiguration(fields)
    }
    let policy = try fields.optionalText("iceTransportPolicy")
    return .joined(
      participant: try fields.text("participant"), session: try fields.text("session"),
      isResumed: try fields.flag("resumed", usual: false),
      members: try fields.objects("participants") { (fields) throws(JSONError) in
        try RoomMember(fields)
      },
      ICEServers(servers, policy: policy.flatMap(ICETransportPolicy.init(rawValue:)) ?? .all))
  }

  private static func presence(_ type: String, _ fields: RoomFields) throws(JSONError)
    -> RoomNotice?
  {
    switch type {
    case "entered": return .entered(try RoomMember(try fields.object("participant")))
    case "left":
      return .left(
        participant: try fields.text("participant"), try fields.value("cause", LeaveCause.self))
    case "published":
      return .published(
        participant: try fields.text("participant"),
        try fields.objects("media") { (fields) throws(JSONError) in try RoomMedia(fields) })
    case "unpublished":
      return .unpublished(
        participant: try fields.text("participant"), try fields.numbers("media"))
    case "changed":
      return .changed(
        participant: try fields.text("participant"), try RoomMedia(try fields.object("media")))
    case "talking":
      return .talking(
        participant: try fields.text("participant"), try fields.flag("talking"),
        level: fields.integer("level").map { min(max($0, -127), 0) })
    default: return nil
    }
  }

  private static func other(_ type: String, _ fields: RoomFields) throws(JSONError) -> RoomNotice {
    switch type {
    case "voices": return .voices(try fields.numbers("media"))
    case "muted":
      return .muted(local: try fields.number("local"), try fields.flag("muted"))
    case "message":
      return .message(
        UserMessage(
          sender: try fields.text("sender"), targets: try fields.texts("targets"),
          type: try fields.optionalText("kind") ?? "normal",
          text: try fields.text("text", limit: RoomFields.textBytes)))
    case "error":
      return .error(
        try RoomFault(try fields.object("error")),
        isCritical: try fields.flag("critical", usual: false))
    case "ended":
      return .ended(
        RoomEnding(
          try fields.value("reason", RoomEnding.Reason.self), code: fields.integer("code"),
          message: try fields.optionalText("message", limit: RoomFields.textBytes) ?? ""))
    case "moved": return .moved(url: try fields.text("url", limit: 4096))
    default: throw JSONError(reason: "the type \(type.prefix(40)) is unknown")
    }
  }
}
