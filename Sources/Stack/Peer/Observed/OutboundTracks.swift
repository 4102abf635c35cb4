import RTP
import Wire

/// The streams that an observed peer sends.
struct OutboundTracks {
  /// In order of discovery.
  private(set) var all: [OutboundTrack] = []
  /// Index by number.
  private var places: [UInt32: Int] = [:]
  /// Probes on RTX SSRCs before their streams were seen.
  private var earlyProbes: [(ssrc: UInt32, packet: SeenPacket)] = []
  private static let earlyMaximum = 450
  private let countsEarlyRepeats: Bool

  init(countsEarlyRepeats: Bool = false) { self.countsEarlyRepeats = countsEarlyRepeats }

  /// Adds a stream, or applies new knowledge of one.
  mutating func learn(_ track: ObservedTrack) {
    if let place = places[track.number] {
      for packet in all[place].learn(track) { send(packet, track.number) }
      return
    }
    places[track.number] = all.count
    var begun = OutboundTrack(track, countsEarlyRepeats: countsEarlyRepeats)
    for (_, packet) in earlyProbes.filter({ $0.ssrc == track.ssrc }) { begun.repeatPacket(packet) }
    earlyProbes.removeAll { $0.ssrc == track.ssrc }
    all.append(begun)
  }

  /// Handles a packet of a stream; a retransmission counts for its original stream.
  mutating func send(_ packet: SeenPacket, _ stream: UInt32) {
    guard let place = places[stream] else { return }
    if all[place].track.repairs == nil, all[place].hold(packet) { return }
    guard let repaired = all[place].track.repairs else { return all[place].send(packet) }
    guard let index = all.firstIndex(where: { $0.track.ssrc == repaired }) else {
      if earlyProbes.count < OutboundTracks.earlyMaximum { earlyProbes.append((repaired, packet)) }
      return
    }
    all[index].repeatPacket(packet)
  }

  // MARK: RTCP

  mutating func send(_ report: SenderReport, at now: Instant) {
    if let place = place(of: report.ssrc) { all[place].report(report, at: now) }
  }

  mutating func receive(_ blocks: [ReportBlock], at now: Instant) {
    for block in blocks {
      if let place = place(of: block.ssrc) { all[place].receive(block, at: now) }
    }
  }

  mutating func receive(_ nack: GenericNACK) {
    if let place = place(of: nack.mediaSSRC) { all[place].receive(nack) }
  }

  mutating func countKeyframeRequest(_ ssrc: UInt32, isFIR: Bool) {
    if let place = place(of: ssrc) { all[place].countKeyframeRequest(isFIR: isFIR) }
  }

  private func place(of ssrc: UInt32) -> Int? { all.lastIndex { $0.track.ssrc == ssrc } }
}
