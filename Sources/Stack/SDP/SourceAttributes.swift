/// An attribute of a source: `3828838000 cname:i5HLNyB7f888oi56` (RFC 5576 section 4.1).
package struct SSRCAttribute: AttributeValue {
  package static let attributeName = AttributeName.ssrc
  package static let syntax = "SSRC NAME[:VALUE]"

  package var ssrc: UInt32
  /// `cname`, `msid`, ...; empty if the line only states the SSRC.
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

/// Sources that belong together: `FID 1115615813 3025644267` (RFC 5576 section 4.2).
package struct SSRCGroup: AttributeValue {
  package static let attributeName = AttributeName.ssrcGroup
  package static let syntax = "SEMANTICS SSRC ..., at most \(limit) of them"

  /// The most SSRCs in a group.
  static let limit = 64

  /// `FID` for an SSRC and its RTX, `SIM`, `FEC-FR`, ...
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

  /// The stream; `-` if the track belongs to none.
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

/// A stream of a simulcast by name: `h send max-width=640` (RFC 8851 section 4).
package struct RestrictionID: AttributeValue {
  package static let attributeName = AttributeName.rid
  package static let syntax = "ID send|recv [RESTRICTIONS]"

  package var id: String
  /// Whether the writer sends the stream rather than receives it.
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

/// The streams of a simulcast in each direction: `send q;h;f` (RFC 8853 section 5.1).
///
/// Early drafts wrote ` send rid=q;h;f` with a leading space; their form with payload types (` send
/// pt=97;98`) names no streams and is parsed as empty.
package struct Simulcast: AttributeValue {
  package static let attributeName = AttributeName.simulcast
  package static let syntax = "send|recv STREAMS [recv|send STREAMS]"

  /// The list of streams that the writer sends, unparsed.
  package var sent: String?
  /// The list of streams that the writer receives, unparsed.
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

  /// The streams of a list; empty for payload types.
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
