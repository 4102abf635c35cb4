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

// MARK: - SimulcastLayers

/// A simulcast layer that a transceiver sends (RFC 8853).
package struct SimulcastLayer: Hashable, Sendable {
  /// Its name in descriptions and packets (RFC 8851 section 4).
  package let rid: String
  package let ssrc: UInt32
  package let rtxSSRC: UInt32

  /// The most layers of a simulcast.
  package static let countMaximum = 3

  /// Whether a text is a valid layer name: letters and digits, short enough for one-byte header
  /// extensions (RFC 8852 section 3.1, RFC 8285 section 4.2).
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

/// A negotiated simulcast layer.
package struct NegotiatedLayer: Hashable, Sendable {
  package let rid: String
  /// Whether the peer has paused it (RFC 8853 section 5.1).
  package let isPaused: Bool
  /// The peer's limits in bits per second and in frames per second (RFC 8851 section 5); nil if
  /// none.
  package let maxBitrate: UInt64?
  package let maxFramerate: Double?
}

extension NegotiatedLayer {
  /// The layers that one side sends and the other accepts, in the sender's order.
  ///
  /// A listed layer without its own `rid` line is ignored (RFC 8853 section 5.2); of alternatives
  /// the first common one is chosen.
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
  /// The names of the layers that a peer's offer accepts.
  func layers(takenBy offered: SDPSection) -> [String] {
    let taken = Simulcast.streams(offered.simulcast?.received).joined()
    return layers.map(\.rid).filter { rid in
      taken.contains { $0.rid == rid } && offered.rids.contains { !$0.isSent && $0.id == rid }
    }
  }
}

extension SDPSection {
  /// The layers that the section's writer wants to receive: the first alternative of each, if it
  /// has its own `rid` line (RFC 8853 section 5.2).
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
  /// The streams of a list, each with its alternatives (RFC 8853 section 5.1).
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
  /// The value of a restriction (RFC 8851 section 5).
  fileprivate func restriction(_ name: String) -> Substring? {
    for part in (restrictions ?? "").split(separator: ";") {
      let halves = part.split(separator: "=", maxSplits: 1)
      if halves.count == 2, halves[0] == name { return halves[1] }
    }
    return nil
  }
}
