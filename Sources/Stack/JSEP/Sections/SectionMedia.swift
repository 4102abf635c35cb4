import RTP
import SDP
import Wire

/// The supported codecs and header extensions in an m-section.
struct SectionMedia {
  var codecs: [NegotiatedCodec]
  var extensions: [(uri: String, id: UInt8)]

  /// Ids of one-byte header extensions (RFC 8285 section 4.2); 15 is reserved.
  static let extensionIDs: ClosedRange<UInt16> = 1...14

  /// Whether audio or video can be sent and received, not only telephone events.
  var carriesMedia: Bool { codecs.contains(where: \.carriesMedia) }
}

extension SectionMedia {
  /// Parses a section, keeping its order of preference; a repeated format counts once.
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
      // An extension for one direction only is ignored, because sending would have to respect that
      // direction; no peer restricts the extensions supported here.
      guard SectionMedia.extensionIDs.contains(map.id), (map.direction ?? .sendrecv) == .sendrecv,
        capabilities.hasExtension(map.uri, kind: kind),
        !extensions.contains(where: { $0.uri == map.uri || $0.id == map.id })
      else { continue }
      extensions.append((map.uri, UInt8(map.id)))
    }
  }

  /// Intersects an offer and its answer in the answer's order; the codecs' `parameters` are the
  /// peer's, which state what the peer accepts.
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

  /// Returns codecs from the local offer that the answer omitted, unless their payload types now
  /// mean something else.
  ///
  /// An offerer must be ready for everything it offered until the answer arrives, and may stay
  /// ready (RFC 3264 sections 5.1 and 7). libwebrtc makes that useful: it answers with its
  /// application's choice, but sends what the offer prefers. Feedback and retransmission follow the
  /// agreed codecs.
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

/// The rtpmap, fmtp and rtcp-fb lines of a section, by payload type.
private struct PayloadFormats {
  /// The payload types in the `m=` line in order, without duplicates.
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

  /// Returns whether a feedback message is listed for a payload type or for `*`.
  func lists(_ message: String, for payloadType: UInt8) -> Bool {
    feedback.contains {
      $0.feedback == message && ($0.payloadType == nil || $0.payloadType == payloadType)
    }
  }

  /// Returns the payload type of a codec's retransmissions (RFC 4588 section 8.1); nil if there is
  /// none.
  func rtx(of payloadType: UInt8) -> UInt8? {
    listed.first {
      maps[Int($0)]?.name.lowercased() == "rtx"
        && parameters[Int($0)]?[name: "apt"] == String(payloadType)
    }
  }
}

extension SectionMedia {
  /// Returns the media with only the preferred codecs, in order of preference.
  ///
  /// Without preferences, returns all codecs in the description's order, but with codecs that
  /// cannot be encoded here at the end.
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

// MARK: - SimulcastLayers

/// A simulcast layer a transceiver sends (RFC 8853).
package struct SimulcastLayer: Hashable, Sendable {
  /// The layer's name in descriptions and packets (RFC 8851 section 4).
  package let rid: String
  package let ssrc: UInt32
  package let rtxSSRC: UInt32

  /// The maximum number of simulcast layers that a transceiver sends.
  package static let countMaximum = 3

  /// Returns whether a string is a valid layer name, that is, letters and digits, short enough for
  /// one-byte header extensions (RFC 8852 section 3.1, RFC 8285 section 4.2).
  package static func isName(_ text: String) -> Bool {
    (1...16).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "A")...UInt8(ascii: "Z"):
          true
        default: false
        }
      }
  }
}

/// A simulcast layer that both descriptions contain, with the peer's limits.
package struct NegotiatedLayer: Hashable, Sendable {
  package let rid: String
  /// Whether the peer has paused the layer (RFC 8853 section 5.1).
  package let isPaused: Bool
  /// The peer's limits in bits per second and frames per second (RFC 8851 section 5); nil if there
  /// are none.
  package let maxBitrate: UInt64?
  package let maxFramerate: Double?
}

extension NegotiatedLayer {
  /// Returns the layers that one peer sends and the other accepts, in the sender's order.
  ///
  /// A listed layer without its own `rid` line is ignored (RFC 8853 section 5.2); among
  /// alternatives, the first common one is chosen.
  static func agreed(sender: SDPSection, receiver: SDPSection) -> [NegotiatedLayer] {
    let sent = Simulcast.streams(sender.simulcast?.sent)
    let wishes = Simulcast.streams(receiver.simulcast?.received).joined()
    let described = receiver.rids.filter { !$0.isSent }
    var layers: [NegotiatedLayer] = []
    for choices in sent.prefix(SimulcastLayer.countMaximum) {
      for choice in choices {
        guard let wish = wishes.first(where: { $0.rid == choice.rid }),
          let limits = described.first(where: { $0.id == choice.rid }),
          sender.rids.contains(where: { $0.isSent && $0.id == choice.rid }),
          !layers.contains(where: { $0.rid == choice.rid })
        else { continue }
        layers.append(
          NegotiatedLayer(
            rid: choice.rid, isPaused: wish.isPaused,
            maxBitrate: limits.restriction("max-br").flatMap { UInt64($0) },
            maxFramerate: limits.restriction("max-fps").flatMap { Double($0) }
              .flatMap { $0.isFinite && $0 > 0 ? $0 : nil }))
        break
      }
    }
    return layers
  }
}

extension Transceiver {
  /// Returns the names of the layers that a peer's offer accepts.
  func layers(takenBy offered: SDPSection) -> [String] {
    let taken = Simulcast.streams(offered.simulcast?.received).joined()
    return layers.map(\.rid).filter { rid in
      taken.contains { $0.rid == rid } && offered.rids.contains { !$0.isSent && $0.id == rid }
    }
  }
}

extension SDPSection {
  /// The layers the section's writer wants to receive: the first alternative of each, if it has its
  /// own `rid` line (RFC 8853 section 5.2).
  var wantedLayers: [String] {
    var layers: [String] = []
    for choices in Simulcast.streams(simulcast?.received) {
      guard let rid = choices.first?.rid, SimulcastLayer.isName(rid), !layers.contains(rid),
        rids.contains(where: { !$0.isSent && $0.id == rid })
      else { continue }
      layers.append(rid)
    }
    return Array(layers.prefix(SimulcastLayer.countMaximum))
  }
}

extension Simulcast {
  /// Parses a list of streams, each with its alternatives (RFC 8853 section 5.1).
  static func streams(_ list: String?) -> [[(rid: String, isPaused: Bool)]] {
    (list ?? "").split(separator: ";").prefix(16).map { choices in
      choices.split(separator: ",").prefix(16).map { choice in
        let isPaused = choice.hasPrefix("~")
        return (String(isPaused ? choice.dropFirst() : choice), isPaused)
      }
    }
  }
}

extension RestrictionID {
  /// Returns the value of a restriction such as `max-br` (RFC 8851 section 5); nil if it is absent.
  fileprivate func restriction(_ name: String) -> Substring? {
    for part in (restrictions ?? "").split(separator: ";") {
      let halves = part.split(separator: "=", maxSplits: 1)
      if halves.count == 2, halves[0] == name { return halves[1] }
    }
    return nil
  }
}
