import Flow
import JSEP
import Media
import RTP
import Stats
import Wire

// Codec objects: those that a stream in this report uses.
extension StatsCollector {
  /// A codec in one direction; its fmtp line depends on who receives.
  private struct CodecUse: Equatable {
    var transport: Int
    var payloadType: UInt8
    var parameters: String
  }

  func codecStats() -> [StatsObject] {
    var objects: [StatsObject] = []
    var known: [CodecUse] = []
    for (mid, payloadType, isInbound) in codecUses {
      guard let (section, codec) = negotiated(payloadType, mid) else { continue }
      let use = use(of: codec, in: section, isInbound: isInbound)
      guard !known.contains(use) else { continue }
      known.append(use)
      var stats = builder("codec", id(of: use))
      stats.set("payloadType", codec.payloadType)
      stats.set("transportId", transportID(use.transport))
      stats.set("mimeType", "\(section.kind.rawValue)/\(codec.displayName)")
      stats.set("clockRate", codec.clockRate)
      stats.set("channels", codec.channels)
      if !use.parameters.isEmpty { stats.set("sdpFmtpLine", use.parameters) }
      objects.append(stats.build())
    }
    return objects
  }

  /// The id of a stream's codec; nil if it is no longer negotiated.
  func codecID(_ payloadType: UInt8?, mid: String, isInbound: Bool) -> String? {
    guard let payloadType, let (section, codec) = negotiated(payloadType, mid)
    else { return nil }
    return id(of: use(of: codec, in: section, isInbound: isInbound))
  }

  /// The codecs used by the report's streams, in their order.
  private var codecUses: [(mid: String, payloadType: UInt8, isInbound: Bool)] {
    let sent = bundles.outboundStreams.map { ($0.mid, $0.payloadType, false) }
    let received = bundles.inboundStreams.compactMap { stream in
      stream.payloadType.map { (stream.mid, $0, true) }
    }
    return sent + received
  }

  private func negotiated(_ payloadType: UInt8, _ mid: String)
    -> (NegotiatedSection, NegotiatedCodec)?
  {
    guard let section = sections.first(where: { $0.mid == mid }),
      let codec = (section.codecs + section.unansweredCodecs).first(where: {
        $0.payloadType == payloadType
      })
    else { return nil }
    return (section, codec)
  }

  private func use(
    of codec: NegotiatedCodec, in section: NegotiatedSection, isInbound: Bool
  ) -> CodecUse {
    CodecUse(
      transport: section.transport,
      payloadType: codec.payloadType,
      parameters: isInbound ? codec.localParameters : codec.parameters)
  }

  private func id(of use: CodecUse) -> String {
    names.id("C", "\(use.payloadType) \(use.parameters)", of: use.transport)
  }
}
