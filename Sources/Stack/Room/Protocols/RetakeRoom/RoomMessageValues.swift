import Peer
import SDP
package import Wire

/// Identifies one of a participant's two connections.
package enum RoomConnection: String, Hashable, Sendable {
  /// The connection for the participant's own media; the participant makes offers.
  case up
  /// The connection for other participants' media; the server makes offers.
  case down
}

/// Media as described in messages, identified by the server's number.
package struct RoomMedia: Hashable, Sendable {
  package var number: UInt32
  package var kind: MediaKind
  package var isActive: Bool
  package var isAlwaysOn: Bool
  package var extraValue: String
  package var profiles: [VideoProfile]

  package init(
    number: UInt32, kind: MediaKind, isActive: Bool = true, isAlwaysOn: Bool = false,
    extraValue: String = "", profiles: [VideoProfile] = []
  ) {
    self.number = number
    self.kind = kind
    self.isActive = isActive
    self.isAlwaysOn = isAlwaysOn
    self.extraValue = extraValue
    self.profiles = profiles
  }

  init(_ fields: RoomFields) throws(JSONError) {
    number = try fields.number("id")
    kind = try fields.value("kind", MediaKind.self)
    isActive = try fields.flag("active", usual: true)
    isAlwaysOn = try fields.flag("alwaysOn", usual: false)
    extraValue = try fields.optionalText("value", limit: RoomFields.textBytes) ?? ""
    profiles = try fields.texts("profiles").compactMap(VideoProfile.init(rawValue:))
  }

  var json: JSONValue {
    .members(
      ("id", .integer(Int64(number))), ("kind", .text(kind.rawValue)), ("active", .flag(isActive)),
      ("alwaysOn", .flag(isAlwaysOn)), ("value", .text(extraValue)),
      ("profiles", .list(profiles.map { .text($0.rawValue) })))
  }
}

/// Local media in a section of an offer, identified by the participant's own number.
package struct RoomLocalMedia: Hashable, Sendable {
  package var mid: String
  package var local: UInt32
  package var kind: MediaKind
  package var isActive: Bool
  package var isAlwaysOn: Bool
  package var extraValue: String
  /// The rids of the layers, smallest layer first.
  package var layers: [String]

  package init(
    mid: String, local: UInt32, kind: MediaKind, isActive: Bool = true, isAlwaysOn: Bool = false,
    extraValue: String = "", layers: [String] = []
  ) {
    self.mid = mid
    self.local = local
    self.kind = kind
    self.isActive = isActive
    self.isAlwaysOn = isAlwaysOn
    self.extraValue = extraValue
    self.layers = layers
  }

  init(_ fields: RoomFields) throws(JSONError) {
    mid = try fields.text("mid")
    local = try fields.number("local")
    kind = try fields.value("kind", MediaKind.self)
    isActive = try fields.flag("active", usual: true)
    isAlwaysOn = try fields.flag("alwaysOn", usual: false)
    extraValue = try fields.optionalText("value", limit: RoomFields.textBytes) ?? ""
    layers = try fields.texts("layers")
  }

  var json: JSONValue {
    .members(
      ("mid", .text(mid)), ("local", .integer(Int64(local))), ("kind", .text(kind.rawValue)),
      ("active", .flag(isActive)), ("alwaysOn", .flag(isAlwaysOn)), ("value", .text(extraValue)),
      ("layers", .list(layers.map { .text($0) })))
  }
}

/// The server's number for local media, under which other participants see the media.
package struct RoomLocalNumber: Hashable, Sendable {
  package var local: UInt32
  package var number: UInt32

  package init(local: UInt32, number: UInt32) {
    self.local = local
    self.number = number
  }

  init(_ fields: RoomFields) throws(JSONError) {
    local = try fields.number("local")
    number = try fields.number("id")
  }

  var json: JSONValue {
    .members(("local", .integer(Int64(local))), ("id", .integer(Int64(number))))
  }
}

/// Media assigned to a section.
package struct RoomPlace: Hashable, Sendable {
  package var number: UInt32
  package var mid: String

  package init(number: UInt32, mid: String) {
    self.number = number
    self.mid = mid
  }

  init(_ fields: RoomFields) throws(JSONError) {
    number = try fields.number("id")
    mid = try fields.text("mid")
  }

  var json: JSONValue { .members(("id", .integer(Int64(number))), ("mid", .text(mid))) }
}

/// A participant with its published media.
package struct RoomMember: Hashable, Sendable {
  package var id: String
  package var displayName: String
  /// The participant's metadata as JSON, if any.
  package var metadata: String?
  package var media: [RoomMedia]

  package init(
    id: String, displayName: String = "", metadata: String? = nil, media: [RoomMedia] = []
  ) {
    self.id = id
    self.displayName = displayName
    self.metadata = metadata
    self.media = media
  }

  init(_ fields: RoomFields) throws(JSONError) {
    id = try fields.text("id")
    displayName = try fields.optionalText("name") ?? ""
    metadata = try fields.json("metadata")
    media = try fields.objects("media") { (fields) throws(JSONError) in try RoomMedia(fields) }
  }

  var json: JSONValue {
    .members(
      ("id", .text(id)), ("name", .text(displayName)), ("metadata", JSONValue(text: metadata)),
      ("media", .list(media.map(\.json))))
  }
}

/// An error as described in messages, with a room's error code.
package struct RoomFault: Hashable, Sendable {
  package var code: RoomErrorCode
  package var message: String

  package init(_ code: RoomErrorCode, _ message: String) {
    self.code = code
    self.message = message
  }

  init(_ fields: RoomFields) throws(JSONError) {
    code = RoomErrorCode(rawValue: fields.integer("code") ?? RoomErrorCode.serviceError.rawValue)
    message = try fields.optionalText("message", limit: RoomFields.textBytes) ?? ""
  }

  var json: JSONValue {
    .members(("code", .integer(Int64(code.rawValue))), ("message", .text(message)))
  }
}

extension JSONValue {
  /// Parses JSON; nil if there is no text or it is invalid.
  init?(text: String?) {
    guard let text, let value = try? JSONValue(parsing: text) else { return nil }
    self = value
  }

  static func candidate(_ candidate: CandidateInit?) -> JSONValue {
    guard let candidate else { return .null }
    return .members(
      ("candidate", .text(candidate.candidate)), ("sdpMid", candidate.sdpMid.map { .text($0) }),
      ("sdpMLineIndex", candidate.sdpMLineIndex.map { .integer(Int64($0)) }),
      ("usernameFragment", candidate.usernameFragment.map { .text($0) }))
  }
}

extension CandidateInit {
  init(_ fields: RoomFields) throws(JSONError) {
    self.init(
      candidate: try fields.text("candidate", limit: 4096),
      sdpMid: try fields.optionalText("sdpMid"), sdpMLineIndex: fields.integer("sdpMLineIndex"),
      usernameFragment: try fields.optionalText("usernameFragment"))
  }
}

extension ICEServerConfiguration {
  init(_ fields: RoomFields) throws(JSONError) {
    self.init(
      urls: try fields.texts("urls"), username: try fields.optionalText("username"),
      credential: try fields.optionalText("credential"))
  }

  var json: JSONValue {
    .members(
      ("urls", .list(urls.map { .text($0) })), ("username", username.map { .text($0) }),
      ("credential", credential.map { .text($0) }))
  }
}

extension SendLayer {
  init(_ fields: RoomFields) throws(JSONError) {
    self.init(
      rid: try fields.text("rid"), isActive: try fields.flag("active", usual: true),
      maximumBitrate: fields.integer("maxBitrate").flatMap { UInt64(exactly: $0) },
      maximumFrameRate: fields.double("maxFramerate"),
      scaleResolutionDownBy: fields.double("scaleResolutionDownBy"),
      scalabilityMode: try fields.optionalText("scalabilityMode"))
  }

  /// The layer in the form of W3C RTCRtpEncodingParameters.
  var json: JSONValue {
    .members(
      ("rid", .text(rid)), ("active", .flag(isActive)),
      ("maxBitrate", maximumBitrate.map { .integer(Int64(clamping: $0)) }),
      ("maxFramerate", maximumFrameRate.map { .number($0) }),
      ("scaleResolutionDownBy", scaleResolutionDownBy.map { .number($0) }),
      ("scalabilityMode", scalabilityMode.map { .text($0) }))
  }
}

// MARK: - RoomFields

/// Reads a message's members, each within its limits.
struct RoomFields {
  static let nameBytes = 256
  static let textBytes = 64 << 10
  static let descriptionBytes = 256 << 10
  static let listCount = 256

  private let value: JSONValue

  init(_ value: JSONValue) throws(JSONError) {
    guard case .object = value else { throw JSONError(reason: "an object is expected") }
    self.value = value
  }

  private func missing(_ name: String) -> JSONError {
    JSONError(reason: "\(name) is missing or of another kind")
  }

  func text(_ name: String, limit: Int = nameBytes) throws(JSONError) -> String {
    guard let text = value[name]?.text else { throw missing(name) }
    guard text.utf8.count <= limit else {
      throw JSONError(reason: "\(name) is longer than \(limit) bytes")
    }
    return text
  }

  func optionalText(_ name: String, limit: Int = nameBytes) throws(JSONError) -> String? {
    switch value[name] {
    case nil, .null?: return nil
    default: return try text(name, limit: limit)
    }
  }

  func number(_ name: String) throws(JSONError) -> UInt32 {
    guard let number = value[name]?.integer.flatMap({ UInt32(exactly: $0) }) else {
      throw missing(name)
    }
    return number
  }

  func optionalNumber(_ name: String) throws(JSONError) -> UInt32? {
    switch value[name] {
    case nil, .null?: return nil
    default: return try number(name)
    }
  }

  func integer(_ name: String) -> Int? { value[name]?.integer.map { Int(clamping: $0) } }
  func double(_ name: String) -> Double? { value[name]?.number }

  /// Reads a Boolean member; a missing member has the value `usual`, or is an error if that is nil.
  func flag(_ name: String, usual: Bool? = nil) throws(JSONError) -> Bool {
    if let flag = value[name]?.flag { return flag }
    guard value[name] == nil, let usual else { throw missing(name) }
    return usual
  }

  func value<Value: RawRepresentable<String>>(_ name: String, _ type: Value.Type)
    throws(JSONError) -> Value
  {
    guard let value = Value(rawValue: try text(name)) else {
      throw JSONError(reason: "\(name) has an unknown value")
    }
    return value
  }

  func json(_ name: String, limit: Int = textBytes) throws(JSONError) -> String? {
    guard let value = value[name], value != .null else { return nil }
    let text = value.json
    guard text.utf8.count <= limit else {
      throw JSONError(reason: "\(name) is longer than \(limit) bytes")
    }
    return text
  }

  func object(_ name: String) throws(JSONError) -> RoomFields {
    guard let value = value[name] else { throw missing(name) }
    return try RoomFields(value)
  }

  func optionalObject(_ name: String) throws(JSONError) -> RoomFields? {
    switch value[name] {
    case nil, .null?: return nil
    default: return try object(name)
    }
  }

  /// Reads a list member; a missing list is empty.
  func list<Element>(
    _ name: String, _ read: (JSONValue) throws(JSONError) -> Element
  ) throws(JSONError) -> [Element] {
    let values: [JSONValue]
    switch value[name] {
    case nil: return []
    case .list(let list)?: values = list
    default: throw missing(name)
    }
    guard values.count <= RoomFields.listCount else {
      throw JSONError(reason: "\(name) has more than \(RoomFields.listCount) elements")
    }
    var elements: [Element] = []
    for value in values { elements.append(try read(value)) }
    return elements
  }

  func objects<Element>(
    _ name: String, _ read: (RoomFields) throws(JSONError) -> Element
  ) throws(JSONError) -> [Element] {
    try list(name) { (value) throws(JSONError) in try read(try RoomFields(value)) }
  }

  func texts(_ name: String) throws(JSONError) -> [String] {
    try list(name) { (value) throws(JSONError) in
      guard let text = value.text, text.utf8.count <= RoomFields.nameBytes else {
        throw JSONError(reason: "\(name) has an element that is no name")
      }
      return text
    }
  }

  func numbers(_ name: String) throws(JSONError) -> [UInt32] {
    try list(name) { (value) throws(JSONError) in
      guard let number = value.integer.flatMap({ UInt32(exactly: $0) }) else {
        throw JSONError(reason: "\(name) has an element that is no number")
      }
      return number
    }
  }
}
