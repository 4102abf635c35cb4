import SDP
import Wire

/// The role of a handle in a Janus session.
enum JanusRole: String, Hashable, Sendable {
  /// The local participant, and what is sent.
  case main
  /// Media received from others.
  case subscriber
  /// Messages over a data channel.
  case text
}

/// The request in a message to a plugin, for handling its answer.
enum JanusAsk: Hashable, Sendable {
  case join
  /// A local offer.
  case publish
  case unpublish
  case configure(ActionID?, JanusSetting)
  /// A change of subscriptions.
  case subscription
  /// The local answer to a subscriber's offer.
  case start
  case setUp
  case acknowledge
}

/// What a request changes, for the error code.
enum JanusSetting: Hashable, Sendable {
  case localMedia, profile, pause, restart
}

/// The purpose of a session's request.
enum JanusPurpose: Hashable, Sendable {
  case create, claim, keepalive, destroy, trickle, detach
  case attach(JanusRole)
  case message(JanusRole, JanusAsk)
}

/// The answer to a message to a plugin.
enum JanusReply: Hashable, Sendable {
  /// The plugin's data and description.
  case data(JSONValue, SessionDescription?)
  case failed(code: Int?, reason: String)
}

/// An unsolicited message of the server.
enum JanusEvent: Hashable, Sendable {
  case data(JSONValue, SessionDescription?)
  /// nil means there are no more.
  case candidate(CandidateInit?)
  /// The media path is gone; the handle stays.
  case hangup(String)
  case detached
  /// Any other event about a handle: its name and the whole message.
  case note(String, JSONValue)
}

/// A message of a Janus server, as far as it is common to all plugins.
struct JanusMessage {
  var type: String
  var session: Int64?
  var transaction: String?
  var sender: Int64?
  /// `data.id` of a response.
  var id: Int64?
  /// `plugindata.data`.
  var data: JSONValue?
  var description: SessionDescription?
  var error: (code: Int?, reason: String)?
  var whole: JSONValue

  /// Parses a message; nil if it is not one of Janus.
  init?(_ value: JSONValue) {
    guard let type = value["janus"]?.text else { return nil }
    self.type = type
    whole = value
    session = value["session_id"]?.integer
    transaction = value["transaction"]?.text
    sender = value["sender"]?.integer
    id = value["data"]?["id"]?.integer
    data = value["plugindata"]?["data"]
    if let jsep = value["jsep"], let sdp = jsep["sdp"]?.text,
      let type = jsep["type"]?.text.flatMap(SDPType.init(rawValue:))
    {
      description = SessionDescription(type: type, sdp: sdp)
    }
    if let error = value["error"] {
      self.error = (error["code"]?.integer.map { Int(clamping: $0) }, error["reason"]?.text ?? "")
    } else if let data, let code = data["error_code"]?.integer {
      // Plugins put their errors into the data of an event.
      error = (Int(clamping: code), data["error"]?.text ?? "")
    }
  }

  /// The candidate of a `trickle` message (W3C RTCIceCandidateInit), or the end of candidates.
  static func candidate(_ value: JSONValue) -> CandidateInit?? {
    if value["completed"]?.flag == true { return .some(nil) }
    guard let candidate = value["candidate"]?.text else { return nil }
    return CandidateInit(
      candidate: candidate, sdpMid: value["sdpMid"]?.text,
      sdpMLineIndex: value["sdpMLineIndex"]?.integer.map { Int(clamping: $0) })
  }
}

extension JSONValue {
  /// Converts a description to a `jsep` object.
  static func jsep(_ description: SessionDescription) -> JSONValue {
    .members(("type", .text(description.type.rawValue)), ("sdp", .text(description.sdp)))
  }

  /// The name of a room or participant: a number, unless the server is configured for strings.
  static func identifier(_ text: String) -> JSONValue {
    if let number = Int64(text), number >= 0, String(number) == text { return .integer(number) }
    return .text(text)
  }
}

/// The description of a stream in a videoroom: the extra value, and a word if the stream is
/// inactive.
///
/// Other participants learn nothing else of it.
struct JanusDescription: Hashable, Sendable {
  private static let mark = "(off)"

  var extraValue: String
  var isActive: Bool

  init(extraValue: String, isActive: Bool) {
    self.extraValue = extraValue
    self.isActive = isActive
  }

  init(_ text: String) {
    isActive = !text.hasSuffix(JanusDescription.mark)
    let value = isActive ? text[...] : text.dropLast(JanusDescription.mark.count)
    extraValue = String(!isActive && value.hasSuffix(" ") ? value.dropLast() : value)
  }

  var text: String {
    isActive
      ? extraValue
      : extraValue.isEmpty ? JanusDescription.mark : extraValue + " " + JanusDescription.mark
  }
}
