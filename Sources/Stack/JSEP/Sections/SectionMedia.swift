import RTP
import SDP
import Wire

/// The supported codecs and header extensions of an m-section.
struct SectionMedia {
  var codecs: [NegotiatedCodec]
  var extensions: [(uri: String, id: UInt8)]

  /// Identifiers of one-byte header extensions (RFC 8285 section 4.2); 15 is reserved.
  static let extensionIDs: ClosedRange<UInt16> = 1...14

  /// Whether audio or video can be sent and received, and not only telephone events.
  var carriesMedia: Bool { codecs.contains(where: \.carriesMedia) }
}

extension SectionMedia {
  /// Parses a section in its order of preference; duplicate formats count once.
  init(reading section: SDPSection, kind: MediaKind, _ capabilities: Capabilities) {
    let formats = PayloadFormats(section)
    codecs = []
    for payloadType in formats.listed {
      let parameters = formats.parameters[Int(payloadType)]?.parameters ?? ""
      guard let map = formats.maps[Int(payloadType)],
        let capability = capabilities.codec(matching: map, parameters: parameters, kind: kind),
        let format = CodecFormat(
          name: map.name, parameters: parameters, clockRate: map.clockRate),
        !codecs.contains(where: { $0.format == format })
      else { continue }
      codecs.append(
        NegotiatedCodec(
          payloadType: payloadType, name: capability.name.lowercased(),
          clockRate: capability.clockRate, channels: capability.channels,
          parameters: parameters,
          rtxPayloadType: capability.rtxPayloadType == nil ? nil : formats.rtx(of: payloadType),
          feedback: capability.feedback.filter { formats.lists($0, for: payloadType) },
          isEncoded: capability.isEncoded))
    }
    extensions = []
    for map in section.extensionMaps {
      // A direction would have to be respected when sending too; no peer states one for the
      // extensions supported here.
      guard SectionMedia.extensionIDs.contains(map.id), (map.direction ?? .sendrecv) == .sendrecv,
        capabilities.hasExtension(map.uri, kind: kind),
        !extensions.contains(where: { $0.uri == map.uri || $0.id == map.id })
      else { continue }
      extensions.append((map.uri, UInt8(map.id)))
    }
  }

  /// Intersects an offer and its answer in the order of the answer; `parameters` are the peer's,
  /// which say what it accepts.
  static func agreed(offer: SectionMedia, answer: SectionMedia, peerAnswered: Bool)
    -> SectionMedia
  {
    let codecs = answer.codecs.compactMap { answered -> NegotiatedCodec? in
      guard let offered = offer.codecs.first(where: { $0.format == answered.format })
      else {
        return nil
      }
      var codec = answered
      codec.parameters = peerAnswered ? answered.parameters : offered.parameters
      codec.feedback = answered.feedback.filter { offered.feedback.contains($0) }
      if offered.rtxPayloadType == nil { codec.rtxPayloadType = nil }
      return codec
    }
    let extensions = answer.extensions.filter { answered in
      offer.extensions.contains { $0 == answered }
    }
    return SectionMedia(codecs: codecs, extensions: extensions)
  }

  /// The codecs of the own offer that are not among those that were agreed on, under payload types
  /// that stand for nothing else.
  ///
  /// An offerer has to be ready for all that it offered until the answer comes, and may go on with
  /// that (RFC 3264 sections 5.1 and 7): libwebrtc answers what its application chose, and sends
  /// what the offer likes best. Feedback and retransmission are as with the others.
  func unanswered(of offer: SectionMedia) -> [NegotiatedCodec] {
    guard !codecs.isEmpty else { return [] }
    var taken = codecs.flatMap { [$0.payloadType, $0.rtxPayloadType].compactMap { $0 } }
    var left: [NegotiatedCodec] = []
    for offered in offer.codecs where !codecs.contains(where: { $0.format == offered.format }) {
      guard !taken.contains(offered.payloadType) else { continue }
      var codec = offered
      codec.feedback = offered.feedback.filter { message in
        codecs.contains { $0.feedback.contains(message) }
      }
      let repairs = codecs.contains { $0.rtxPayloadType != nil }
      if let repair = offered.rtxPayloadType, !repairs || taken.contains(repair) {
        codec.rtxPayloadType = nil
      }
      taken += [codec.payloadType, codec.rtxPayloadType].compactMap { $0 }
      left.append(codec)
    }
    return left
  }
}

/// The formats of a section by payload type.
private struct PayloadFormats {
  /// The payload types of the `m=` line in order, without duplicates.
  var listed: [UInt8] = []
  var maps = [RTPMap?](repeating: nil, count: 128)
  var parameters = [FormatParameters?](repeating: nil, count: 128)
  private var feedback: [RTCPFeedback]

  init(_ section: SDPSection) {
    for format in section.formats {
      guard let number = UInt8(decimal: format), number < 128, !listed.contains(number) else {
        continue
      }
      listed.append(number)
    }
    feedback = section.rtcpFeedback
    for map in section.rtpMaps where maps[Int(map.payloadType)] == nil {
      maps[Int(map.payloadType)] = map
    }
    // Static payload types need no rtpmap (RFC 3551 section 6).
    for (number, name) in [(0, CodecName.pcmu), (8, .pcma)] where maps[number] == nil {
      guard let codec = name.codec, listed.contains(UInt8(number)) else { continue }
      maps[number] = RTPMap(
        payloadType: UInt8(number), name: codec.spelling, clockRate: codec.clockRate,
        channels: nil)
    }
    for parameter in section.formatParameters {
      guard let number = UInt8(decimal: parameter.format), number < 128,
        parameters[Int(number)] == nil
      else { continue }
      parameters[Int(number)] = parameter
    }
  }

  /// Whether a feedback message is listed for a payload type or for `*`.
  func lists(_ message: String, for payloadType: UInt8) -> Bool {
    feedback.contains {
      $0.feedback == message && ($0.payloadType == nil || $0.payloadType == payloadType)
    }
  }

  /// The RTX payload type of a payload type (RFC 4588 section 8.1).
  func rtx(of payloadType: UInt8) -> UInt8? {
    listed.first {
      maps[Int($0)]?.name.lowercased() == "rtx"
        && parameters[Int($0)]?[name: "apt"] == String(payloadType)
    }
  }
}

extension SectionMedia {
  /// Returns the preferred codecs in the order of the preferences.
  ///
  /// Without preferences, all codecs in the order of the description, except that pass-through
  /// codecs come last.
  func preferring(_ preferences: [RTPCodec]) -> SectionMedia {
    var media = self
    guard !preferences.isEmpty else {
      media.codecs = codecs.filter(\.isEncoded) + codecs.filter { !$0.isEncoded }
      return media
    }
    let repairs = preferences.contains { $0.isRetransmission }
    media.codecs = preferences.compactMap { preferred in
      guard let format = preferred.format,
        var codec = codecs.first(where: { $0.format == format })
      else { return nil }
      if !repairs { codec.rtxPayloadType = nil }
      return codec
    }
    return media
  }
}
