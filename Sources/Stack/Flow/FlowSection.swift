package import RTP
package import Wire

/// What one m-section agreed on, as far as packets are concerned.
package struct FlowSection: Hashable, Sendable {
  /// A payload type and what it means.
  package struct Codec: Hashable, Sendable {
    package var payloadType: UInt8
    package var name: CodecName
    package var clockRate: UInt32
    /// The payload type of the retransmission stream (RFC 4588), when agreed.
    package var rtxPayloadType: UInt8?
    /// The rtcp-fb values that both sides agreed on: `nack`, `nack pli`, `ccm fir`, `goog-remb`,
    /// `transport-cc`.
    package var feedback: [String]
    /// Whether the peer takes units of H.264 in parts (packetization mode 1).
    package var fragments: Bool

    package init(
      payloadType: UInt8, name: CodecName, clockRate: UInt32, rtxPayloadType: UInt8?,
      feedback: [String], fragments: Bool = true
    ) {
      self.fragments = fragments
      self.payloadType = payloadType
      self.name = name
      self.clockRate = clockRate
      self.rtxPayloadType = rtxPayloadType
      self.feedback = feedback
    }
  }

  /// What this side sends in the section.
  package struct Sending: Hashable, Sendable {
    /// A stream that is sent: the only one, or a layer of a simulcast.
    package struct Source: Hashable, Sendable {
      /// The name of the layer (RFC 8851); nil for the only stream.
      package var rid: String?
      package var ssrc: UInt32
      package var rtxSSRC: UInt32?

      package init(rid: String? = nil, ssrc: UInt32, rtxSSRC: UInt32?) {
        self.rid = rid
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
      }
    }

    /// The only stream, or the layers of a simulcast in the order in which they were offered.
    package var sources: [Source]
    package var codec: Codec
    /// Events beside audio of that codec, with its clock (RFC 4733); nil if none are agreed on.
    package var events: Codec?

    package init(_ sources: [Source], codec: Codec, events: Codec? = nil) {
      self.sources = sources
      self.codec = codec
      self.events = events
    }

    package init(ssrc: UInt32, rtxSSRC: UInt32?, codec: Codec) {
      self.init([Source(ssrc: ssrc, rtxSSRC: rtxSSRC)], codec: codec)
    }
  }

  /// What this side accepts in the section.
  package struct Receiving: Hashable, Sendable {
    package var codecs: [Codec]
    /// The media SSRCs that the peer announced, and for each its retransmission SSRC if announced.
    package var ssrcs: [UInt32]
    package var rtxSSRCs: [UInt32?]

    package init(codecs: [Codec], ssrcs: [UInt32], rtxSSRCs: [UInt32?]) {
      self.codecs = codecs
      self.ssrcs = ssrcs
      self.rtxSSRCs = rtxSSRCs
    }
  }

  package var mid: String
  package var kind: MediaKind
  package var sending: Sending?
  package var receiving: Receiving?
  /// The agreed header extensions: URI and identifier.
  package var extensions: [HeaderExtensionID]
  /// Whether reduced-size RTCP (RFC 5506) was agreed.
  package var reducedSizeRTCP: Bool

  /// A header extension's URI and its identifier on this transport (RFC 8285).
  package struct HeaderExtensionID: Hashable, Sendable {
    package var uri: String
    package var id: UInt8

    package init(uri: String, id: UInt8) {
      self.uri = uri
      self.id = id
    }
  }

  package init(
    mid: String, kind: MediaKind, sending: Sending?, receiving: Receiving?,
    extensions: [HeaderExtensionID], reducedSizeRTCP: Bool
  ) {
    self.mid = mid
    self.kind = kind
    self.sending = sending
    self.receiving = receiving
    self.extensions = extensions
    self.reducedSizeRTCP = reducedSizeRTCP
  }
}
