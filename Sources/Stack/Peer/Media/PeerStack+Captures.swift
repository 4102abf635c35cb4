import Flow
import JSEP
import Media
import RTP
import Wire

// Starts and stops the senders' captures.
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

  /// Adds a track for each encoding of a sender without tracks.
  func addTracks(_ source: MediaSource, of id: UInt32, _ kind: MediaKind, isEnabled: Bool) {
    for encoding in tracks.senders.encodings(of: id, kind) {
      tracks.add(source, of: id, kind, rid: encoding.rid)
      drive(sending: tracks.sending.count - 1, .enabled(isEnabled))
    }
  }

  func stopCapture(of transceiver: UInt32) {
    for index in tracks.sendingIndices(of: transceiver) { drive(sending: index, .stop) }
  }

  /// Starts, stops or replaces captures according to the negotiation and the settings.
  func updateCaptures() {
    for index in tracks.sending.indices {
      guard let start = start(of: tracks.sending[index]) else {
        if tracks.sending[index].isWanted { drive(sending: index, .stop) }
        continue
      }
      // An encoder cannot change its codec, layer or unit limit, so a new encoder replaces it.
      if tracks.sending[index].isRunning,
        tracks.sending[index].stream.codec != start.codec
          || tracks.sending[index].stream.rid != start.rid
          || tracks.sending[index].stream.unitLimit != start.unitLimit
      {
        drive(sending: index, .stop)
      }
      drive(sending: index, .encoding(start.encoding))
      let (preference, hint) = tracks.senders.adaptation(of: tracks.sending[index].transceiver)
      // Simulcast layers are never reduced in size; if bandwidth is short, the highest is dropped
      // first.
      drive(sending: index, .adaptation(start.rid == nil ? preference : nil, hint))
      guard tracks.sending[index].stream.heldMID == nil else { continue }
      if tracks.sending[index].stream.mid != start.mid { drive(sending: index, .start(start)) }
    }
    for bundle in bundles.all { shareBitrate(of: bundle) }
    updateMarks()
  }

  /// The size limit in bytes for H.264 units if each must fit in a packet (RFC 6184 section 6.2).
  ///
  /// It leaves room for all header extensions, and for an encoder that slightly exceeds its limit.
  private static let unitLimit = 1_000

  /// Returns the parameters for capturing a track, or nil if the track should not be sent now.
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
    // Video that arrives encoded is a single stream, sent as the first layer or without layers.
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
    // A layer continues the media time of layers that started earlier. If there are none, media
    // time starts now for all layers that start together.
    if let origin = running.min(), origin < now { start.origin = origin }
    return start
  }

  /// Returns a track's encoding: the application's settings within the remote peer's limits.
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

  /// Returns whether a section can send temporal layers; only the library's VP8 encoder can.
  private func hasTemporalLayers(_ section: NegotiatedSection?) -> Bool {
    let own = genesis.configuration.ownCodecs ?? []
    return section?.sentCodec?.name == CodecName.vp8.rawValue
      && !own.contains { $0.role == .encoder && $0.codec == CodecName.vp8.rawValue }
  }

  /// Returns the limit for a transceiver's video in bit/s; nil for no limit.
  ///
  /// It is the lowest of the application's limit, the remote peer's limit, and the transceiver's
  /// share of a path that is known to be too narrow.
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

// MARK: - Shares

// Divides a transport's bit rate among its video encoders.
extension PeerStack {
  /// Divides the transport's target among its video senders, and each share among the sender's
  /// layers.
  func shareBitrate(of bundle: Bundle) {
    guard let total = bundle.videoBitrate else { return }
    let senders = videoSenders(of: bundle)
    guard !senders.isEmpty else { return }
    let shares = SenderTable.shares(of: total, limits: senders.map { limit(of: $0) })
    for (sender, share) in zip(senders, shares) {
      if tracks.sending[sender[0]].rid == nil {
        drive(sending: sender[0], .bitrate(share))
      } else {
        divide(share, among: sender)
      }
    }
  }

  /// Returns the tracks of each video sender on a transport: a single one, or its simulcast layers
  /// from the lowest to the highest, including paused ones.
  private func videoSenders(of bundle: Bundle) -> [[Int]] {
    var senders: [[Int]] = []
    for index in tracks.sending.indices where tracks.sending[index].kind == .video {
      let track = tracks.sending[index]
      guard let mid = track.stream.mid ?? track.stream.heldMID, bundles.carrying(mid) === bundle
      else { continue }
      if track.rid != nil,
        let place = senders.firstIndex(where: {
          tracks.sending[$0[0]].transceiver == track.transceiver
        })
      {
        senders[place].append(index)
      } else {
        senders.append([index])
      }
    }
    return senders.map { sender in sender.count < 2 ? sender : sender.sorted(by: isLower) }
  }

  /// Returns whether a layer is lower than another, that is, smaller or with a lower limit.
  private func isLower(_ left: Int, _ right: Int) -> Bool {
    let (low, high) = (encoding(of: tracks.sending[left]), encoding(of: tracks.sending[right]))
    let (small, large) = (low.scaleResolutionDownBy ?? 1, high.scaleResolutionDownBy ?? 1)
    if small != large { return small > large }
    return (low.maxBitrate ?? .max, left) < (high.maxBitrate ?? .max, right)
  }

  /// Returns a sender's limit in bit/s, or nil if there is none.
  private func limit(of sender: [Int]) -> UInt64? {
    let track = tracks.sending[sender[0]]
    guard track.rid != nil else { return encoding(of: track).maxBitrate }
    let sum = layers(of: sender).reduce(UInt64(0)) { sum, layer in
      let (sum, isTooMuch) = sum.addingReportingOverflow(layer.target)
      return isTooMuch ? .max : sum
    }
    let section = negotiation.sections.first { $0.transceiverID == track.transceiver }
    return min(sum, section?.sendBitrateLimit ?? .max)
  }

  private func layers(of sender: [Int]) -> [LayerAllocation.Layer] {
    let frames = sender.map { tracks.sending[$0].video.counters }.max { $0.width < $1.width }
    var size = (width: frames?.width ?? 0, height: frames?.height ?? 0)
    if size.width == 0 { size = LayerAllocation.usualSize }
    return sender.map { index in
      let encoding = encoding(of: tracks.sending[index])
      return LayerAllocation.Layer(
        target: encoding.maxBitrate
          ?? LayerAllocation.target(
            width: size.width, height: size.height,
            dividedBy: max(1, encoding.scaleResolutionDownBy ?? 1)),
        isSent: tracks.sending[index].isRunning)
    }
  }

  /// Divides a sender's share among its layers, and pauses layers that do not fit.
  private func divide(_ share: UInt64, among sender: [Int]) {
    let shares = LayerAllocation.shares(of: share, layers(of: sender))
    for (index, share) in zip(sender, shares) {
      guard share > 0 else {
        if tracks.sending[index].isRunning { drive(sending: index, .hold) }
        continue
      }
      if !tracks.sending[index].isRunning, let start = start(of: tracks.sending[index]) {
        drive(sending: index, .start(start))
      }
      drive(sending: index, .bitrate(share))
    }
  }
}

// MARK: - LayerAllocation

/// Divides a sender's bit rate among its simulcast layers from the lowest to the highest; layers
/// that do not fit get nothing.
struct LayerAllocation {
  /// A layer that should be sent.
  struct Layer {
    /// The highest useful bit rate in bit/s.
    var target: UInt64
    /// Whether the layer is being sent.
    ///
    /// To prevent flapping, a paused layer resumes only when slightly more than its minimum is
    /// available.
    var isSent: Bool

    /// The lowest bit rate at which the layer is better than the layer below it.
    var least: UInt64 { target / 4 }
    /// The rate that the layer keeps when a higher layer is added.
    fileprivate var modest: UInt64 { target / 2 }
    /// The rate that must be available for the layer to be sent.
    fileprivate var wanted: UInt64 { isSent ? least : least + least / 10 }
  }

  /// Returns each layer's bit rate; 0 pauses the layer.
  /// - Parameter layers: the layers from the lowest, which is always sent, to the highest.
  static func shares(of total: UInt64, _ layers: [Layer]) -> [UInt64] {
    var sent = 0
    var kept: UInt64 = 0
    for layer in layers {
      guard sent == 0 || kept + layer.wanted <= total else { break }
      sent += 1
      kept += layer.modest
    }
    var shares = [UInt64](repeating: 0, count: layers.count)
    var rest = total
    for index in 0..<sent {
      shares[index] = max(1, min(layers[index].least, rest))
      rest -= min(rest, shares[index])
    }
    for index in 0..<sent {
      let more = min(rest, layers[index].target - min(layers[index].target, shares[index]))
      shares[index] += more
      rest -= more
    }
    return shares
  }

  /// Returns the useful bit rate for a frame size in bit/s: about 200 kbit/s for 320 by 180, 670
  /// for 640 by 360, and 2500 for 1280 by 720.
  static func target(width: Int, height: Int, dividedBy factor: Double) -> UInt64 {
    let pixels = Double(max(width, 0)) * Double(max(height, 0)) / (factor * factor)
    return 45_000 + UInt64(min(pixels, 1e9) * 2.7)
  }

  /// The assumed frame size before the first frame.
  static let usualSize = (width: 1280, height: 720)
}
