package import Wire

/// An RTP stream of a call: what one end sends under one SSRC.
package struct ObservedStream: Hashable, Sendable {
  /// From 1, over all calls.
  package var number: Int
  package var transport: Int
  /// Which end sends it.
  package var from: Int
  package var ssrc: UInt32
  /// What its payload types stand for, in the order in which they appeared.
  package var payloads: [PayloadMeaning] = []
  /// The media section it belongs to, where something tells.
  package var mid: String?
  /// The encoding of a simulcast.
  package var streamID: String?
  /// The name that both streams of an end have (CNAME).
  package var canonicalName: String?
  /// The stream whose packets this one sends again (RFC 4588).
  package var repairs: UInt32?
  package var repairsHow: Knowledge?
  /// The stream of which this one recovers lost packets: it is one of FlexFEC (RFC 8627).
  package var protects: UInt32?
  /// The source that does so for this one, where a description names it.
  package var protectedBy: UInt32?
  /// Whether both descriptions, or the one that is known, list a format that corrects errors.
  package var agreesOnCorrection = false

  /// Audio or video frames; nil where nothing tells.
  package var kind: MediaKind? { payloads.lazy.compactMap(\.kind).first }
  /// The clock of the first payload type with one, in Hz; 0 where nothing tells.
  package var clockRate: UInt32 { payloads.first { $0.clockRate > 0 }?.clockRate ?? 0 }
}
