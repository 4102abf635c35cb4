/// A payload type and the codec it stands for: `111 opus/48000/2` (RFC 8866 section 6.6).
package struct RTPMap: AttributeValue {
  package static let attributeName = AttributeName.rtpMap
  package static let syntax = "PAYLOAD-TYPE NAME/CLOCK-RATE[/CHANNELS]"

  package var payloadType: UInt8
  /// The encoding name in the peer's spelling; compare without case.
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

/// The parameters of a format: `97 apt=96` (RFC 8866 section 6.15).
package struct FormatParameters: AttributeValue {
  package static let attributeName = AttributeName.formatParameters
  package static let syntax = "FORMAT PARAMETERS"

  /// A payload type, or the name of another format.
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

  /// The value of a `name=value` parameter; names are compared without case.
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
  /// The feedback with single spaces: `nack`, `nack pli`, `ccm fir`, `goog-remb`, `transport-cc`.
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

  /// 1 to 255, or 4096 to 4351 in offers that leave the choice open.
  package var id: UInt16
  /// The direction of the extension; nil means that of the section.
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
