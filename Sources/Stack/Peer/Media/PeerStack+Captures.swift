import Flow
import JSEP
import Media
import RTP
import Wire

// Which tracks are captured, and their encoders' bit rates.
extension PeerStack {
  func setSource(
    _ source: MediaSource?, of id: UInt32, _ kind: MediaKind, isEnabled: Bool = true
  ) {
    let indices = tracks.sendingIndices(of: id)
    for index in indices {
      drive(sending: index, .enabled(isEnabled))
      guard tracks.sending[index].source != source else { return }
      drive(sending: index, .source(source))
    }
    if indices.isEmpty, let source { addTracks(source, of: id, kind, isEnabled: isEnabled) }
    updateCaptures()
  }

  /// Adds a track for each encoding of a sender that has none.
  func addTracks(_ source: MediaSource, of id: UInt32, _ kind: MediaKind, isEnabled: Bool) {
    for encoding in tracks.senders.encodings(of: id, kind) {
      tracks.add(source, of: id, kind, rid: encoding.rid)
      drive(sending: tracks.sending.count - 1, .enabled(isEnabled))
    }
  }

  func stopCapture(of transceiver: UInt32) {
    for index in tracks.sendingIndices(of: transceiver) { drive(sending: index, .stop) }
  }

  /// Starts, stops or replaces captures to match the negotiation and the settings.
  func updateCaptures() {
    for index in tracks.sending.indices {
      guard let start = start(of: tracks.sending[index]) else {
        if tracks.sending[index].isWanted { drive(sending: index, .stop) }
        continue
      }
      // An encoder produces one codec, so another one continues in its place.
      if tracks.sending[index].isRunning,
        tracks.sending[index].stream.codec != start.codec
          || tracks.sending[index].stream.rid != start.rid
          || tracks.sending[index].stream.unitLimit != start.unitLimit
      {
        drive(sending: index, .stop)
      }
      drive(sending: index, .encoding(start.encoding))
      let (preference, hint) = tracks.senders.adaptation(of: tracks.sending[index].transceiver)
      // Simulcast layers keep their size; the highest is dropped first.
      drive(sending: index, .adaptation(start.rid == nil ? preference : nil, hint))
      guard tracks.sending[index].stream.heldMID == nil else { continue }
      if tracks.sending[index].stream.mid != start.mid { drive(sending: index, .start(start)) }
    }
    for bundle in bundles.all { shareBitrate(of: bundle) }
    updateMarks()
  }

  /// The largest unit of H.264 that is sent in a single packet (RFC 6184 section 6.2): what fits
  /// beside all header extensions, less what the library overshoots.
  private static let unitLimit = 1_000

  /// The parameters for capturing a track; nil if nothing of it should be sent now.
  func start(of track: SendingTrack) -> SendingTrack.Start? {
    guard !life.isClosed, track.source != nil,
      let section = negotiation.sections.first(where: { $0.transceiverID == track.transceiver }),
      section.direction.sends
    else { return nil }
    let bundle = bundles.carrying(section.mid)
    let encoding = encoding(of: track)
    guard bundle.transport.isSecured, encoding.active else { return nil }
    let transceiver = negotiation.transceivers.first { $0.id == track.transceiver }
    var start = SendingTrack.Start(
      mid: section.mid, codec: section.sentCodec?.name ?? "", ssrc: transceiver?.ssrc ?? 0,
      encoding: encoding,
      videoBitrate: bundle.videoBitrate ?? genesis.configuration.videoBitrateStart)
    start.isEncoded = section.sentCodec?.isEncoded ?? false
    if start.isEncoded, section.sentCodec?.format?.acceptsFragments == false {
      start.unitLimit = PeerStack.unitLimit
    }
    guard let rid = track.rid, let transceiver else { return start }
    let sources = transceiver.sources(in: section)
    // Video that arrives encoded is one stream, sent as the first layer or as the only one.
    let isFirst = rid == (sources[0].rid ?? transceiver.layers.first?.rid)
    guard isFirst || section.sentCodec?.isEncoded == true,
      let source = sources.first(where: { $0.rid == rid }) ?? (isFirst ? sources[0] : nil),
      section.sentLayers.first(where: { $0.rid == rid })?.isPaused != true
    else { return nil }
    start.ssrc = source.ssrc
    start.rid = source.rid
    start.isFirst = isFirst
    let running = tracks.sendingIndices(of: track.transceiver)
      .compactMap { tracks.sending[$0].mediaOrigin }
    // The first of them starts now, and so do those that start together with it.
    if let origin = running.min(), origin < now { start.origin = origin }
    return start
  }

  /// The encoding of a track: the application's settings within the peer's limits.
  func encoding(of track: SendingTrack) -> RTPEncoding {
    var encoding = tracks.senders.encoding(of: track.transceiver, track.kind, rid: track.rid)
    let section = negotiation.sections.first { $0.transceiverID == track.transceiver }
    if encoding.scalabilityMode != nil, !hasTemporalLayers(section) {
      encoding.scalabilityMode = nil
    }
    func limit(to bitrate: UInt64?) {
      if let bitrate { encoding.maxBitrate = min(bitrate, encoding.maxBitrate ?? .max) }
    }
    guard let layer = section?.sentLayers.first(where: { $0.rid == track.rid }) else {
      limit(to: section?.sendBitrateLimit)
      return encoding
    }
    limit(to: layer.maxBitrate)
    if let most = layer.maxFramerate {
      encoding.maxFramerate = min(most, encoding.maxFramerate ?? most)
    }
    return encoding
  }

  /// Whether a section can send temporal layers: only with the library's VP8.
  private func hasTemporalLayers(_ section: NegotiatedSection?) -> Bool {
    let own = genesis.configuration.ownCodecs ?? []
    return section?.sentCodec?.name == CodecName.vp8.rawValue
      && !own.contains { $0.role == .encoder && $0.codec == CodecName.vp8.rawValue }
  }

  /// The limit of a transceiver's video in bits per second: from the application, the peer, and its
  /// share of the path if that is known to be too narrow; nil for no limit.
  func videoLimit(of transceiver: UInt32) -> UInt64? {
    guard let index = tracks.sendingIndex(of: transceiver), tracks.sending[index].kind == .video,
      let mid = tracks.sending[index].stream.mid
    else { return nil }
    let bundle = bundles.carrying(mid)
    let allowed = encoding(of: tracks.sending[index]).maxBitrate
    guard let limit = bundle.flow.pathLimit(at: now) else { return allowed }
    let count = tracks.sending.count { track in
      track.kind == .video && track.stream.mid.map { bundles.carrying($0) === bundle } ?? false
    }
    return min(limit / UInt64(max(1, count)), allowed ?? .max)
  }
}
