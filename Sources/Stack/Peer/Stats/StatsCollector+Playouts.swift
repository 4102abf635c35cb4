import Flow
import Media
import RTP
import Stats
import Wire

// A playout's part of inbound-rtp.
extension StatsBuilder {
  /// Adds the counters of an audio playout.
  /// - Parameters:
  ///   - discarded: packets that did not reach the playout.
  ///   - decoding: the decoder's processing time in seconds.
  ///   - decodes: whether the audio has a level.
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
    // From a sample's packet to the sample: the wait and the decoding.
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

  /// Adds the counters of a video playout, and those of its stream.
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
    // If nothing is decoded there is nothing to count.
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
    // From a frame's first packet to its display: the wait and the decoding.
    set("totalProcessingDelay", decoding.map { $0 + counters.jitterBufferDelay.seconds })
    set("qpSum", counters.qpSum)
    addRhythm(counters)
  }

  /// Adds how regularly frames were shown.
  mutating func addRhythm(_ counters: VideoPlayoutCounters) {
    set("totalInterFrameDelay", counters.totalInterFrameDelay)
    set("totalSquaredInterFrameDelay", counters.totalSquaredInterFrameDelay)
    set("pauseCount", counters.pauseCount)
    set("totalPausesDuration", counters.totalPausesDuration)
    set("freezeCount", counters.freezeCount)
    set("totalFreezesDuration", counters.totalFreezesDuration)
  }

  /// Adds how long frames waited.
  mutating func addJitterBuffer(_ counters: VideoPlayoutCounters) {
    set("jitterBufferDelay", counters.jitterBufferDelay)
    set("jitterBufferTargetDelay", counters.jitterBufferTargetDelay)
    set("jitterBufferMinimumDelay", counters.jitterBufferMinimumDelay)
    set("jitterBufferEmittedCount", counters.jitterBufferEmittedCount)
  }
}
