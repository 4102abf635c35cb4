import Flow
import JSEP
import Media
import RTP
import SCTP
import Stats
package import Wire

/// Implements W3C getStats: reads a peer's layers at an instant without changing them.
///
/// Members that do not apply are absent, and cumulative members start at 0; the order of objects
/// and members is fixed. Each extension in this folder creates one layer's objects.
struct StatsCollector {
  let now: Instant
  let wallClock: WallClock
  let names: StatsNames
  let bundles: BundleTable
  let tracks: TrackTable
  let data: DataTransport
  let sections: [NegotiatedSection]
  let transceivers: [Transceiver]
  /// The configured maximum of the audio encoders' bit rate in bit/s.
  let audioBitrate: UInt32
  /// The codecs' processing times, as measured by the caller.
  let codecTimes: [CodecTime]
  /// Whether to include the members that were added in take format 7.
  let isComplete: Bool

  /// Returns all stats, or only a sender's or receiver's objects and the objects that they refer
  /// to.
  func report(of selector: StatsSelector?) throws(PeerError) -> StatsReport {
    let report = report(of: nil as Set<String>?)
    guard let selector else { return report }
    return try report.reachable(from: streamIDs(of: selector))
  }

  /// Returns all stats, or only objects of the given types, which is cheaper.
  func report(of types: Set<String>?) -> StatsReport {
    func wants(_ names: String...) -> Bool { types.map { !$0.isDisjoint(with: names) } ?? true }
    var report = StatsReport()
    if wants("peer-connection") { report.objects.append(peerConnectionStats()) }
    if wants("transport") { report.objects += bundles.all.map { transportStats($0) } }
    if wants("data-channel") { report.objects += dataChannelStats() }
    if wants("certificate") { report.objects += certificateStats() }
    if wants("local-candidate", "remote-candidate") {
      report.objects += bundles.all.flatMap { candidateStats($0) }
    }
    if wants("candidate-pair") { report.objects += bundles.all.flatMap { pairStats($0) } }
    if wants("codec") { report.objects += codecStats() }
    if wants("media-source") { report.objects += mediaSourceStats() }
    if wants("media-playout") { report.objects += mediaPlayoutStats() }
    if wants("outbound-rtp", "remote-inbound-rtp") {
      for stream in bundles.outboundStreams { report.objects += outboundStats(stream) }
    }
    if wants("inbound-rtp", "remote-outbound-rtp") {
      for stream in bundles.inboundStreams { report.objects += inboundStats(stream) }
    }
    if let types { report.objects.removeAll { !types.contains($0.type) } }
    return report
  }

  /// Returns the ids of a sender's or receiver's RTP streams.
  private func streamIDs(of selector: StatsSelector) throws(PeerError) -> [String] {
    let (number, isSender) =
      switch selector {
      case .sender(let number): (number, true)
      case .receiver(let number): (number, false)
      }
    guard let transceiver = transceivers.first(where: { $0.id == number }) else {
      throw PeerError(name: "InvalidAccessError", message: "there is no transceiver \(number)")
    }
    if isSender {
      return bundles.outboundStreams.filter { $0.ssrc == transceiver.ssrc }.map { outboundID($0) }
    }
    return bundles.inboundStreams.filter { $0.mid == transceiver.mid }.map { inboundID($0) }
  }

  private func peerConnectionStats() -> StatsObject {
    var stats = builder("peer-connection", names.id("X", "0"))
    stats.set("dataChannelsOpened", data.opened)
    stats.set("dataChannelsClosed", data.closed)
    return stats.build()
  }

  func builder(_ type: String, _ id: String) -> StatsBuilder {
    StatsBuilder(id: id, type: type, timestamp: milliseconds(now))
  }

  /// Returns an instant's Unix time in milliseconds.
  func milliseconds(_ instant: Instant) -> Double { wallClock.milliseconds(at: instant) }

  // MARK: Shared ids

  func transportID(_ number: Int) -> String { names.id("T", String(number)) }

  func outboundID(_ stream: OutboundStreamCounters) -> String {
    names.id("O", String(stream.ssrc))
  }

  /// Returns a received stream's id; a source that restarts with the same SSRC counts as another
  /// stream.
  func inboundID(_ stream: InboundStreamCounters) -> String {
    names.id("I", "\(stream.ssrc) \(stream.beganAt.nanoseconds)")
  }
}

extension PeerStack {
  /// Returns a collector for the state after the last step.
  func stats(codecTimes: [CodecTime]) -> StatsCollector {
    StatsCollector(
      now: now, wallClock: genesis.wallClock, names: statsNames, bundles: bundles, tracks: tracks,
      data: data, sections: negotiation.sections, transceivers: negotiation.transceivers,
      audioBitrate: genesis.configuration.audioBitrate, codecTimes: codecTimes,
      isComplete: genesis.configuration.hasCompleteStatistics ?? false)
  }
}

extension WallClock {
  /// Returns the Unix time in milliseconds, the unit of all W3C timestamps.
  package func milliseconds(at instant: Instant) -> Double {
    Double(unixNanoseconds(at: instant) / 1000) / 1000
  }
}

// MARK: - Codecs

// Objects for the codecs that the report's streams use.
extension StatsCollector {
  /// A codec in one direction; its fmtp line depends on the receiver.
  private struct CodecUse: Equatable {
    var transport: Int
    var payloadType: UInt8
    var parameters: String
  }

  func codecStats() -> [StatsObject] {
    var objects: [StatsObject] = []
    var known: [CodecUse] = []
    for (mid, payloadType, isInbound) in codecUses {
      guard let (section, codec) = negotiated(payloadType, mid) else { continue }
      let use = use(of: codec, in: section, isInbound: isInbound)
      guard !known.contains(use) else { continue }
      known.append(use)
      var stats = builder("codec", id(of: use))
      stats.set("payloadType", codec.payloadType)
      stats.set("transportId", transportID(use.transport))
      stats.set("mimeType", "\(section.kind.rawValue)/\(codec.displayName)")
      stats.set("clockRate", codec.clockRate)
      stats.set("channels", codec.channels)
      if !use.parameters.isEmpty { stats.set("sdpFmtpLine", use.parameters) }
      objects.append(stats.build())
    }
    return objects
  }

  /// Returns the id of a stream's codec, or nil if it is no longer negotiated.
  func codecID(_ payloadType: UInt8?, mid: String, isInbound: Bool) -> String? {
    guard let payloadType, let (section, codec) = negotiated(payloadType, mid)
    else { return nil }
    return id(of: use(of: codec, in: section, isInbound: isInbound))
  }

  /// The codecs that the report's streams use, in the order of the streams.
  private var codecUses: [(mid: String, payloadType: UInt8, isInbound: Bool)] {
    let sent = bundles.outboundStreams.map { ($0.mid, $0.payloadType, false) }
    let received = bundles.inboundStreams.compactMap { stream in
      stream.payloadType.map { (stream.mid, $0, true) }
    }
    return sent + received
  }

  private func negotiated(_ payloadType: UInt8, _ mid: String)
    -> (NegotiatedSection, NegotiatedCodec)?
  {
    guard let section = sections.first(where: { $0.mid == mid }),
      let codec = (section.codecs + section.unansweredCodecs).first(where: {
        $0.payloadType == payloadType
      })
    else { return nil }
    return (section, codec)
  }

  private func use(
    of codec: NegotiatedCodec, in section: NegotiatedSection, isInbound: Bool
  ) -> CodecUse {
    CodecUse(
      transport: section.transport,
      payloadType: codec.payloadType,
      parameters: isInbound ? codec.localParameters : codec.parameters)
  }

  private func id(of use: CodecUse) -> String {
    names.id("C", "\(use.payloadType) \(use.parameters)", of: use.transport)
  }
}

// MARK: - Data

// Objects for data channels (W3C RTCDataChannelStats).
extension StatsCollector {
  /// Returns the objects for channels that are not closed, oldest first.
  func dataChannelStats() -> [StatsObject] {
    data.channels.map { channel in
      let association = data.association
      let options = association.options(of: channel.number) ?? channel.options
      let counters = association.counters(of: channel.number) ?? DataChannelCounters()
      var stats = builder("data-channel", names.id("D", "\(channel.number)"))
      stats.set("label", options.label)
      stats.set("protocol", options.protocol)
      stats.set("dataChannelIdentifier", options.id)
      stats.set("state", association.state(of: channel.number).rawValue)
      stats.set("messagesSent", counters.messagesSent)
      stats.set("bytesSent", counters.bytesSent)
      stats.set("messagesReceived", counters.messagesReceived)
      stats.set("bytesReceived", counters.bytesReceived)
      return stats.build()
    }
  }
}

// MARK: - Sources

// Stats objects for sources and playouts.
extension StatsCollector {
  /// Returns an object for each attached source; a new source is a new object that counts from 0.
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

  /// Returns an object for each audio track that is played.
  ///
  /// The playout returns audio as soon as it is produced, so no device delays it. Missing audio has
  /// already been concealed, so none is synthesized here.
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
