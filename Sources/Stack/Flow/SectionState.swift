import RTP
import Wire

/// A negotiated m-section with lookups that every packet needs.
///
/// A class, because every packet picks one from several and it is large to copy.
final class SectionState: Sendable {
  let section: FlowSection
  let midBytes: [UInt8]
  let extensions: HeaderExtensionMap

  init(_ section: FlowSection) {
    self.section = section
    midBytes = Array(section.mid.utf8)
    var map = HeaderExtensionMap()
    for agreed in section.extensions { map.add(uri: agreed.uri, id: agreed.id) }
    extensions = map
  }

  var mid: String { section.mid }
  var kind: MediaKind { section.kind }

  /// The meaning of a payload type in the received direction.
  enum Payload {
    case media(FlowSection.Codec)
    /// Retransmission of a codec's packets (RFC 4588).
    case retransmission(FlowSection.Codec)
  }

  func payload(_ type: UInt8) -> Payload? {
    guard let receiving = section.receiving else { return nil }
    for codec in receiving.codecs {
      if codec.payloadType == type { return .media(codec) }
      if codec.rtxPayloadType == type { return .retransmission(codec) }
    }
    return nil
  }

  /// The codec of a payload type, media or RTX.
  func codec(_ type: UInt8, isRetransmission: Bool) -> FlowSection.Codec? {
    switch payload(type) {
    case .media(let codec): isRetransmission ? nil : codec
    case .retransmission(let codec): isRetransmission ? codec : nil
    case nil: nil
    }
  }

  /// Whether transport-wide feedback was negotiated for what is received.
  var reportsArrivals: Bool {
    extensions.transportSequence != 0 && receives(feedback: "transport-cc")
  }

  /// Whether any received codec negotiated a kind of feedback.
  func receives(feedback: String) -> Bool {
    section.receiving?.codecs.contains { $0.feedback.contains(feedback) } ?? false
  }
}
