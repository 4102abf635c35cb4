package import Wire

/// The result of negotiating one m-section.
package struct NegotiatedSection: Hashable, Sendable {
  package var mid: String
  package var transceiverID: UInt32
  /// The number of the section's transport.
  package var transport: Int
  package var kind: MediaKind
  package var direction: TransceiverDirection
  /// In the answer's order of preference; RTX is part of its codec.
  package var codecs: [NegotiatedCodec]
  /// The codecs of the own offer that the answer leaves out and that are received all the same.
  package var unansweredCodecs: [NegotiatedCodec] = []
  /// URI and identifier, in the order of the answer.
  package var extensions: [(uri: String, id: UInt8)]
  package var remoteSSRCs: [UInt32]
  package var remoteRTXSSRCs: [UInt32?]
  package var reducedSizeRTCP: Bool
  /// The peer's limit for what is sent, in bits per second of payload; nil if none.
  package var sendBitrateLimit: UInt64?
  /// The simulcast layers that are sent, in the order of the local description; empty for a single
  /// stream.
  package var sentLayers: [NegotiatedLayer]

  package init(
    mid: String, transceiverID: UInt32, transport: Int = 0, kind: MediaKind,
    direction: TransceiverDirection, codecs: [NegotiatedCodec],
    extensions: [(uri: String, id: UInt8)], remoteSSRCs: [UInt32], remoteRTXSSRCs: [UInt32?],
    reducedSizeRTCP: Bool, sendBitrateLimit: UInt64? = nil, sentLayers: [NegotiatedLayer] = []
  ) {
    self.mid = mid
    self.transceiverID = transceiverID
    self.transport = transport
    self.kind = kind
    self.direction = direction
    self.codecs = codecs
    self.extensions = extensions
    self.remoteSSRCs = remoteSSRCs
    self.remoteRTXSSRCs = remoteRTXSSRCs
    self.reducedSizeRTCP = reducedSizeRTCP
    self.sendBitrateLimit = sendBitrateLimit
    self.sentLayers = sentLayers
  }

  /// The codec to send with: the first that can be encoded, or else the first.
  package var sentCodec: NegotiatedCodec? {
    codecs.first { $0.isEncoded && $0.carriesMedia } ?? codecs.first
  }

  /// The telephone events that can be sent beside the audio; they share its clock rate (RFC 7874
  /// section 3).
  package var sentEvents: NegotiatedCodec? {
    let clockRate = sentCodec?.clockRate
    return codecs.first { !$0.carriesMedia && $0.clockRate == clockRate }
  }

  /// The codec that the peer most likely sends.
  package var receivedCodec: NegotiatedCodec? {
    codecs.first(where: \.carriesMedia) ?? codecs.first
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.mid == right.mid && left.transceiverID == right.transceiverID
      && left.transport == right.transport && left.kind == right.kind
      && left.direction == right.direction && left.codecs == right.codecs
      && left.unansweredCodecs == right.unansweredCodecs
      && left.remoteSSRCs == right.remoteSSRCs && left.remoteRTXSSRCs == right.remoteRTXSSRCs
      && left.reducedSizeRTCP == right.reducedSizeRTCP
      && left.sendBitrateLimit == right.sendBitrateLimit && left.sentLayers == right.sentLayers
      && left.extensions.elementsEqual(right.extensions, by: ==)
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(mid) }
}
