import Flow
import Media
import RTP
import Wire

/// The streams that an observed peer receives, which of them something is about, and which of them
/// have playouts and decoders.
struct InboundTracks {
  /// How many streams have playouts, and how many of those decoders; more are counted alone.
  private static let playoutsMaximum = 256
  private static let decodersMaximum = 64
  /// The limit on packets held, over all streams, until their codec is known, in bytes.
  private static let earlyBytesMaximum = 32 << 20

  /// The frames that were complete, and the place of the stream that they are of.
  struct Completed {
    var place: Int
    var frames: [ReceivedFrame]
  }

  /// In the order in which they were found.
  private(set) var all: [InboundTrack] = []
  /// The places by number.
  private var places: [UInt32: Int] = [:]
  private var extensions = HeaderExtensionMap()
  /// Nil where nothing is decoded.
  private let codecs: (any CodecFactory)?
  private let silentCodecs = UndecodedCodecs()
  private let furtherDecoders: [CodecName]
  private let playsG711: Bool
  private var earlyBytes = 0
  /// What probed the path on sources of retransmissions before their streams were seen.
  private var earlyProbes: [(ssrc: UInt32, packet: SeenPacket, arrival: Instant)] = []
  private static let earlyProbesMaximum = 450

  init(
    codecs: (any CodecFactory)?, furtherDecoders: [CodecName], playsG711: Bool = false
  ) {
    self.playsG711 = playsG711
    self.codecs = codecs
    self.furtherDecoders = furtherDecoders
  }

  var indices: Range<Int> { all.indices }

  var deadline: Instant? {
    var deadline: Instant?
    // By index, because a track that is taken out of its array is a copy of many parts.
    for index in all.indices { deadline = earliest(deadline, all[index].deadline) }
    return deadline
  }

  // MARK: Streams

  /// Takes a stream, or what became known of one, for which packets may have waited.
  mutating func learn(_ track: ObservedTrack, at now: Instant) -> Completed? {
    if let place = places[track.number] {
      let frames = changeEarly(place) { $0.learn(track, at: now) }
      return Completed(place: place, frames: frames)
    }
    places[track.number] = all.count
    let decoders = all.count < InboundTracks.decodersMaximum ? codecs : nil
    var begun = InboundTrack(
      track, codecs: decoders ?? silentCodecs, decodes: decoders != nil,
      furtherDecoders: furtherDecoders, playsG711: playsG711)
    begun.setExtensions(extensions)
    for probe in earlyProbes where probe.ssrc == track.ssrc {
      _ = begun.receiveRepair(probe.packet, of: nil, arrival: probe.arrival, at: now)
    }
    earlyProbes.removeAll { $0.ssrc == track.ssrc }
    all.append(begun)
    return nil
  }

  mutating func setExtensions(_ map: HeaderExtensionMap) {
    extensions = map
    for index in all.indices { all[index].setExtensions(map) }
  }

  /// Handles a packet of the stream with a number; what is sent again goes to where it is from.
  mutating func receive(_ packet: SeenPacket, _ stream: UInt32, at now: Instant) -> Completed? {
    guard let place = places[stream] else { return nil }
    guard let repaired = all[place].track.repairs else {
      let arrival = min(packet.arrival ?? now, now)
      let frames = changeEarly(place) { $0.receive(packet, arrival: arrival, at: now) }
      if earlyBytes > InboundTracks.earlyBytesMaximum {
        changeEarly(place) { $0.forgetEarly() }
      }
      return Completed(place: place, frames: frames)
    }
    guard let index = all.firstIndex(where: { $0.track.ssrc == repaired }) else {
      if earlyProbes.count < InboundTracks.earlyProbesMaximum {
        earlyProbes.append((repaired, packet, now))
      }
      return nil
    }
    let type = all[place].track.repeatedTypes[packet.header.payloadType]
    return Completed(
      place: index, frames: all[index].receiveRepair(packet, of: type, arrival: now, at: now))
  }

  /// Changes a stream of which packets may wait, and keeps the sum of their bytes.
  private mutating func changeEarly<Result>(
    _ place: Int, _ change: (inout InboundTrack) -> Result
  ) -> Result {
    let before = all[place].earlyBytes
    let result = change(&all[place])
    earlyBytes += all[place].earlyBytes - before
    return result
  }

  // MARK: Playouts

  /// Hands a frame to the playout of its stream; false when there is none.
  mutating func play(
    _ frame: ReceivedFrame, _ place: Int, at now: Instant,
    into outbox: inout Outbox<ReceivingTrack.Output>
  ) -> Bool {
    guard all[place].isPlayed(frame), place < InboundTracks.playoutsMaximum else { return false }
    all[place].play(frame, at: now, into: &outbox)
    return true
  }

  /// Plays what is due of a stream; false when nothing is.
  mutating func playDue(
    _ place: Int, at now: Instant, into outbox: inout Outbox<ReceivingTrack.Output>
  ) -> Bool {
    all[place].playDue(at: now, into: &outbox)
  }

  /// Lets audio and video of one end wait for the slower of them, as endpoints do.
  private mutating func alignPlayouts() {
    let played = all.indices.filter { all[$0].playout != nil }
    var tracks = played.compactMap { all[$0].playout }
    let names = played.map { (all[$0].track.number, all[$0].track.canonicalName) }
    tracks.alignPlayouts(played.compactMap { all[$0].counters }) { number in
      names.first { $0.0 == number }?.1.map { [$0] } ?? []
    }
    for (place, track) in zip(played, tracks) { all[place].setAligned(track) }
  }

  // MARK: RTCP

  /// - Parameter aligns: whether playouts that belong together are aligned after it.
  mutating func receive(_ report: SenderReport, aligns: Bool = true, at now: Instant) {
    guard let place = place(of: report.ssrc) else { return }
    all[place].receive(report, at: now)
    if aligns { alignPlayouts() }
  }

  /// Handles the round trip to a sender, of which these are streams.
  mutating func receive(roundTrip: Interval, to ssrcs: Set<UInt32>) {
    for index in all.indices where ssrcs.contains(all[index].track.ssrc) {
      all[index].receive(roundTrip: roundTrip)
    }
  }

  mutating func end(_ ssrcs: [UInt32]) {
    for index in all.indices where ssrcs.contains(all[index].track.ssrc) { all[index].end() }
  }

  mutating func countNACK(_ ssrc: UInt32) {
    if let place = place(of: ssrc) { all[place].countNACK() }
  }

  /// Takes a request for a key frame; returns the frames that waited for it.
  mutating func countKeyframeRequest(_ ssrc: UInt32, isFIR: Bool, at now: Instant) -> Completed? {
    guard let place = place(of: ssrc) else { return nil }
    return Completed(
      place: place, frames: all[place].countKeyframeRequest(isFIR: isFIR, at: now))
  }

  /// Handles what this end reports of its streams.
  mutating func receive(_ blocks: [ReportBlock]) {
    for block in blocks {
      if let place = place(of: block.ssrc) { all[place].receive(block) }
    }
  }

  private func place(of ssrc: UInt32) -> Int? { all.lastIndex { $0.track.ssrc == ssrc } }
}
