import Flow
import JSEP
import Media
import RTP
import Stats
import Wire

// The stats objects of codecs, sources and RTP streams.
extension PeerStack {
  func codecStats() -> [StatsObject] {
    var objects: [StatsObject] = []
    var known: [UInt8] = []
    for section in negotiation.sections {
      for codec in section.codecs where !known.contains(codec.payloadType) {
        known.append(codec.payloadType)
        var stats = builder("codec", codecID(codec.payloadType))
        stats.set("payloadType", codec.payloadType)
        stats.set("transportId", transportID)
        stats.set("mimeType", "\(section.kind.rawValue)/\(codec.displayName)")
        stats.set("clockRate", codec.clockRate)
        stats.set("channels", codec.channels)
        if !codec.parameters.isEmpty { stats.set("sdpFmtpLine", codec.parameters) }
        objects.append(stats.build())
      }
    }
    return objects
  }

  func mediaSourceStats() -> [StatsObject] {
    tracks.sending.filter(\.isRunning).map { track in
      var stats = builder("media-source", sourceID(track.transceiver))
      stats.set("trackIdentifier", trackIdentifier(track.transceiver))
      stats.set("kind", track.kind.rawValue)
      if track.kind == .video, track.totals.width > 0 {
        stats.set("width", track.totals.width)
        stats.set("height", track.totals.height)
        stats.set("frames", track.totals.framesEncoded)
      }
      return stats.build()
    }
  }

  private func trackIdentifier(_ transceiver: UInt32) -> String? {
    negotiation.transceivers.first { $0.id == transceiver }?.trackID
  }

  // MARK: Sent streams

  func outboundStats(_ stream: OutboundStreamCounters) -> [StatsObject] {
    let track = tracks.sending.first { $0.ssrc == stream.ssrc }
    var stats = rtpStats("outbound-rtp", "O", stream.ssrc, stream.kind, stream.payloadType)
    stats.set("mid", stream.mid)
    if let track, track.isRunning { stats.set("mediaSourceId", sourceID(track.transceiver)) }
    if stream.remote != nil { stats.set("remoteId", streamID("A", stream.ssrc)) }
    stats.set("packetsSent", stream.packetsSent)
    stats.set("bytesSent", stream.bytesSent)
    stats.set("headerBytesSent", stream.headerBytesSent)
    stats.set("retransmittedPacketsSent", stream.retransmittedPacketsSent)
    stats.set("retransmittedBytesSent", stream.retransmittedBytesSent)
    stats.set("rtxSsrc", stream.rtxSSRC)
    stats.set("totalPacketSendDelay", stream.totalPacketSendDelay)
    stats.set("nackCount", stream.nackCount)
    stats.set("active", stream.isActive)
    if stream.kind == .video {
      let totals = track?.totals ?? SendingTotals()
      stats.set("framesEncoded", totals.framesEncoded)
      stats.set("keyFramesEncoded", totals.keyFramesEncoded)
      stats.set("qpSum", totals.quantiserSum)
      stats.set("framesSent", stream.framesSent)
      stats.set("hugeFramesSent", stream.hugeFramesSent)
      stats.set("pliCount", stream.pliCount)
      stats.set("firCount", stream.firCount)
      if totals.width > 0 {
        stats.set("frameWidth", totals.width)
        stats.set("frameHeight", totals.height)
      }
      if let bitrate = tracks.videoBitrate { stats.set("targetBitrate", Double(bitrate)) }
    }
    guard let remote = stream.remote else { return [stats.build()] }
    return [stats.build(), remoteInbound(stream, remote)]
  }

  private func remoteInbound(_ stream: OutboundStreamCounters, _ remote: RemoteInboundCounters)
    -> StatsObject
  {
    var stats = rtpStats("remote-inbound-rtp", "A", stream.ssrc, stream.kind, stream.payloadType)
    stats.set("localId", streamID("O", stream.ssrc))
    stats.set("packetsReceived", remote.packetsReceived)
    stats.set("packetsLost", remote.packetsLost)
    stats.set("jitter", remote.jitter)
    stats.set("fractionLost", remote.fractionLost)
    stats.set("roundTripTime", remote.roundTripTime)
    stats.set("totalRoundTripTime", remote.totalRoundTripTime)
    stats.set("roundTripTimeMeasurements", remote.roundTripTimeMeasurements)
    return stats.build(at: milliseconds(remote.reportedAt))
  }

  // MARK: Received streams

  func inboundStats(_ stream: InboundStreamCounters) -> [StatsObject] {
    var stats = rtpStats("inbound-rtp", "I", stream.ssrc, stream.kind, stream.payloadType)
    let section = negotiation.sections.first { $0.mid == stream.mid }
    let transceiver = negotiation.transceivers.first { $0.id == section?.transceiverID }
    stats.set("trackIdentifier", transceiver?.remoteTrackID ?? transceiver?.trackID)
    stats.set("mid", stream.mid)
    if stream.remote != nil { stats.set("remoteId", streamID("B", stream.ssrc)) }
    stats.set("packetsReceived", stream.packetsReceived)
    stats.set("packetsLost", stream.packetsLost)
    stats.set("jitter", stream.jitter)
    stats.set("bytesReceived", stream.bytesReceived)
    stats.set("headerBytesReceived", stream.headerBytesReceived)
    stats.set("retransmittedPacketsReceived", stream.retransmittedPacketsReceived)
    stats.set("retransmittedBytesReceived", stream.retransmittedBytesReceived)
    stats.set("rtxSsrc", stream.rtxSSRC)
    stats.set("lastPacketReceivedTimestamp", stream.lastPacketReceived.map(milliseconds))
    stats.set("nackCount", stream.nackCount)
    if let playout = tracks.receiving.first(where: { $0.mid == stream.mid }) {
      switch stream.kind {
      case .audio: addAudioPlayout(playout.audio, discarded: stream.packetsDiscarded, to: &stats)
      case .video: addVideoPlayout(playout.video, stream, to: &stats)
      }
    }
    guard let remote = stream.remote else { return [stats.build()] }
    return [stats.build(), remoteOutbound(stream, remote)]
  }

  private func remoteOutbound(_ stream: InboundStreamCounters, _ remote: RemoteOutboundCounters)
    -> StatsObject
  {
    var stats = rtpStats("remote-outbound-rtp", "B", stream.ssrc, stream.kind, stream.payloadType)
    stats.set("localId", streamID("I", stream.ssrc))
    stats.set("packetsSent", remote.packetsSent)
    stats.set("bytesSent", remote.bytesSent)
    stats.set("remoteTimestamp", Double(remote.remoteUnixNanoseconds / 1000) / 1000)
    stats.set("reportsSent", remote.reportsSent)
    stats.set("roundTripTime", remote.roundTripTime)
    if remote.roundTripTimeMeasurements > 0 {
      stats.set("totalRoundTripTime", remote.totalRoundTripTime)
      stats.set("roundTripTimeMeasurements", remote.roundTripTimeMeasurements)
    }
    return stats.build(at: milliseconds(remote.reportedAt))
  }

  private func rtpStats(
    _ type: String, _ prefix: String, _ ssrc: UInt32, _ kind: MediaKind, _ payloadType: UInt8?
  ) -> StatsBuilder {
    var stats = builder(type, streamID(prefix, ssrc))
    stats.set("ssrc", ssrc)
    stats.set("kind", kind.rawValue)
    stats.set("transportId", transportID)
    stats.set("codecId", payloadType.map(codecID))
    return stats
  }
}

extension NegotiatedCodec {
  /// The encoding name as mime types spell it.
  fileprivate var displayName: String { name == "vp8" ? "VP8" : name }
}
