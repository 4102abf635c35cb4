import Flow
import Media
import RTP
import Stats
import Wire

// What the playouts add to inbound-rtp.
extension StatsCollector {
  func addAudioPlayout(
    _ playout: AudioPlayout?, discarded: UInt64, decoding: Double?, to stats: inout StatsBuilder
  ) {
    guard let counters = playout?.counters else { return }
    stats.set("packetsDiscarded", discarded + counters.packetsDiscarded)
    stats.set("fecPacketsReceived", counters.fecPacketsReceived)
    stats.set("fecPacketsDiscarded", 0)
    stats.set("jitterBufferDelay", counters.jitterBufferDelay)
    stats.set("jitterBufferTargetDelay", counters.jitterBufferTargetDelay)
    stats.set("jitterBufferMinimumDelay", counters.jitterBufferMinimumDelay)
    stats.set("jitterBufferEmittedCount", counters.jitterBufferEmittedCount)
    // From the packet of a sample to the sample: the wait, and the decoder's work.
    stats.set("totalProcessingDelay", decoding.map { $0 + counters.jitterBufferDelay })
    stats.set("totalSamplesReceived", counters.totalSamplesReceived)
    stats.set("concealedSamples", counters.concealedSamples)
    stats.set("silentConcealedSamples", counters.silentConcealedSamples)
    stats.set("concealmentEvents", counters.concealmentEvents)
    stats.set("insertedSamplesForDeceleration", counters.insertedSamplesForDeceleration)
    stats.set("removedSamplesForAcceleration", counters.removedSamplesForAcceleration)
    stats.set("audioLevel", counters.audioLevel)
    stats.set("totalAudioEnergy", counters.totalAudioEnergy)
    stats.set("totalSamplesDuration", counters.totalSamplesDuration)
  }

  func addVideoPlayout(
    _ playout: VideoPlayout?, _ stream: InboundStreamCounters, decoding: Double?,
    to stats: inout StatsBuilder
  ) {
    stats.set("packetsDiscarded", stream.packetsDiscarded)
    stats.set("framesReceived", stream.framesReceived)
    stats.set("pliCount", stream.pliCount)
    stats.set("firCount", stream.firCount)
    stats.set("framesAssembledFromMultiplePackets", stream.framesAssembledFromMultiplePackets)
    stats.set("totalAssemblyTime", stream.totalAssemblyTime)
    guard let counters = playout?.counters else { return }
    defer { addJitterBuffer(counters, to: &stats) }
    // Where nothing is decoded there is nothing to count.
    guard stream.codec?.isPassedThrough != true else {
      stats.set("framesDropped", stream.framesDropped)
      return
    }
    stats.set("framesDecoded", counters.framesDecoded)
    stats.set("keyFramesDecoded", counters.keyFramesDecoded)
    stats.set("framesRendered", counters.framesDecoded)
    stats.set("framesDropped", stream.framesDropped + counters.framesDropped)
    if counters.frameWidth > 0 {
      stats.set("frameWidth", counters.frameWidth)
      stats.set("frameHeight", counters.frameHeight)
      stats.set("framesPerSecond", counters.framesPerSecond(at: now))
      stats.set("decoderImplementation", "libvpx")
      stats.set("powerEfficientDecoder", false)
    }
    stats.set("totalDecodeTime", decoding)
    // From the first packet of a frame to its picture: the wait, and the decoder's work.
    stats.set("totalProcessingDelay", decoding.map { $0 + counters.jitterBufferDelay.seconds })
    stats.set("qpSum", counters.qpSum)
    stats.set("totalInterFrameDelay", counters.totalInterFrameDelay)
    stats.set("totalSquaredInterFrameDelay", counters.totalSquaredInterFrameDelay)
    stats.set("pauseCount", counters.pauseCount)
    stats.set("totalPausesDuration", counters.totalPausesDuration)
    stats.set("freezeCount", counters.freezeCount)
    stats.set("totalFreezesDuration", counters.totalFreezesDuration)
  }

  private func addJitterBuffer(_ counters: VideoPlayoutCounters, to stats: inout StatsBuilder) {
    stats.set("jitterBufferDelay", counters.jitterBufferDelay)
    stats.set("jitterBufferTargetDelay", counters.jitterBufferTargetDelay)
    stats.set("jitterBufferMinimumDelay", counters.jitterBufferMinimumDelay)
    stats.set("jitterBufferEmittedCount", counters.jitterBufferEmittedCount)
  }
}
