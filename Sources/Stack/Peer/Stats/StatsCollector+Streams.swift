import Flow
import JSEP
import Media
import RTP
import Stats
import Wire

// Stats objects for RTP streams.
extension StatsCollector {
  // MARK: Sent streams

  func outboundStats(_ stream: OutboundStreamCounters) -> [StatsObject] {
    let track = tracks.sending.first { $0.stream.ssrc == stream.ssrc }
    let codec = codecID(stream.payloadType, mid: stream.mid, isInbound: false)
    var stats = rtpStats(
      "outbound-rtp", outboundID(stream), stream.ssrc, stream.mid, stream.kind, codec)
    stats.set("mid", stream.mid)
    if let track, stream.isActive { stats.set("mediaSourceId", mediaSourceID(of: track)) }
    if stream.remote != nil { stats.set("remoteId", remoteInboundID(stream)) }
    stats.set("encodingIndex", encodingIndex(of: stream))
    stats.set("rid", stream.rid)
    // Sent packets have no ECN mark (RFC 3168 section 5: not ECN-capable).
    stats.add(
      stream, sendDelay: stream.totalPacketSendDelay, withECT1: isComplete ? 0 : nil)
    stats.set("active", stream.isActive && (stream.rid == nil || track?.isWanted == true))
    switch stream.kind {
    case .audio:
      if track?.audio.isRunning == true {
        // G.711 has only this bit rate.
        stats.set("targetBitrate", stream.codec.isG711 ? 64_000 : Double(audioBitrate))
      }
    case .video: addEncoder(track, stream, to: &stats)
    }
    guard let remote = stream.remote else { return [stats.build()] }
    return [stats.build(), remoteInbound(stream, remote, codec)]
  }

  /// Returns a stream's index among the streams in its section.
  private func encodingIndex(of stream: OutboundStreamCounters) -> Int {
    guard let rid = stream.rid, let section = sections.first(where: { $0.mid == stream.mid }) else {
      return 0
    }
    return section.sentLayers.firstIndex { $0.rid == rid } ?? 0
  }

  /// Adds the video encoder's members of outbound-rtp.
  private func addEncoder(
    _ track: SendingTrack?, _ stream: OutboundStreamCounters, to stats: inout StatsBuilder
  ) {
    let totals = track?.totals ?? SendingTotals()
    // Frames that are passed on were encoded elsewhere.
    if !stream.codec.isPassedThrough || totals.framesEncoded > 0 {
      stats.set("framesEncoded", totals.framesEncoded)
      stats.set("keyFramesEncoded", totals.keyFramesEncoded)
      stats.set("qpSum", totals.quantiserSum)
    }
    stats.set("framesSent", stream.framesSent)
    stats.set("hugeFramesSent", stream.hugeFramesSent)
    stats.set("totalEncodedBytesTarget", UInt64(max(0, totals.targetBytes)))
    // The encode time is measured for all simulcast layers together, so no single layer has it.
    if let track, stream.rid == nil {
      stats.set("totalEncodeTime", seconds(of: track.transceiver, isInbound: false))
    }
    stats.set("pliCount", stream.pliCount)
    stats.set("firCount", stream.firCount)
    let reason =
      track?.stream.heldMID == nil ? totals.limitation.reason : QualityLimitation.Reason.bandwidth
    stats.set("qualityLimitationReason", reason.rawValue)
    let durations = totals.limitation.durations(at: now)
    stats.set(
      "qualityLimitationDurations",
      durations.isEmpty
        ? nil : durations.map { StatsMember($0.reason.rawValue, .number($0.length.seconds)) })
    stats.set("qualityLimitationResolutionChanges", totals.resolutionChanges)
    guard totals.width > 0 else { return }
    stats.set("frameWidth", totals.width)
    stats.set("frameHeight", totals.height)
    stats.set("framesPerSecond", totals.rate.count(at: now.nanoseconds))
    stats.set("encoderImplementation", stream.codec.codec?.decoderTitle ?? "libvpx")
    stats.set("powerEfficientEncoder", false)
    stats.set("scalabilityMode", track?.stream.encoding.scalabilityMode ?? "L1T1")
    if let track, track.isRunning { stats.set("targetBitrate", Double(track.video.bitrate)) }
  }

  private func remoteInboundID(_ stream: OutboundStreamCounters) -> String {
    names.id("A", String(stream.ssrc))
  }

  private func remoteInbound(
    _ stream: OutboundStreamCounters, _ remote: RemoteInboundCounters, _ codec: String?
  ) -> StatsObject {
    var stats = rtpStats(
      "remote-inbound-rtp", remoteInboundID(stream), stream.ssrc, stream.mid, stream.kind, codec)
    stats.set("localId", outboundID(stream))
    stats.add(remote)
    return stats.build(at: milliseconds(remote.reportedAt))
  }

  // MARK: Received streams

  func inboundStats(_ stream: InboundStreamCounters) -> [StatsObject] {
    let codec = codecID(stream.payloadType, mid: stream.mid, isInbound: true)
    var stats = rtpStats(
      "inbound-rtp", inboundID(stream), stream.ssrc, stream.mid, stream.kind, codec)
    let section = sections.first { $0.mid == stream.mid }
    let transceiver = transceivers.first { $0.id == section?.transceiverID }
    stats.set("trackIdentifier", transceiver?.remoteTrackID ?? transceiver?.trackID)
    stats.set("mid", stream.mid)
    if stream.remote != nil { stats.set("remoteId", remoteOutboundID(stream)) }
    stats.add(
      stream, lastPacket: stream.lastPacketReceived.map { milliseconds($0) },
      isComplete: isComplete)
    if let playout = tracks.receiving.first(where: { $0.mid == stream.mid }),
      tracks.layers.shows(stream.ssrc, of: stream.mid)
    {
      stats.set("estimatedPlayoutTimestamp", playoutTimestamp(of: playout, stream))
      let decoding = seconds(of: playout.transceiver, isInbound: true)
      switch stream.kind {
      case .audio:
        stats.set("playoutId", mediaPlayoutID(of: playout))
        stats.add(playout.audio, discarded: stream.packetsDiscarded, decoding: decoding)
        if isComplete { stats.set("peakAudioLevel", playout.audio?.counters.peakAudioLevel) }
      case .video: stats.add(playout.video, stream, decoding: decoding, at: now)
      }
    }
    guard let remote = stream.remote else { return [stats.build()] }
    return [stats.build(), remoteOutbound(stream, remote, codec)]
  }

  /// Returns the sender's NTP time for the media being played now, in milliseconds since 1900;
  /// returns nil until media is played and a sender report maps RTP times to NTP times.
  private func playoutTimestamp(of track: ReceivingTrack, _ stream: InboundStreamCounters)
    -> Double?
  {
    guard let remote = stream.remote, let last = track.lastPlayed else { return nil }
    let usual: Int64 = stream.kind == .audio ? 48_000 : 90_000
    let clockRate = stream.codec?.codec.map { max(1, Int64($0.clockRate)) } ?? usual
    let ticks = Int64(Int32(bitPattern: last.rtpTime &- remote.remoteRTPTime))
    let nanoseconds =
      remote.remoteUnixNanoseconds &+ ticks * 1_000_000_000 / clockRate
      &+ (now - last.at).nanoseconds
    return Double(nanoseconds / 1_000_000 &+ 2_208_988_800_000)
  }

  private func remoteOutboundID(_ stream: InboundStreamCounters) -> String {
    names.id("B", "\(stream.ssrc) \(stream.beganAt.nanoseconds)")
  }

  private func remoteOutbound(
    _ stream: InboundStreamCounters, _ remote: RemoteOutboundCounters, _ codec: String?
  ) -> StatsObject {
    var stats = rtpStats(
      "remote-outbound-rtp", remoteOutboundID(stream), stream.ssrc, stream.mid, stream.kind, codec)
    stats.set("localId", inboundID(stream))
    stats.add(remote)
    return stats.build(at: milliseconds(remote.reportedAt))
  }

  private func rtpStats(
    _ type: String, _ id: String, _ ssrc: UInt32, _ mid: String, _ kind: MediaKind,
    _ codec: String?
  ) -> StatsBuilder {
    var stats = builder(type, id)
    stats.set("ssrc", ssrc)
    stats.set("kind", kind.rawValue)
    stats.set("transportId", transportID(bundles.carrying(mid).number))
    stats.set("codecId", codec)
    return stats
  }

  /// Returns a codec's processing time, if it was measured.
  private func seconds(of transceiver: UInt32, isInbound: Bool) -> Double? {
    codecTimes.first { $0.transceiver == transceiver && $0.isInbound == isInbound }
      .map { Double($0.nanoseconds) / 1e9 }
  }
}

// MARK: - Playouts

// Adds a playout's members to inbound-rtp.
extension StatsBuilder {
  /// Adds an audio playout's counters.
  /// - Parameters:
  ///   - discarded: the number of packets that did not reach the playout.
  ///   - decoding: the decoder's processing time in seconds.
  ///   - decodes: whether the audio is decoded, in which case its level is known.
  mutating func add(
    _ playout: AudioPlayout?, discarded: UInt64, decoding: Double?, decodes: Bool = true
  ) {
    guard let counters = playout?.counters else { return }
    set("packetsDiscarded", discarded + counters.packetsDiscarded)
    set("fecPacketsReceived", counters.fecPacketsReceived)
    set("fecPacketsDiscarded", 0)
    set("jitterBufferDelay", counters.jitterBufferDelay)
    set("jitterBufferTargetDelay", counters.jitterBufferTargetDelay)
    set("jitterBufferMinimumDelay", counters.jitterBufferMinimumDelay)
    set("jitterBufferEmittedCount", counters.jitterBufferEmittedCount)
    // From a packet's arrival to its decoded samples: the time in the jitter buffer and in the
    // decoder.
    set("totalProcessingDelay", decoding.map { $0 + counters.jitterBufferDelay })
    set("totalSamplesReceived", counters.totalSamplesReceived)
    set("concealedSamples", counters.concealedSamples)
    set("silentConcealedSamples", counters.silentConcealedSamples)
    set("concealmentEvents", counters.concealmentEvents)
    set("insertedSamplesForDeceleration", counters.insertedSamplesForDeceleration)
    set("removedSamplesForAcceleration", counters.removedSamplesForAcceleration)
    if decodes {
      set("audioLevel", counters.audioLevel)
      set("totalAudioEnergy", counters.totalAudioEnergy)
    }
    set("totalSamplesDuration", counters.totalSamplesDuration)
  }

  /// Adds a video playout's counters and its stream's counters.
  mutating func add(
    _ playout: VideoPlayout?, _ stream: InboundStreamCounters, decoding: Double?, at now: Instant
  ) {
    set("packetsDiscarded", stream.packetsDiscarded)
    set("framesReceived", stream.framesReceived)
    set("pliCount", stream.pliCount)
    set("firCount", stream.firCount)
    set("framesAssembledFromMultiplePackets", stream.framesAssembledFromMultiplePackets)
    set("totalAssemblyTime", stream.totalAssemblyTime)
    guard let counters = playout?.counters else { return }
    defer { addJitterBuffer(counters) }
    // Frames that are not decoded have no decoder counters.
    if let codec = stream.codec, playout?.decodes(codec) == false {
      set("framesDropped", stream.framesDropped)
      return
    }
    set("framesDecoded", counters.framesDecoded)
    set("keyFramesDecoded", counters.keyFramesDecoded)
    set("framesRendered", counters.framesDecoded)
    set("framesDropped", stream.framesDropped + counters.framesDropped)
    if counters.frameWidth > 0 {
      set("frameWidth", counters.frameWidth)
      set("frameHeight", counters.frameHeight)
      set("framesPerSecond", counters.framesPerSecond(at: now))
      set("decoderImplementation", stream.codec?.codec?.decoderTitle ?? "libvpx")
      set("powerEfficientDecoder", false)
    }
    set("totalDecodeTime", decoding)
    // From a frame's first packet to its display: the time in the jitter buffer and in the decoder.
    set("totalProcessingDelay", decoding.map { $0 + counters.jitterBufferDelay.seconds })
    set("qpSum", counters.qpSum)
    addRhythm(counters)
  }

  /// Adds the counters for the intervals between shown frames, freezes and pauses.
  mutating func addRhythm(_ counters: VideoPlayoutCounters) {
    set("totalInterFrameDelay", counters.totalInterFrameDelay)
    set("totalSquaredInterFrameDelay", counters.totalSquaredInterFrameDelay)
    set("pauseCount", counters.pauseCount)
    set("totalPausesDuration", counters.totalPausesDuration)
    set("freezeCount", counters.freezeCount)
    set("totalFreezesDuration", counters.totalFreezesDuration)
  }

  /// Adds the counters for the time that frames spend in the jitter buffer.
  mutating func addJitterBuffer(_ counters: VideoPlayoutCounters) {
    set("jitterBufferDelay", counters.jitterBufferDelay)
    set("jitterBufferTargetDelay", counters.jitterBufferTargetDelay)
    set("jitterBufferMinimumDelay", counters.jitterBufferMinimumDelay)
    set("jitterBufferEmittedCount", counters.jitterBufferEmittedCount)
  }
}
