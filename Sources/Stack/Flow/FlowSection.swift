package import RTP
package import Wire

/// The negotiated parameters of one m-section that matter to packets.
package struct FlowSection: Hashable, Sendable {
  /// A payload type and its codec.
  package struct Codec: Hashable, Sendable {
    package var payloadType: UInt8
    package var name: CodecName
    package var clockRate: UInt32
    /// The payload type of the RTX stream (RFC 4588), if negotiated.
    package var rtxPayloadType: UInt8?
    /// The negotiated rtcp-fb values: `nack`, `nack pli`, `ccm fir`, `goog-remb`, `transport-cc`.
    package var feedback: [String]
    /// Whether the peer accepts fragmented units of H.264 (packetization mode 1).
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

  /// What is sent in the section.
  package struct Sending: Hashable, Sendable {
    /// A stream that is sent: the only one of the section, or a simulcast layer.
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

    /// The only stream, or the simulcast layers in the order of the offer.
    package var sources: [Source]
    package var codec: Codec
    /// Telephone events with the clock rate of the codec (RFC 4733), if negotiated.
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

  /// What is accepted in the section.
  package struct Receiving: Hashable, Sendable {
    package var codecs: [Codec]
    /// The media SSRCs that the peer announced, each with its RTX SSRC if announced.
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
  /// The negotiated header extensions.
  package var extensions: [HeaderExtensionID]
  /// Whether reduced-size RTCP (RFC 5506) was negotiated.
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
