import Peer
import SDP
package import Wire

extension RoomNotice {
  /// Parses a message.
  /// - Throws: `JSONError` if it is invalid or of an unknown type.
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
