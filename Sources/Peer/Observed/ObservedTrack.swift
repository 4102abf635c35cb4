package import Flow
package import RTP
package import Wire

/// An RTP stream of somebody else's call, and what is known of what it carries.
package struct ObservedTrack: Sendable {
  /// Its number over all calls, which stands for it in all rows.
  package var number: UInt32
  package var ssrc: UInt32
  /// Whether the observed peer receives it; else it sends it.
  package var isInbound: Bool
  /// Nil as long as nothing tells.
  package var kind: MediaKind?
  package var mid: String
  /// What its payload types stand for.
  package var codecs: [FlowSection.Codec] = []
  /// The source whose packets it sends again (RFC 4588).
  package var repairs: UInt32?
  /// The name that the streams of one end share (CNAME, RFC 3550 section 6.5.1).
  package var canonicalName: String?

  package init(
    number: UInt32, ssrc: UInt32, isInbound: Bool, kind: MediaKind?, mid: String
  ) {
    self.number = number
    self.ssrc = ssrc
    self.isInbound = isInbound
    self.kind = kind
    self.mid = mid
  }

  /// What a payload type stands for, when it can be received.
  func codec(of payloadType: UInt8) -> FlowSection.Codec? {
    codecs.first { $0.payloadType == payloadType }
  }

  /// What the layers below know the stream by: sections need not be known.
  var key: String { String(number) }
}

/// An RTP packet of a call, in the clear or not.
package struct SeenPacket: Sendable {
  package var header: RTPHeader
  /// Empty where it could not be opened.
  package var bytes: [UInt8]
  package var isClear: Bool

  package init(header: RTPHeader, bytes: [UInt8], isClear: Bool) {
    self.header = header
    self.bytes = bytes
    self.isClear = isClear
  }
}
