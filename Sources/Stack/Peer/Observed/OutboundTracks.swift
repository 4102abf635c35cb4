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
  private let repairsFully: Bool
  /// Where transport-wide sequence numbers are in packets.
  private var extensions = HeaderExtensionMap()
  private var departures = Departures()

  init(countsEarlyRepeats: Bool = false, repairsFully: Bool = false) {
    self.countsEarlyRepeats = countsEarlyRepeats
    self.repairsFully = repairsFully
  }

  mutating func setExtensions(_ map: HeaderExtensionMap) { extensions = map }

  /// Adds a stream, or applies new knowledge of one.
  mutating func learn(_ track: ObservedTrack) {
    if let place = places[track.number] {
      for packet in all[place].learn(track) { send(packet, track.number) }
      return
    }
    places[track.number] = all.count
    var begun = OutboundTrack(
      track, countsEarlyRepeats: countsEarlyRepeats, readsAllSizes: repairsFully)
    for (_, packet) in earlyProbes.filter({ $0.ssrc == track.ssrc }) { begun.repeatPacket(packet) }
    earlyProbes.removeAll { $0.ssrc == track.ssrc }
    all.append(begun)
  }

  /// Handles a packet of a stream; a retransmission counts for its original stream.
  mutating func send(_ packet: SeenPacket, _ stream: UInt32) {
    guard let place = places[stream] else { return }
    if let protected = all[place].track.protects {
      // Senders count what corrects errors with the stream that it protects.
      guard let index = all.firstIndex(where: { $0.track.ssrc == protected && $0.track.isMedia })
      else { return }
      return all[index].sendCorrection(packet)
    }
    if all[place].track.repairs == nil, all[place].hold(packet) { return }
    guard let repaired = all[place].track.repairs else {
      record(packet, of: place, isRepeated: false)
      return all[place].send(packet)
    }
    guard let index = all.firstIndex(where: { $0.track.ssrc == repaired }) else {
      if earlyProbes.count < OutboundTracks.earlyMaximum { earlyProbes.append((repaired, packet)) }
      return
    }
    if all[index].repeatPacket(packet) { record(packet, of: index, isRepeated: true) }
  }

  private mutating func record(_ packet: SeenPacket, of place: Int, isRepeated: Bool) {
    guard repairsFully, extensions.transportSequence != 0, packet.isClear,
      let number = HeaderExtensions(
        parsing: packet.bytes.span.bytes, header: packet.header, map: extensions
      ).transportSequence
    else { return }
    departures.record(
      number,
      Departures.Packet(place: place, sequence: packet.header.sequence, isRepeated: isRepeated))
  }

  // MARK: RTCP

  mutating func send(_ report: SenderReport, at now: Instant) {
    if let place = place(of: report.ssrc) { all[place].report(report, at: now) }
  }

  /// Receives blocks of the receiver; returns the longest round trip that they show.
  @discardableResult
  mutating func receive(_ blocks: [ReportBlock], at now: Instant) -> Interval? {
    var longest: Interval?
    for block in blocks {
      guard let place = place(of: block.ssrc), let length = all[place].receive(block, at: now)
      else { continue }
      longest = max(longest ?? length, length)
    }
    return longest
  }

  /// Receives feedback on arrivals.
  ///
  /// libwebrtc sends again at once what is lost and not followed by anything that arrived: the
  /// receiver cannot miss it yet.
  mutating func receive(_ feedback: TransportFeedback) {
    for lost in departures.lostLast(feedback) { all[lost.place].receive(lost: lost.sequence) }
  }

  mutating func receive(_ nack: GenericNACK) {
    if let place = place(of: nack.mediaSSRC) { all[place].receive(nack) }
  }

  mutating func countKeyframeRequest(_ ssrc: UInt32, isFIR: Bool) {
    if let place = place(of: ssrc) { all[place].countKeyframeRequest(isFIR: isFIR) }
  }

  private func place(of ssrc: UInt32) -> Int? { all.lastIndex { $0.track.ssrc == ssrc } }
}
