import Flow
import ICE
import JSEP
import Media
import RTP
import Secure
import Stats
import Transport
import Wire

// W3C getStats over what the layers count. Members that do not apply are absent, cumulative ones
// begin at 0; the order of objects and members is fixed.
extension PeerStack {
  /// The stats of everything, or of what a sender or receiver has and refers to.
  func statsReport(of selector: StatsSelector?, codecTimes: [CodecTime]) throws(PeerError)
    -> StatsReport
  {
    let report = statsReport(of: nil as Set<String>?, codecTimes: codecTimes)
    guard let selector else { return report }
    return try report.reachable(from: streamIDs(of: selector))
  }

  /// The stats of everything, or the objects of some types: most cost nothing then.
  func statsReport(of types: Set<String>?, codecTimes: [CodecTime]) -> StatsReport {
    func wants(_ names: String...) -> Bool { types.map { !$0.isDisjoint(with: names) } ?? true }
    var report = StatsReport()
    if wants("peer-connection") { report.objects.append(peerConnectionStats()) }
    if wants("transport") { report.objects += bundles.all.map(transportStats) }
    if wants("data-channel") { report.objects += dataChannelStats() }
    if wants("certificate") { report.objects += certificateStats() }
    if wants("local-candidate", "remote-candidate") {
      report.objects += bundles.all.flatMap(candidateStats)
    }
    if wants("candidate-pair") { report.objects += bundles.all.flatMap(pairStats) }
    if wants("codec") { report.objects += codecStats() }
    if wants("media-source") { report.objects += mediaSourceStats() }
    if wants("media-playout") { report.objects += mediaPlayoutStats() }
    if wants("outbound-rtp", "remote-inbound-rtp") {
      for stream in outboundStreams { report.objects += outboundStats(stream, codecTimes) }
    }
    if wants("inbound-rtp", "remote-outbound-rtp") {
      for stream in inboundStreams { report.objects += inboundStats(stream, codecTimes) }
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
    guard let transceiver = negotiation.transceivers.first(where: { $0.id == number }) else {
      throw PeerError(name: "InvalidAccessError", message: "there is no transceiver \(number)")
    }
    if isSender {
      return outboundStreams.filter { $0.ssrc == transceiver.ssrc }.map(outboundID)
    }
    return inboundStreams.filter { $0.mid == transceiver.mid }.map(inboundID)
  }

  /// What is or was sent.
  var outboundStreams: [OutboundStreamCounters] { bundles.all.flatMap(\.flow.outbound) }

  /// What is received.
  var inboundStreams: [InboundStreamCounters] {
    bundles.all.flatMap { $0.flow.inbound.filter { !$0.hasEnded } }
  }

  /// Unix time of an instant in milliseconds.
  func milliseconds(_ instant: Instant) -> Double {
    Double(genesis.wallClock.unixNanoseconds(at: instant) / 1000) / 1000
  }

  func builder(_ type: String, _ id: String) -> StatsBuilder {
    StatsBuilder(id: id, type: type, timestamp: milliseconds(now))
  }

  // MARK: Ids

  func transportID(_ number: Int) -> String { statsNames.id("T", String(number)) }
  func outboundID(_ stream: OutboundStreamCounters) -> String {
    statsNames.id("O", String(stream.ssrc))
  }
  /// A source that begins anew under the same number is another stream.
  func inboundID(_ stream: InboundStreamCounters) -> String {
    statsNames.id("I", "\(stream.ssrc) \(stream.beganAt.nanoseconds)")
  }

  // MARK: Connection and transport

  private func peerConnectionStats() -> StatsObject {
    var stats = builder("peer-connection", statsNames.id("X", "0"))
    stats.set("dataChannelsOpened", data.opened)
    stats.set("dataChannelsClosed", data.closed)
    return stats.build()
  }
}
