import Flow
import JSEP
import Stats
package import Wire

/// W3C getStats: reads the layers of a peer at an instant without changing them.
///
/// Members that do not apply are absent, cumulative ones start at 0; the order of objects and
/// members is fixed. Each extension in this folder creates the objects of one layer.
struct StatsCollector {
  /// The instant of the report.
  let now: Instant
  let wallClock: WallClock
  let names: StatsNames
  let bundles: BundleTable
  let tracks: TrackTable
  let data: DataTransport
  /// The negotiated sections.
  let sections: [NegotiatedSection]
  let transceivers: [Transceiver]
  /// The audio encoder's bit rate in bits per second.
  let audioBitrate: UInt32
  /// The codecs' processing times, as measured by the caller.
  let codecTimes: [CodecTime]
  /// Whether there are the members that came with format 7 of takes.
  let isComplete: Bool

  /// The stats of everything, or of a sender or receiver with what they refer to.
  func report(of selector: StatsSelector?) throws(PeerError) -> StatsReport {
    let report = report(of: nil as Set<String>?)
    guard let selector else { return report }
    return try report.reachable(from: streamIDs(of: selector))
  }

  /// The stats of everything, or only objects of some types, which is cheaper.
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

  /// The ids of the RTP streams of a sender or receiver.
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

  /// The Unix time of an instant in milliseconds.
  func milliseconds(_ instant: Instant) -> Double { wallClock.milliseconds(at: instant) }

  // MARK: Ids of what objects of several layers refer to

  func transportID(_ number: Int) -> String { names.id("T", String(number)) }

  func outboundID(_ stream: OutboundStreamCounters) -> String {
    names.id("O", String(stream.ssrc))
  }

  /// A source that restarts with the same SSRC is another stream.
  func inboundID(_ stream: InboundStreamCounters) -> String {
    names.id("I", "\(stream.ssrc) \(stream.beganAt.nanoseconds)")
  }
}

extension PeerStack {
  /// A collector for the state after the last step.
  func stats(codecTimes: [CodecTime]) -> StatsCollector {
    StatsCollector(
      now: now, wallClock: genesis.wallClock, names: statsNames, bundles: bundles, tracks: tracks,
      data: data, sections: negotiation.sections, transceivers: negotiation.transceivers,
      audioBitrate: genesis.configuration.audioBitrate, codecTimes: codecTimes,
      isComplete: genesis.configuration.hasCompleteStatistics ?? false)
  }
}

extension WallClock {
  /// Unix time in milliseconds, as for all instants in W3C.
  package func milliseconds(at instant: Instant) -> Double {
    Double(unixNanoseconds(at: instant) / 1000) / 1000
  }
}
