import JSEP
import Media
import Stats
import Wire

// Stats objects of sources and playouts.
extension StatsCollector {
  /// One object per attached source; a replaced source is another object that counts from 0.
  func mediaSourceStats() -> [StatsObject] {
    tracks.firstOfEachSender.compactMap { track in
      guard let id = mediaSourceID(of: track) else { return nil }
      var stats = builder("media-source", id)
      stats.set("trackIdentifier", trackIdentifier(track.transceiver))
      stats.set("kind", track.kind.rawValue)
      switch track.kind {
      case .audio: add(track.audio.counters, to: &stats)
      case .video: add(track.video.counters, of: track, to: &stats)
      }
      return stats.build()
    }
  }

  /// The id of a sender's source, if any.
  func mediaSourceID(of track: SendingTrack) -> String? {
    track.source == nil ? nil : names.id("S", "\(track.transceiver) \(track.attachment)")
  }

  private func trackIdentifier(_ transceiver: UInt32) -> String? {
    transceivers.first { $0.id == transceiver }?.trackID
  }

  private func add(_ counters: AudioCaptureCounters, to stats: inout StatsBuilder) {
    stats.set("audioLevel", counters.audioLevel)
    if isComplete { stats.set("peakAudioLevel", counters.peakAudioLevel) }
    stats.set("totalAudioEnergy", counters.totalAudioEnergy)
    stats.set("totalSamplesDuration", counters.totalSamplesDuration)
  }

  private func add(
    _ counters: VideoCaptureCounters, of track: SendingTrack, to stats: inout StatsBuilder
  ) {
    if counters.width > 0 {
      stats.set("width", counters.width)
      stats.set("height", counters.height)
    }
    stats.set("frames", counters.frames)
    guard let origin = track.video.origin else { return }
    stats.set(
      "framesPerSecond",
      counters.framesPerSecond(atMediaTime: RTPClock.ticks(from: origin, to: now)))
  }

  /// One object per audio track that is played.
  ///
  /// The playout outputs audio as it is produced: no device delays it, and missing audio is
  /// concealed earlier, so nothing is synthesized.
  func mediaPlayoutStats() -> [StatsObject] {
    tracks.receiving.compactMap { track in
      guard let counters = track.audio?.counters else { return nil }
      var stats = builder("media-playout", mediaPlayoutID(of: track))
      stats.set("kind", track.kind.rawValue)
      stats.set("synthesizedSamplesDuration", 0.0)
      stats.set("synthesizedSamplesEvents", 0)
      stats.set("totalSamplesDuration", counters.totalSamplesDuration)
      stats.set("totalPlayoutDelay", 0.0)
      stats.set("totalSamplesCount", counters.totalSamplesReceived)
      return stats.build()
    }
  }

  func mediaPlayoutID(of track: ReceivingTrack) -> String {
    names.id("Y", String(track.transceiver))
  }
}
