import Flow
import JSEP
import Media
import Transport
import Wire

// Which tracks are captured, and what their encoders may spend.
extension PeerStack {
  func setSource(
    _ source: MediaSource?, of id: UInt32, _ kind: MediaKind, isEnabled: Bool = true
  ) {
    if let index = tracks.sendingIndex(of: id) {
      drive(sending: index, .enabled(isEnabled))
      guard tracks.sending[index].source != source else { return }
      drive(sending: index, .source(source))
    } else if let source {
      tracks.add(source, of: id, kind)
      drive(sending: tracks.sending.count - 1, .enabled(isEnabled))
    }
    updateCaptures()
  }

  func stopCapture(of transceiver: UInt32) {
    if let index = tracks.sendingIndex(of: transceiver) { drive(sending: index, .stop) }
  }

  /// Starts, stops or replaces captures so that they fit what was agreed and what is wanted.
  func updateCaptures() {
    for index in tracks.sending.indices {
      guard let start = start(of: tracks.sending[index]) else {
        if tracks.sending[index].isRunning { drive(sending: index, .stop) }
        continue
      }
      // An encoder makes frames of one codec, so another one goes on in its place.
      if tracks.sending[index].isRunning, tracks.sending[index].codec != start.codec {
        drive(sending: index, .stop)
      }
      drive(sending: index, .encoding(start.encoding))
      let (preference, hint) = senders.adaptation(of: tracks.sending[index].transceiver)
      drive(sending: index, .adaptation(preference, hint))
      if tracks.sending[index].mid != start.mid { drive(sending: index, .start(start)) }
    }
    for bundle in bundles.all { shareBitrate(of: bundle) }
  }

  /// What a track is captured for; nil when nothing of it is to be sent now.
  private func start(of track: SendingTrack) -> SendingTrack.Start? {
    guard !isClosed, track.source != nil,
      let section = negotiation.sections.first(where: { $0.transceiverID == track.transceiver }),
      section.direction.sends
    else { return nil }
    let bundle = bundles.carrying(section.mid)
    let encoding = encoding(of: track)
    guard bundle.transport.isSecured, encoding.active else { return nil }
    let transceiver = negotiation.transceivers.first { $0.id == track.transceiver }
    return SendingTrack.Start(
      mid: section.mid, codec: section.sentCodec?.name ?? "", ssrc: transceiver?.ssrc ?? 0,
      encoding: encoding,
      videoBitrate: bundle.videoBitrate ?? genesis.configuration.videoBitrateStart)
  }

  /// What a track is encoded with: what the application set, within what the peer takes.
  private func encoding(of track: SendingTrack) -> RTPEncoding {
    var encoding = senders.encoding(of: track.transceiver, track.kind)
    let section = negotiation.sections.first { $0.transceiverID == track.transceiver }
    if let limit = section?.sendBitrateLimit {
      encoding.maxBitrate = min(limit, encoding.maxBitrate ?? .max)
    }
    return encoding
  }

  /// What may be sent of a transceiver's video frames, in bits per second: what the application and
  /// the peer allow, and of what the path carries its share among those that are sent over the
  /// transport, where that is known to be too little; nil for no limit.
  func videoLimit(of transceiver: UInt32) -> UInt64? {
    guard let index = tracks.sendingIndex(of: transceiver), tracks.sending[index].kind == .video,
      let mid = tracks.sending[index].mid
    else { return nil }
    let bundle = bundles.carrying(mid)
    let allowed = encoding(of: tracks.sending[index]).maxBitrate
    guard let limit = bundle.flow.pathLimit(at: now) else { return allowed }
    let count = tracks.sending.count { track in
      track.kind == .video && track.mid.map { bundles.carrying($0) === bundle } ?? false
    }
    return min(limit / UInt64(max(1, count)), allowed ?? .max)
  }

  /// Shares the transport's target between the video encoders that run.
  func shareBitrate(of bundle: Bundle) {
    guard let total = bundle.videoBitrate else { return }
    let running = tracks.sending.indices.filter { index in
      let track = tracks.sending[index]
      return track.kind == .video && track.mid.map { bundles.carrying($0) === bundle } ?? false
    }
    guard !running.isEmpty else { return }
    let limits = running.map { encoding(of: tracks.sending[$0]).maxBitrate }
    for (index, share) in zip(running, SenderTable.shares(of: total, limits: limits)) {
      drive(sending: index, .bitrate(share))
    }
  }
}
