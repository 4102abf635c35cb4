import RTP
import Wire

/// An agreed m-section with what is looked up in it for every packet.
///
/// A class, because every packet takes it from among others, and it has many parts.
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

  /// What a payload type stands for in the received direction.
  enum Payload {
    case media(FlowSection.Codec)
    /// Retransmissions of a codec's packets (RFC 4588).
    case retransmission(FlowSection.Codec)
  }

  /// Looks a payload type up among what is received.
  func payload(_ type: UInt8) -> Payload? {
    guard let receiving = section.receiving else { return nil }
    for codec in receiving.codecs {
      if codec.payloadType == type { return .media(codec) }
      if codec.rtxPayloadType == type { return .retransmission(codec) }
    }
    return nil
  }

  /// The codec of a payload type that stands for media, or for retransmissions.
  func codec(_ type: UInt8, isRetransmission: Bool) -> FlowSection.Codec? {
    switch payload(type) {
    case .media(let codec): isRetransmission ? nil : codec
    case .retransmission(let codec): isRetransmission ? codec : nil
    case nil: nil
    }
  }

  /// Whether arrival times are to be reported for what is received here.
  var reportsArrivals: Bool {
    extensions.transportSequence != 0 && receives(feedback: "transport-cc")
  }

  /// Whether any received codec agreed on a kind of feedback.
  func receives(feedback: String) -> Bool {
    section.receiving?.codecs.contains { $0.feedback.contains(feedback) } ?? false
  }
}
