import Flow
import Media
import RTP
import Wire

/// A stream that an observed peer receives, with its reception and playout.
struct InboundTrack {
  /// The maximum number of RTX packets, and of correction packets, that wait for the stream's first
  /// packet.
  private static let earlyMaximum = 450

  private(set) var track: ObservedTrack
  private(set) var reception: StreamReception?
  private(set) var playout: ReceivingTrack?
  /// The transport's known header extensions.
  private var extensions = HeaderExtensionMap()
  private let codecs: any CodecFactory
  let decodes: Bool
  private let furtherDecoders: [CodecName]
  private let playsG711: Bool
  private var early = EarlyPackets<InboundStreamCounters>()
  /// Packet counts by ECN mark: for the stream's own packets, and for all packets including
  /// retransmissions.
  private var ecn: (media: ECNCounts?, all: ECNCounts?) = (nil, nil)
  /// Counts packets, sizes and losses while the stream's kind is unknown.
  private var unknown: StreamReception?
  /// Packets on the retransmission source before the stream's first packet: path probes, and
  /// repairs for packets lost at the beginning.
  private var earlyRepairs: [(packet: SeenPacket, type: UInt8?, arrival: Instant)] = []
  private var earlyRepairBytes = 0
  /// Correction packets that arrived before the stream's first packet.
  private var earlyCorrections: [(header: RTPHeader, arrival: Instant)] = []
  /// Whether a FlexFEC source protects the stream.
  private var isProtected = false
  private let repairsFully: Bool
  private let followsRestarts: Bool
  private let minimumDelay: Interval
  /// The time that a retransmission takes; nil until reports show it.
  private var roundTrip: Interval?

  init(
    _ track: ObservedTrack, codecs: any CodecFactory, decodes: Bool,
    furtherDecoders: [CodecName], playsG711: Bool = false, repairsFully: Bool = true,
    followsRestarts: Bool = true, minimumDelay: Interval = .zero
  ) {
    self.minimumDelay = minimumDelay
    self.followsRestarts = followsRestarts
    self.track = track
    isProtected = track.protectedBy != nil
    self.repairsFully = repairsFully
    self.playsG711 = playsG711
    self.furtherDecoders = furtherDecoders
    self.codecs = codecs
    self.decodes = decodes
  }

  var deadline: Instant? { playout?.deadline }

  /// The bytes that wait for the stream's codec to become known or for its first packet.
  var earlyBytes: Int { early.bytes + earlyRepairBytes }

  /// The stream's counters; nil before its first packet.
  ///
  /// Ignore their `kind` while the track's kind is unknown.
  var counters: InboundStreamCounters? {
    var counters = reception?.counters.adding(early.forgotten) ?? unknown?.counters
    counters?.ecn = ecn.all
    return counters
  }

  /// Counts the ECN mark of a packet that belongs to the stream itself.
  mutating func count(_ mark: ECNMark?) {
    ecn.media.count(mark)
    ecn.all.count(mark)
  }

  /// The counters of the stream's own packets, without its retransmissions; nil before reception
  /// has begun.
  var mediaCounters: InboundStreamCounters? {
    var counters = reception?.mediaCounters
    counters?.ecn = ecn.media
    return counters
  }

  /// Applies new information about the stream; returns the frames from packets that waited for it.
  mutating func learn(_ track: ObservedTrack, at now: Instant) -> [ReceivedFrame] {
    if let former = self.track.kind, let kind = track.kind, kind != former {
      // The assumed kind was wrong: start over, but keep the counters.
      early.forget(counters)
      (reception, playout) = (nil, nil)
    }
    self.track = track
    if let source = track.protectedBy { protect(by: source) }
    if repairsFully { reception?.codecs = track.mediaCodecs }
    guard track.kind != nil else { return [] }
    var frames: [ReceivedFrame] = []
    for packet in early.removeAll() {
      frames += receive(packet.packet, arrival: packet.arrival, at: now)
    }
    return frames
  }

  /// Turns the track into a retransmission stream; returns the packets that waited for a codec.
  mutating func turn(into track: ObservedTrack) -> [SeenPacket] {
    self.track = track
    (reception, playout, unknown) = (nil, nil, nil)
    return early.removeAll().map(\.packet)
  }

  /// Frees the bytes of packets that wait for the stream's codec; the packets stay counted.
  mutating func forgetEarly() {
    early.forget(unknown?.counters)
    for index in earlyRepairs.indices { earlyRepairs[index].packet.forgetBytes() }
    earlyRepairBytes = 0
  }

  mutating func setExtensions(_ map: HeaderExtensionMap) { extensions = map }

  /// Handles a packet of the stream itself, not of its retransmission or FlexFEC source.
  mutating func receive(_ packet: SeenPacket, arrival: Instant, at now: Instant)
    -> [ReceivedFrame]
  {
    guard let kind = track.kind else {
      // If too many packets wait, they are dropped, but stay counted.
      if unknown == nil {
        unknown = StreamReception(
          mid: track.key, kind: .audio, ssrc: track.ssrc, followsRestarts: followsRestarts,
          at: arrival)
      }
      unknown?.receiveSealed(packet.header, clockRate: 0, arrival: arrival)
      early.hold(packet, at: arrival, counted: unknown?.counters)
      return []
    }
    begin(kind, at: arrival)
    let frames = receive(packet, as: track.codec(of: packet.header.payloadType), arrival, at: now)
    return earlyRepairs.isEmpty ? frames : frames + receiveEarlyRepairs(at: now)
  }

  private mutating func receive(
    _ packet: SeenPacket, as codec: FlowSection.Codec?, _ arrival: Instant, at now: Instant
  ) -> [ReceivedFrame] {
    guard packet.isClear, let codec else {
      let clockRate = track.codecs.first { $0.clockRate > 0 }?.clockRate ?? 0
      reception?.receiveSealed(packet.header, clockRate: clockRate, arrival: arrival)
      return []
    }
    guard let opened = packet.unwrapped(codec, track) else {
      reception?.receiveSealed(packet.header, clockRate: codec.clockRate, arrival: arrival)
      return []
    }
    return reception?.receive(
      opened, extensions, isRetransmission: false, arrival: arrival, at: now) ?? []
  }

  /// Processes repairs that arrived before the stream's first packet.
  private mutating func receiveEarlyRepairs(at now: Instant) -> [ReceivedFrame] {
    let repairs = earlyRepairs
    (earlyRepairs, earlyRepairBytes) = ([], 0)
    var frames: [ReceivedFrame] = []
    for early in repairs {
      frames += receiveRepair(early.packet, of: early.type, arrival: early.arrival, at: now)
    }
    return frames
  }

  /// Begins reception, and counts packets that arrived earlier on the stream's other sources.
  private mutating func begin(_ kind: MediaKind, at arrival: Instant) {
    guard reception == nil else { return }
    reception = StreamReception(
      mid: track.key, kind: kind, ssrc: track.ssrc, repairsFully: repairsFully,
      followsRestarts: followsRestarts, at: arrival)
    if isProtected { reception?.protect(by: track.protectedBy) }
    if repairsFully { reception?.codecs = track.mediaCodecs }
    if !repairsFully {
      for early in earlyRepairs {
        reception?.countRetransmissionSource(early.packet.header, arrival: early.arrival)
      }
      (earlyRepairs, earlyRepairBytes) = ([], 0)
    }
    for early in earlyCorrections {
      _ = reception?.receiveCorrection(
        early.header, nil, extensions, arrival: early.arrival, at: arrival)
    }
    earlyCorrections = []
  }

  /// Keeps the stream's packets from now on, so that a FlexFEC source can recover lost packets.
  ///
  /// - Parameter source: the FlexFEC source's SSRC, if known.
  mutating func protect(by source: UInt32?) {
    isProtected = true
    reception?.protect(by: source)
  }

  /// Handles a packet from the FlexFEC source; returns the frames that it completes.
  ///
  /// - Parameter correction: the packet's content; nil if it cannot be read.
  mutating func receiveCorrection(
    _ packet: SeenPacket, _ correction: ErrorCorrection?, arrival: Instant, at now: Instant
  ) -> [ReceivedFrame] {
    guard reception != nil else {
      if earlyCorrections.count < InboundTrack.earlyMaximum {
        earlyCorrections.append((packet.header, arrival))
      }
      return []
    }
    return reception?.receiveCorrection(
      packet.header, correction, extensions, arrival: arrival, at: now) ?? []
  }

  /// Handles an RTX packet for the stream.
  /// - Parameter type: the original payload type, if known.
  mutating func receiveRepair(
    _ packet: SeenPacket, of type: UInt8?, arrival: Instant, at now: Instant
  ) -> [ReceivedFrame] {
    ecn.all.count(packet.ecn)
    guard reception != nil else {
      guard earlyRepairs.count < InboundTrack.earlyMaximum else { return [] }
      earlyRepairs.append((packet, type, arrival))
      earlyRepairBytes += packet.bytes.count
      return []
    }
    reception?.rtxSSRC = packet.header.ssrc
    guard packet.isClear, let type = type ?? reception?.counters.payloadType,
      let codec = track.codec(of: type),
      let opened = packet.unwrapped(codec, track, after: RTX.overhead)
    else {
      reception?.countRetransmissionSource(packet.header, arrival: arrival)
      return []
    }
    return reception?.receive(
      opened, extensions, isRetransmission: true, arrival: arrival, at: now) ?? []
  }

  /// Returns whether a frame is played; other frames are reported on arrival.
  func isPlayed(_ frame: ReceivedFrame) -> Bool {
    frame.kind == .video || frame.codec == .opus || playsG711 && frame.codec.isG711
  }

  /// Passes a frame to the playout, which is created for the first frame.
  mutating func play(
    _ frame: ReceivedFrame, at now: Instant, into outbox: inout Outbox<ReceivingTrack.Output>
  ) {
    if playout == nil {
      playout = ReceivingTrack(
        track.number, frame.kind, mid: track.key, codecs: codecs, minimumDelay: minimumDelay,
        decodes: decodes, furtherDecoders: furtherDecoders, isWatched: true)
      if let roundTrip { awaitRepairs(taking: roundTrip) }
    }
    playout?.step(.frame(frame), at: now, into: &outbox)
  }

  /// Plays due frames; returns false if none is due.
  mutating func playDue(at now: Instant, into outbox: inout Outbox<ReceivingTrack.Output>) -> Bool {
    guard let due = playout?.deadline, due <= now else { return false }
    playout?.step(.deadline, at: now, into: &outbox)
    return true
  }

  /// Makes frames wait for retransmissions, as libwebrtc does if no forward error correction is
  /// negotiated.
  mutating func awaitRepairs(taking roundTrip: Interval) {
    guard repairsFully else { return }
    self.roundTrip = roundTrip
    let waits = !isProtected && !track.mayBeCorrected
    playout?.awaitRepairs(taking: waits ? roundTrip : nil)
  }

  /// Stores the playout after it has been synchronised with others.
  mutating func setAligned(_ playout: ReceivingTrack) { self.playout = playout }

  // MARK: RTCP

  mutating func receive(_ report: SenderReport, at arrival: Instant) {
    reception?.receive(report, at: arrival)
  }

  mutating func receive(roundTrip: Interval) { reception?.receive(roundTrip: roundTrip) }

  mutating func end() { reception?.end() }

  mutating func countNACK() { reception?.countNACK() }

  /// Handles the receiver's key frame request; returns the frames that stop waiting for missing
  /// packets.
  mutating func countKeyframeRequest(isFIR: Bool, at now: Instant) -> [ReceivedFrame] {
    reception?.countKeyframeRequest(isFIR: isFIR, at: now) ?? []
  }

  mutating func receive(_ block: ReportBlock) { reception?.receive(block) }
}
