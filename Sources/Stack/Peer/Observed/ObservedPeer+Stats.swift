import Flow
import Media
import RTP
package import Stats
package import Wire

// An observed peer's statistics, with W3C's names and counted the way the endpoint counts them.
extension ObservedPeer {
  /// Returns the equivalent of getStats at an instant, with the members that can be observed.
  package func report(at now: Instant) -> StatsReport {
    var report = StatsReport()
    report.objects += codecStats(at: now)
    for track in outbound.all where track.track.isMedia {
      report.objects += outboundStats(track, at: now)
    }
    for track in inbound.all where track.track.isMedia {
      report.objects += inboundStats(track, at: now)
    }
    return report
  }

  private func builder(_ type: String, _ id: String, at now: Instant) -> StatsBuilder {
    StatsBuilder(id: id, type: type, timestamp: wallClock.milliseconds(at: now))
  }

  /// Returns the id of a stats object, unique among a take's peers.
  private func id(_ prefix: String, _ key: some CustomStringConvertible) -> String {
    "\(prefix)\(number)-\(key)"
  }

  // MARK: Codecs

  private func codecStats(at now: Instant) -> [StatsObject] {
    var objects: [StatsObject] = []
    for track in outbound.all.map(\.track) + inbound.all.map(\.track) {
      for codec in track.codecs where track.isMedia && !codec.name.rawValue.isEmpty {
        let id = codecID(codec, track)
        guard let kind = track.kind, !objects.contains(where: { $0.id == id }) else { continue }
        var stats = builder("codec", id, at: now)
        stats.set("payloadType", codec.payloadType)
        let known = codec.name.codec
        stats.set("mimeType", "\(kind.rawValue)/\(known?.spelling ?? codec.name.rawValue)")
        stats.set("clockRate", codec.clockRate)
        stats.set("channels", known?.channels)
        stats.set("transportId", transportID(track))
        stats.set("sdpFmtpLine", track.parameters[codec.payloadType])
        objects.append(stats.build())
      }
    }
    return objects
  }

  private func codecID(_ codec: FlowSection.Codec, _ track: ObservedTrack) -> String {
    id(track.isInbound ? "CI" : "CO", "\(codec.payloadType)-\(codec.name.rawValue)")
  }

  private func transportID(_ track: ObservedTrack) -> String? {
    track.transport.map { id("T", $0) }
  }

  private func stream(
    _ type: String, _ id: String, _ track: ObservedTrack, _ payloadType: UInt8?, at now: Instant
  ) -> StatsBuilder {
    var stats = builder(type, id, at: now)
    stats.set("ssrc", track.ssrc)
    stats.set("kind", track.kind?.rawValue)
    stats.set("transportId", transportID(track))
    if let codec = payloadType.flatMap({ track.codec(of: $0) }), !codec.name.rawValue.isEmpty {
      stats.set("codecId", codecID(codec, track))
    }
    return stats
  }

  // MARK: Streams

  private func outboundStats(_ sent: OutboundTrack, at now: Instant) -> [StatsObject] {
    guard let counters = sent.counters else { return [] }
    let (own, remoteID) = (id("O", sent.track.number), id("A", sent.track.number))
    var stats = stream("outbound-rtp", own, sent.track, counters.payloadType, at: now)
    if !sent.track.mid.isEmpty { stats.set("mid", sent.track.mid) }
    if counters.remote != nil { stats.set("remoteId", remoteID) }
    stats.add(counters, sendDelay: nil)
    if counters.kind == .video {
      stats.set("framesSent", counters.framesSent)
      // Frames that were encoded but not sent cannot be observed.
      if sent.isReadable {
        stats.set("framesEncoded", counters.framesSent)
        stats.set("keyFramesEncoded", counters.keyFramesSent)
      }
      stats.set("frameWidth", sent.frameSize?.width)
      stats.set("frameHeight", sent.frameSize?.height)
      stats.set("pliCount", counters.pliCount)
      stats.set("firCount", counters.firCount)
    }
    guard let remote = counters.remote else { return [stats.build()] }
    var report = stream("remote-inbound-rtp", remoteID, sent.track, counters.payloadType, at: now)
    report.set("localId", own)
    report.add(remote)
    return [stats.build(), report.build(at: wallClock.milliseconds(at: remote.reportedAt))]
  }

  private func inboundStats(_ received: InboundTrack, at now: Instant) -> [StatsObject] {
    let counted = countsMediaAlone ? received.mediaCounters : received.counters
    guard let counters = counted else { return [] }
    let (own, remoteID) = (id("I", received.track.number), id("B", received.track.number))
    var stats = stream("inbound-rtp", own, received.track, counters.payloadType, at: now)
    if !received.track.mid.isEmpty { stats.set("mid", received.track.mid) }
    if counters.remote != nil { stats.set("remoteId", remoteID) }
    stats.add(
      counters, lastPacket: counters.lastPacketReceived.map { wallClock.milliseconds(at: $0) })
    stats.set("fecSsrc", counters.fecSSRC)
    if counters.fecSSRC != nil || counters.kind == .video && received.track.hasCorrection {
      stats.set("fecPacketsReceived", counters.fecPacketsReceived)
      stats.set("fecBytesReceived", counters.fecBytesReceived)
    }
    if let playout = received.playout {
      add(playout, counters, received.decodes, at: now, to: &stats)
    }
    guard let remote = counters.remote else { return [stats.build()] }
    var report = stream(
      "remote-outbound-rtp", remoteID, received.track, counters.payloadType, at: now)
    report.set("localId", own)
    report.add(remote)
    return [stats.build(), report.build(at: wallClock.milliseconds(at: remote.reportedAt))]
  }

  private func add(
    _ playout: ReceivingTrack, _ counters: InboundStreamCounters, _ decodes: Bool,
    at now: Instant, to stats: inout StatsBuilder
  ) {
    // The peer's frame delays cannot be observed, so Retake models them and the values that depend
    // on them.
    stats.set("jitterBufferModel", "Retake")
    switch counters.kind {
    case .audio:
      stats.add(
        playout.audio, discarded: counters.packetsDiscarded, decoding: nil,
        decodes: decodes || counters.codec?.isG711 == true)
    case .video where decodes:
      stats.add(playout.video, counters, decoding: nil, at: now)
    case .video:
      stats.set("packetsDiscarded", counters.packetsDiscarded)
      stats.set("framesReceived", counters.framesReceived)
      stats.set("pliCount", counters.pliCount)
      stats.set("firCount", counters.firCount)
      stats.set(
        "framesAssembledFromMultiplePackets", counters.framesAssembledFromMultiplePackets)
      stats.set("totalAssemblyTime", counters.totalAssemblyTime)
      stats.set("framesDropped", counters.framesDropped)
      guard let video = playout.video else { return }
      if playout.statedSize.width > 0 {
        stats.set("frameWidth", playout.statedSize.width)
        stats.set("frameHeight", playout.statedSize.height)
        stats.set("framesPerSecond", video.counters.framesPerSecond(at: now))
      }
      stats.addRhythm(video.counters)
      stats.addJitterBuffer(video.counters)
    }
  }
}
