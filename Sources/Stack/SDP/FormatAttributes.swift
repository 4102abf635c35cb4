/// A payload type and the codec it stands for: `111 opus/48000/2` (RFC 8866 section 6.6).
package struct RTPMap: AttributeValue {
  package static let attributeName = AttributeName.rtpMap
  package static let syntax = "PAYLOAD-TYPE NAME/CLOCK-RATE[/CHANNELS]"

  package var payloadType: UInt8
  /// The encoding name as the peer spells it; compare it case-insensitively.
  package var name: String
  package var clockRate: UInt32
  /// The number of audio channels, if present.
  package var channels: UInt8?

  package init(payloadType: UInt8, name: String, clockRate: UInt32, channels: UInt8? = nil) {
    self.payloadType = payloadType
    self.name = name
    self.clockRate = clockRate
    self.channels = channels
  }

  package init?(_ text: String) {
    let fields = text.fields
    guard fields.count == 2, let payloadType = UInt8(decimal: fields[0]), payloadType < 128 else {
      return nil
    }
    let parts = fields[1].split(on: UInt8(ascii: "/"))
    guard (2...3).contains(parts.count), let clockRate = UInt32(decimal: parts[1]), clockRate > 0
    else { return nil }
    if parts.count == 3 {
      guard let channels = UInt8(decimal: parts[2]) else { return nil }
      self.channels = channels
    }
    self.payloadType = payloadType
    name = String(parts[0])
    self.clockRate = clockRate
  }

  package var text: String {
    "\(payloadType) \(name)/\(clockRate)" + (channels.map { "/\($0)" } ?? "")
  }
}

/// A format's parameters: `97 apt=96` (RFC 8866 section 6.15).
package struct FormatParameters: AttributeValue {
  package static let attributeName = AttributeName.formatParameters
  package static let syntax = "FORMAT PARAMETERS"

  /// A payload type, or the name of a format that has none.
  package var format: String
  /// Everything after the format, unparsed.
  package var parameters: String

  package init(format: String, parameters: String) {
    self.format = format
    self.parameters = parameters
  }

  package init?(_ text: String) {
    guard let (format, parameters) = text.cut(at: UInt8(ascii: " ")) else {
      guard text.isVisible else { return nil }
      self.init(format: text, parameters: "")
      return
    }
    guard format.isVisible else { return nil }
    self.init(format: String(format), parameters: String(parameters))
  }

  package var text: String { parameters.isEmpty ? format : format + " " + parameters }

  /// Returns the value of a `name=value` parameter, whatever the case of its name in the text;
  /// `name` must be in lower case.
  package subscript(name name: String) -> String? {
    for part in parameters.split(on: UInt8(ascii: ";")) {
      guard let (key, value) = part.cut(at: UInt8(ascii: "=")) else { continue }
      if key.fields.first?.lowercased() == name { return value.fields.first.map { String($0) } }
    }
    return nil
  }
}

/// A feedback message that a format may use: `96 nack pli`, or `* transport-cc` (RFC 4585).
package struct RTCPFeedback: AttributeValue {
  package static let attributeName = AttributeName.rtcpFeedback
  package static let syntax = "PAYLOAD-TYPE|* FEEDBACK"

  /// The payload type; nil means all.
  package var payloadType: UInt8?
  /// The feedback type with single spaces: `nack`, `nack pli`, `ccm fir`, `goog-remb`,
  /// `transport-cc`.
  package var feedback: String

  package init(payloadType: UInt8?, feedback: String) {
    self.payloadType = payloadType
    self.feedback = feedback
  }

  package init?(_ text: String) {
    let fields = text.fields
    guard fields.count >= 2 else { return nil }
    if fields[0] != "*" {
      guard let payloadType = UInt8(decimal: fields[0]), payloadType < 128 else { return nil }
      self.payloadType = payloadType
    }
    feedback = fields[1...].joined(separator: " ")
  }

  package var text: String { (payloadType.map { "\($0)" } ?? "*") + " " + feedback }
}

/// A header extension and its identifier: `4 urn:ietf:params:rtp-hdrext:sdes:mid` (RFC 8285).
package struct ExtensionMap: AttributeValue {
  package static let attributeName = AttributeName.extensionMap
  package static let syntax = "ID[/DIRECTION] URI [ATTRIBUTES]"

  /// The identifier: 1 to 255, or 4096 to 4351 in an offer that leaves the choice to the answerer.
  package var id: UInt16
  /// The extension's direction; nil for the section's.
  package var direction: MediaDirection?
  package var uri: String
  /// Everything after the URI.
  package var attributes: String?

  package init(
    id: UInt16, direction: MediaDirection? = nil, uri: String, attributes: String? = nil
  ) {
    self.id = id
    self.direction = direction
    self.uri = uri
    self.attributes = attributes
  }

  package init?(_ text: String) {
    let fields = text.fields
    guard fields.count >= 2 else { return nil }
    let parts = fields[0].split(on: UInt8(ascii: "/"))
    guard (1...2).contains(parts.count), let id = UInt16(decimal: parts[0]), id > 0 else {
      return nil
    }
    if parts.count == 2 {
      guard let direction = MediaDirection(rawValue: String(parts[1])) else { return nil }
      self.direction = direction
    }
    self.id = id
    uri = String(fields[1])
    attributes = fields.count > 2 ? fields[2...].joined(separator: " ") : nil
  }

  package var text: String {
    "\(id)" + (direction.map { "/" + $0.rawValue } ?? "") + " " + uri
      + (attributes.map { " " + $0 } ?? "")
  }
}

// MARK: - SourceAttributes

/// A source's attribute: `3828838000 cname:i5HLNyB7f888oi56` (RFC 5576 section 4.1).
package struct SSRCAttribute: AttributeValue {
  package static let attributeName = AttributeName.ssrc
  package static let syntax = "SSRC NAME[:VALUE]"

  package var ssrc: UInt32
  /// The attribute's name, such as `cname` or `msid`; empty if the line only states the SSRC.
  package var name: String
  package var value: String?

  package init(ssrc: UInt32, name: String, value: String? = nil) {
    self.ssrc = ssrc
    self.name = name
    self.value = value
  }

  package init?(_ text: String) {
    let (number, rest) = text.cut(at: UInt8(ascii: " ")) ?? (text[...], "")
    guard let ssrc = UInt32(decimal: number) else { return nil }
    self.ssrc = ssrc
    if let (name, value) = rest.cut(at: UInt8(ascii: ":")) {
      self.name = String(name)
      self.value = String(value)
    } else {
      name = String(rest)
    }
  }

  package var text: String {
    "\(ssrc)" + (name.isEmpty ? "" : " " + name) + (value.map { ":" + $0 } ?? "")
  }
}

/// Related sources: `FID 1115615813 3025644267` (RFC 5576 section 4.2).
package struct SSRCGroup: AttributeValue {
  package static let attributeName = AttributeName.ssrcGroup
  package static let syntax = "SEMANTICS SSRC ..., at most \(limit) of them"

  /// The maximum number of SSRCs in a group.
  static let limit = 64

  /// The relation of the sources, such as `FID` for an SSRC and its RTX, `SIM` or `FEC-FR`.
  package var semantics: String
  package var ssrcs: [UInt32]

  package init(semantics: String, ssrcs: [UInt32]) {
    self.semantics = semantics
    self.ssrcs = ssrcs
  }

  package init?(_ text: String) {
    let fields = text.fields
    guard let semantics = fields.first, fields.count <= SSRCGroup.limit + 1 else { return nil }
    self.semantics = String(semantics)
    ssrcs = []
    for field in fields.dropFirst() {
      guard let ssrc = UInt32(decimal: field) else { return nil }
      ssrcs.append(ssrc)
    }
  }

  package var text: String {
    ([semantics] + ssrcs.map { String($0) }).joined(separator: " ")
  }
}

/// A stream and the track in it: `STREAM TRACK` (RFC 8830 section 2).
package struct MSID: AttributeValue {
  package static let attributeName = AttributeName.msid
  package static let syntax = "STREAM [TRACK]"

  /// The media stream; `-` if the track belongs to no stream.
  package var streamID: String
  package var trackID: String?

  package init(streamID: String, trackID: String?) {
    self.streamID = streamID
    self.trackID = trackID
  }

  package init?(_ text: String) {
    let fields = text.fields
    guard (1...2).contains(fields.count) else { return nil }
    streamID = String(fields[0])
    trackID = fields.count == 2 ? String(fields[1]) : nil
  }

  package var text: String { streamID + (trackID.map { " " + $0 } ?? "") }
}

/// A simulcast stream identified by name: `h send max-width=640` (RFC 8851 section 4).
package struct RestrictionID: AttributeValue {
  package static let attributeName = AttributeName.rid
  package static let syntax = "ID send|recv [RESTRICTIONS]"

  package var id: String
  /// Whether the description's author sends the stream rather than receives it.
  package var isSent: Bool
  /// Everything after the direction.
  package var restrictions: String?

  package init(id: String, isSent: Bool, restrictions: String? = nil) {
    self.id = id
    self.isSent = isSent
    self.restrictions = restrictions
  }

  package init?(_ text: String) {
    let fields = text.fields
    guard fields.count >= 2, fields[1] == "send" || fields[1] == "recv" else { return nil }
    id = String(fields[0])
    isSent = fields[1] == "send"
    restrictions = fields.count > 2 ? fields[2...].joined(separator: " ") : nil
  }

  package var text: String {
    id + (isSent ? " send" : " recv") + (restrictions.map { " " + $0 } ?? "")
  }
}

/// The simulcast streams in each direction: `send q;h;f` (RFC 8853 section 5.1).
///
/// Early drafts wrote ` send rid=q;h;f` with a leading space; their form with payload types (` send
/// pt=97;98`) names no streams and is parsed as empty.
package struct Simulcast: AttributeValue {
  package static let attributeName = AttributeName.simulcast
  package static let syntax = "send|recv STREAMS [recv|send STREAMS]"

  /// The streams that the writer sends, unparsed.
  package var sent: String?
  /// The streams that the writer receives, unparsed.
  package var received: String?

  package init(sent: String? = nil, received: String? = nil) {
    self.sent = sent
    self.received = received
  }

  package init?(_ text: String) {
    let fields = text.fields
    guard fields.count == 2 || fields.count == 4 else { return nil }
    for index in stride(from: 0, to: fields.count, by: 2) {
      switch fields[index] {
      case "send" where sent == nil: sent = Simulcast.streams(fields[index + 1])
      case "recv" where received == nil: received = Simulcast.streams(fields[index + 1])
      default: return nil
      }
    }
  }

  /// Returns the streams in a list; empty for payload types.
  private static func streams(_ list: Substring) -> String {
    guard let (kind, streams) = list.cut(at: UInt8(ascii: "=")) else { return String(list) }
    return kind == "rid" ? String(streams) : ""
  }

  package var text: String {
    let parts = [("send ", sent), ("recv ", received)].compactMap { word, streams in
      streams.flatMap { $0.isEmpty ? nil : word + $0 }
    }
    return parts.joined(separator: " ")
  }
}
