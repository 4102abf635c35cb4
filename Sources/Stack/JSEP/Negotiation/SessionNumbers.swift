import RTP
import SDP
import Wire

/// Payload types and header extension ids in use; later local offers repeat the negotiated numbers.
///
/// All sections may share one transport, so a number must not have different meanings in two of
/// them (RFC 9143 section 9.1).
struct SessionNumbers {
  private struct Codec {
    var format: CodecFormat
    var payloadType: UInt8
    var rtxPayloadType: UInt8?
  }

  private static let lastStaticType: UInt8 = 34

  private var codecs: [Codec] = []
  private var extensions: [(uri: String, id: UInt8)] = []

  /// Records the payload types and extension ids negotiated in a section, for later local offers.
  mutating func learn(_ section: NegotiatedSection) {
    for codec in section.codecs {
      guard let format = codec.format else { continue }
      let place = codecs.firstIndex { $0.format == format }
      let known = place.flatMap { codecs[$0].rtxPayloadType }
      let learnt = Codec(
        format: format, payloadType: codec.payloadType,
        rtxPayloadType: codec.rtxPayloadType ?? known)
      if let place { codecs[place] = learnt } else { codecs.append(learnt) }
    }
    for (uri, id) in section.extensions {
      extensions.removeAll { $0.uri == uri || $0.id == id }
      extensions.append((uri, id))
    }
  }

  /// Returns the media that an offer lists in a new or already negotiated section.
  ///
  /// Newly assigned numbers are stored, so that later sections in the same offer use them too.
  mutating func offer(
    kind: MediaKind, _ capabilities: Capabilities, agreed: NegotiatedSection?,
    foreign: RemoteNumbers, hasLayers: Bool = false
  ) -> SectionMedia {
    var codecs = capabilities.codecs(kind).compactMap { capability in
      codec(capability, agreed: agreed, foreign: foreign)
    }
    if let agreed {
      // Codecs from the last answer come first, in the answer's order, including variants that the
      // peer introduced (RFC 9429 section 5.2.2).
      let kept = agreed.codecs.map { known in
        codecs.first { $0.format == known.format } ?? known
      }
      codecs = kept + codecs.filter { codec in !kept.contains { $0.format == codec.format } }
    }
    var extensions = agreed?.extensions ?? []
    for capability in capabilities.extensions
    where (capability.isOffered || hasLayers && capability.namesLayers)
      && capability.kinds.contains(kind)
    {
      if extensions.contains(where: { $0.uri == capability.uri }) { continue }
      guard let id = id(of: capability, foreign: foreign),
        !extensions.contains(where: { $0.id == id })
      else { continue }
      extensions.append((capability.uri, id))
    }
    return SectionMedia(codecs: codecs, extensions: extensions)
  }

  private mutating func codec(
    _ capability: CodecCapability, agreed: NegotiatedSection?, foreign: RemoteNumbers
  ) -> NegotiatedCodec? {
    guard let format = capability.format else { return nil }
    let before = agreed?.codecs.first { $0.format == format }
    let known = codecs.first { $0.format == format }
    let payloadType =
      before?.payloadType ?? known?.payloadType ?? free(capability.payloadType, foreign)
    var rtxPayloadType: UInt8?
    if let preferred = capability.rtxPayloadType {
      rtxPayloadType =
        before?.rtxPayloadType ?? known?.rtxPayloadType
        ?? free(preferred, foreign, besides: payloadType)
    }
    if known?.rtxPayloadType != rtxPayloadType || known == nil {
      codecs.removeAll { $0.format == format }
      codecs.append(
        Codec(format: format, payloadType: payloadType, rtxPayloadType: rtxPayloadType))
    }
    return NegotiatedCodec(
      payloadType: payloadType, name: format.name, clockRate: capability.clockRate,
      channels: capability.channels, parameters: capability.parameters,
      rtxPayloadType: rtxPayloadType, feedback: capability.feedback)
  }

  /// Returns the preferred payload type if it is free or static, or else the first free dynamic
  /// payload type; if none is free, returns the preferred one.
  private func free(_ preferred: UInt8, _ foreign: RemoteNumbers, besides other: UInt8? = nil)
    -> UInt8
  {
    func isFree(_ number: UInt8) -> Bool {
      number != other && !foreign.uses(payloadType: number)
        && !codecs.contains { $0.payloadType == number || $0.rtxPayloadType == number }
    }
    // A static payload type always means the same codec (RFC 3551 section 6).
    if isFree(preferred) || preferred <= Self.lastStaticType { return preferred }
    for range: ClosedRange<UInt8> in [96...127, 35...63] {
      if let number = range.first(where: isFree) { return number }
    }
    return preferred
  }

  private mutating func id(of capability: ExtensionCapability, foreign: RemoteNumbers) -> UInt8? {
    if let known = extensions.first(where: { $0.uri == capability.uri }) { return known.id }
    func isFree(_ id: UInt8) -> Bool {
      !extensions.contains { $0.id == id }
        && !foreign.uses(extensionID: id, otherThanFor: capability.uri)
    }
    let candidates = [capability.id] + (1...14)
    guard let id = candidates.first(where: isFree) else { return nil }
    extensions.append((capability.uri, id))
    return id
  }
}

/// The payload types and extension ids in the peer's current description, whether their formats are
/// supported here or not.
struct RemoteNumbers {
  private var payloadTypes: Set<String> = []
  /// The URI of each header extension id; nil if the id is used for several URIs.
  private var uris: [UInt16: String?] = [:]

  init(_ document: SDPDocument?) {
    for section in document?.sections ?? [] where !section.isRejected {
      payloadTypes.formUnion(section.formats)
      for map in section.extensionMaps {
        if let known = uris[map.id], known != map.uri {
          uris[map.id] = .some(nil)
        } else {
          uris[map.id] = map.uri
        }
      }
    }
  }

  func uses(payloadType: UInt8) -> Bool { payloadTypes.contains(String(payloadType)) }

  /// Returns whether the peer uses a header extension id for another URI.
  func uses(extensionID id: UInt8, otherThanFor uri: String) -> Bool {
    uris[UInt16(id)].map { $0 != uri } ?? false
  }
}
