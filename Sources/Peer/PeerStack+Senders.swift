import JSEP
import Media
import Wire

// W3C getParameters and setParameters, and what they change of what is sent.
extension PeerStack {
  func parameters(of id: UInt32) throws(PeerError) -> RTPSendParameters {
    let info = try info(id)
    if let open = tracks.senders.lastRead(of: id) { return open }
    let section = negotiation.sections.first { $0.transceiverID == id }
    let parameters = RTPSendParameters(
      transactionId: entropy.stream("parameters").iceString(16),
      encodings: [tracks.senders.encoding(of: id, info.kind)],
      codecs: section.map(sentCodecs) ?? [],
      headerExtensions: (section?.extensions ?? []).map { .init(uri: $0.uri, id: $0.id) },
      cname: negotiation.cname, reducedSizeRTCP: section?.reducedSizeRTCP ?? false)
    tracks.senders.update(id, info.kind) { $0.lastRead = parameters }
    return parameters
  }

  private func sentCodecs(_ section: NegotiatedSection) -> [RTPSendParameters.Codec] {
    var codecs: [RTPSendParameters.Codec] = []
    for codec in section.codecs {
      codecs.append(
        .init(payloadType: codec.payloadType, codec: RTPCodec(codec, section.kind)))
      if let rtx = codec.rtxPayloadType {
        let codec = RTPCodec(
          mimeType: "\(section.kind.rawValue)/rtx", clockRate: codec.clockRate,
          sdpFmtpLine: "apt=\(codec.payloadType)")
        codecs.append(.init(payloadType: rtx, codec: codec))
      }
    }
    return codecs
  }

  func setParameters(_ parameters: RTPSendParameters, of id: UInt32) throws(PeerError) {
    let info = try info(id)
    guard info.direction != .stopped else {
      throw PeerError(name: "InvalidStateError", message: "transceiver \(id) is stopped")
    }
    guard let read = tracks.senders.lastRead(of: id) else {
      throw PeerError(
        name: "InvalidStateError",
        message: "the parameters were not read before, or were set since: call getParameters")
    }
    var comparable = parameters
    comparable.encodings = read.encodings
    guard comparable == read, parameters.encodings.count == read.encodings.count,
      let encoding = parameters.encodings.first
    else {
      throw PeerError(
        name: "InvalidModificationError",
        message: "only what stands in the encodings can be changed")
    }
    try check(encoding)
    tracks.senders.update(id, info.kind) {
      $0.lastRead = nil
      $0.encoding = encoding.suited(to: info.kind)
    }
    if let index = tracks.sendingIndex(of: id) { applyEncoding(at: index) }
    updateCaptures()
  }

  /// Takes the encodings that a new transceiver begins with; one is what can be sent.
  func setFirstEncoding(_ encodings: [RTPEncoding], of id: UInt32, _ kind: MediaKind) {
    guard let encoding = encodings.first else { return }
    tracks.senders.update(id, kind) { $0.encoding = encoding.suited(to: kind) }
  }

  func check(_ encoding: RTPEncoding) throws(PeerError) {
    if let complaint = encoding.complaint {
      throw PeerError(name: "RangeError", message: complaint)
    }
  }

  /// Hands the limits of an encoding to a capture that runs.
  func applyEncoding(at index: Int) {
    let track = tracks.sending[index]
    let encoding = tracks.senders.encoding(of: track.transceiver, track.kind)
    guard track.isRunning else { return }
    if track.video != nil {
      driveVideoCapture(
        at: index,
        .limits(
          framesPerSecond: encoding.maxFramerate,
          scaleDownBy: encoding.scaleResolutionDownBy ?? 1))
    } else if track.audioBitrate != audioBitrate(of: track.transceiver) {
      // An encoder of sound keeps its bit rate, so another one goes on in its place.
      stopCapture(at: index)
    }
  }

  /// What a sender of sound may spend, in bits per second.
  func audioBitrate(of transceiver: UInt32) -> UInt32 {
    let wanted = genesis.configuration.audioBitrate
    guard let limit = tracks.senders.encoding(of: transceiver, .audio).maxBitrate else {
      return wanted
    }
    // Opus has no lower rate (RFC 6716 section 2.1.1).
    return min(wanted, UInt32(clamping: max(limit, 6_000)))
  }

  /// Shares a bit rate between senders: equally, and what one may not spend goes to the others.
  static func shares(of total: UInt64, limits: [UInt64?]) -> [UInt64] {
    var shares = [UInt64](repeating: 0, count: limits.count)
    var rest = total
    let order = limits.indices.sorted {
      (limits[$0] ?? .max, $0) < (limits[$1] ?? .max, $1)
    }
    for (place, index) in order.enumerated() {
      let equal = rest / UInt64(limits.count - place)
      shares[index] = min(equal, limits[index] ?? .max)
      rest -= shares[index]
    }
    return shares
  }
}
