import Flow
import Media
import RTP
import Stats
import Wire

// What the playouts add to inbound-rtp.
extension StatsBuilder {
  /// Adds what a playout of audio counted.
  ///
  /// - Parameters:
  ///   - discarded: packets that did not get as far as the playout.
  ///   - decoding: how long its decoder worked, in seconds.
  ///   - decodes: whether what was played has a level.
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
    // From the packet of a sample to the sample: the wait, and the decoder's work.
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

  /// Adds what a playout of video frames counted, and what its stream did for it.
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
    // Where nothing is decoded there is nothing to count.
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
    // From the first packet of a frame to its video frame: the wait, and the decoder's work.
    set("totalProcessingDelay", decoding.map { $0 + counters.jitterBufferDelay.seconds })
    set("qpSum", counters.qpSum)
    addRhythm(counters)
  }

  /// Adds how regularly video frames were shown.
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
