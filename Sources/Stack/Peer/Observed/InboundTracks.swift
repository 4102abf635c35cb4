import Flow
import Media
import RTP
import Wire

/// The streams that an observed peer receives; only the first ones have playouts and decoders.
struct InboundTracks {
  /// The maximum numbers of streams with playouts and with decoders; further streams are only
  /// counted.
  private static let playoutsMaximum = 256
  private static let decodersMaximum = 64
  /// The maximum number of bytes, over all streams, in packets that wait for their codec.
  private static let earlyBytesMaximum = 32 << 20

  /// Complete frames and their stream's index.
  struct Completed {
    var place: Int
    var frames: [ReceivedFrame]
  }

  /// The streams in order of discovery.
  private(set) var all: [InboundTrack] = []
  /// Stream indices by number.
  private var places: [UInt32: Int] = [:]
  private var extensions = HeaderExtensionMap()
  /// The codecs; nil if no media is decoded.
  private let codecs: (any CodecFactory)?
  private let silentCodecs = UndecodedCodecs()
  private let furtherDecoders: [CodecName]
  private let playsG711: Bool
  private var earlyBytes = 0
  /// Packets that arrived on retransmission sources before their streams were seen.
  private var earlyProbes: [(ssrc: UInt32, packet: SeenPacket, type: UInt8?, arrival: Instant)] = []
  private static let earlyProbesMaximum = 450
  private let repairsFully: Bool
  private let followsRestarts: Bool
  private let minimumDelay: Interval
  private var roundTrip: Interval?

  init(
    codecs: (any CodecFactory)?, furtherDecoders: [CodecName], playsG711: Bool = false,
    repairsFully: Bool = true, followsRestarts: Bool = true, minimumDelay: Interval = .zero
  ) {
    self.minimumDelay = minimumDelay
    self.playsG711 = playsG711
    self.followsRestarts = followsRestarts
    self.repairsFully = repairsFully
    self.codecs = codecs
    self.furtherDecoders = furtherDecoders
  }

  var indices: Range<Int> { all.indices }

  var deadline: Instant? {
    var deadline: Instant?
    // Use indices, because a loop over the tracks themselves would copy each one.
    for index in all.indices { deadline = earliest(deadline, all[index].deadline) }
    return deadline
  }

  // MARK: Streams

  /// Adds a stream, or applies new information about one; returns the frames from packets that
  /// waited for it, or nil for a new stream.
  mutating func learn(_ track: ObservedTrack, at now: Instant) -> Completed? {
    if let protected = track.protects, let place = placeOfMedia(protected) {
      all[place].protect(by: track.ssrc)
    }
    if let place = places[track.number] {
      if repairsFully, !track.isMedia, all[place].track.isMedia {
        return turn(place, into: track, at: now)
      }
      let frames = changeEarly(place) { $0.learn(track, at: now) }
      return Completed(place: place, frames: frames)
    }
    places[track.number] = all.count
    let decoders = all.count < InboundTracks.decodersMaximum ? codecs : nil
    var begun = InboundTrack(
      track, codecs: decoders ?? silentCodecs, decodes: decoders != nil,
      furtherDecoders: furtherDecoders, playsG711: playsG711, repairsFully: repairsFully,
      followsRestarts: followsRestarts, minimumDelay: minimumDelay)
    begun.setExtensions(extensions)
    if let roundTrip { begun.awaitRepairs(taking: roundTrip) }
    if let other = all.first(where: { $0.track.protects == track.ssrc }) {
      begun.protect(by: other.track.ssrc)
    }
    for probe in earlyProbes where probe.ssrc == track.ssrc {
      _ = begun.receiveRepair(probe.packet, of: probe.type, arrival: probe.arrival, at: now)
    }
    earlyProbes.removeAll { $0.ssrc == track.ssrc }
    earlyBytes += begun.earlyBytes
    all.append(begun)
    return nil
  }

  /// Turns a stream into a retransmission stream, because its packets show that it is one; returns
  /// the frames from packets that waited, or nil if there are none.
  private mutating func turn(_ place: Int, into track: ObservedTrack, at now: Instant)
    -> Completed?
  {
    var completed: Completed?
    for packet in changeEarly(place, { $0.turn(into: track) }) {
      guard let next = receive(packet, track.number, at: now) else { continue }
      completed = Completed(place: next.place, frames: (completed?.frames ?? []) + next.frames)
    }
    return completed
  }

  mutating func setExtensions(_ map: HeaderExtensionMap) {
    extensions = map
    for index in all.indices { all[index].setExtensions(map) }
  }

  /// Handles a stream's packet, passing a retransmission to the original stream; returns the frames
  /// that are now complete, or nil if the stream is unknown.
  mutating func receive(_ packet: SeenPacket, _ stream: UInt32, at now: Instant) -> Completed? {
    guard let place = places[stream] else { return nil }
    if let protected = all[place].track.protects {
      guard let index = placeOfMedia(protected) else { return nil }
      let correction = packet.correction(all[place].track)
      return Completed(
        place: index,
        frames: all[index].receiveCorrection(packet, correction, arrival: now, at: now))
    }
    guard let repaired = all[place].track.repairs else {
      let arrival = min(packet.arrival ?? now, now)
      all[place].count(packet.ecn)
      let frames = changeEarly(place) { $0.receive(packet, arrival: arrival, at: now) }
      if earlyBytes > InboundTracks.earlyBytesMaximum {
        changeEarly(place) { $0.forgetEarly() }
      }
      return Completed(place: place, frames: frames)
    }
    let type = all[place].track.repeatedTypes[packet.header.payloadType]
    guard let index = all.firstIndex(where: { $0.track.ssrc == repaired }) else {
      if earlyProbes.count < InboundTracks.earlyProbesMaximum {
        earlyProbes.append((repaired, packet, type, now))
      }
      return nil
    }
    let frames = changeEarly(index) { $0.receiveRepair(packet, of: type, arrival: now, at: now) }
    return Completed(place: index, frames: frames)
  }

  private func placeOfMedia(_ ssrc: UInt32) -> Int? {
    all.firstIndex { $0.track.ssrc == ssrc && $0.track.isMedia }
  }

  /// Changes a stream and updates the total of waiting bytes.
  private mutating func changeEarly<Result>(
    _ place: Int, _ change: (inout InboundTrack) -> Result
  ) -> Result {
    let before = all[place].earlyBytes
    let result = change(&all[place])
    earlyBytes += all[place].earlyBytes - before
    return result
  }

  // MARK: Playouts

  /// Passes a frame to its stream's playout; returns false if there is none.
  mutating func play(
    _ frame: ReceivedFrame, _ place: Int, at now: Instant,
    into outbox: inout Outbox<ReceivingTrack.Output>
  ) -> Bool {
    guard all[place].isPlayed(frame), place < InboundTracks.playoutsMaximum else { return false }
    all[place].play(frame, at: now, into: &outbox)
    return true
  }

  /// Plays a stream's due frames; returns false if none is due.
  mutating func playDue(
    _ place: Int, at now: Instant, into outbox: inout Outbox<ReceivingTrack.Output>
  ) -> Bool {
    all[place].playDue(at: now, into: &outbox)
  }

  /// Synchronises audio and video from the same endpoint, as a real receiver does.
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

  /// Handles a sender report on a received stream.
  ///
  /// - Parameter aligns: whether playouts are synchronised afterwards.
  mutating func receive(_ report: SenderReport, aligns: Bool = true, at now: Instant) {
    guard let place = place(of: report.ssrc) else { return }
    all[place].receive(report, at: now)
    if aligns { alignPlayouts() }
  }

  /// Records the round trip to the sender of the given streams.
  mutating func receive(roundTrip: Interval, to ssrcs: Set<UInt32>) {
    for index in all.indices where ssrcs.contains(all[index].track.ssrc) {
      all[index].receive(roundTrip: roundTrip)
    }
  }

  /// Sets the round trip between the peer and its sender, which is how long a repair takes.
  mutating func awaitRepairs(taking roundTrip: Interval) {
    self.roundTrip = roundTrip
    for index in all.indices { all[index].awaitRepairs(taking: roundTrip) }
  }

  mutating func end(_ ssrcs: [UInt32]) {
    for index in all.indices where ssrcs.contains(all[index].track.ssrc) { all[index].end() }
  }

  mutating func countNACK(_ ssrc: UInt32) {
    if let place = place(of: ssrc) { all[place].countNACK() }
  }

  /// Handles a key frame request; returns the frames that stop waiting for missing packets, or nil
  /// if the stream is unknown.
  mutating func countKeyframeRequest(_ ssrc: UInt32, isFIR: Bool, at now: Instant) -> Completed? {
    guard let place = place(of: ssrc) else { return nil }
    return Completed(
      place: place, frames: all[place].countKeyframeRequest(isFIR: isFIR, at: now))
  }

  /// Applies the peer's report blocks to the streams that they report on.
  mutating func receive(_ blocks: [ReportBlock]) {
    for block in blocks {
      if let place = place(of: block.ssrc) { all[place].receive(block) }
    }
  }

  private func place(of ssrc: UInt32) -> Int? { all.lastIndex { $0.track.ssrc == ssrc } }
}
