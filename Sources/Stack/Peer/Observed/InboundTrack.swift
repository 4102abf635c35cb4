import Flow
import Media
import RTP
import Wire

/// A stream that an observed peer receives: its reception and its playout.
struct InboundTrack {
  /// How many RTX packets wait for the first packet of the stream.
  private static let earlyMaximum = 450

  private(set) var track: ObservedTrack
  private(set) var reception: StreamReception?
  private(set) var playout: ReceivingTrack?
  /// The header extensions of its transport, as far as known.
  private var extensions = HeaderExtensionMap()
  private let codecs: any CodecFactory
  let decodes: Bool
  private let furtherDecoders: [CodecName]
  private let playsG711: Bool
  private var early = EarlyPackets<InboundStreamCounters>()
  /// Counts packets, sizes and losses while the stream's codec is unknown.
  private var unknown: StreamReception?
  /// Probes on the RTX SSRC before the first packet of the stream.
  private var earlyProbes: [(header: RTPHeader, arrival: Instant)] = []

  init(
    _ track: ObservedTrack, codecs: any CodecFactory, decodes: Bool,
    furtherDecoders: [CodecName], playsG711: Bool = false
  ) {
    self.track = track
    self.playsG711 = playsG711
    self.furtherDecoders = furtherDecoders
    self.codecs = codecs
    self.decodes = decodes
  }

  var deadline: Instant? { playout?.deadline }

  /// The bytes that wait until the codec is known.
  var earlyBytes: Int { early.bytes }

  /// The counters of the stream; nil before its first packet.
  ///
  /// While the kind of the track is unknown, that of the counters is meaningless.
  var counters: InboundStreamCounters? {
    reception?.counters.adding(early.forgotten) ?? unknown?.counters
  }

  /// The counters without retransmissions.
  var mediaCounters: InboundStreamCounters? { reception?.mediaCounters }

  /// Applies new knowledge; returns the frames of packets that waited for it.
  mutating func learn(_ track: ObservedTrack, at now: Instant) -> [ReceivedFrame] {
    if let former = self.track.kind, let kind = track.kind, kind != former {
      // Its kind was wrong: the counters are kept.
      early.forget(counters)
      (reception, playout) = (nil, nil)
    }
    self.track = track
    guard track.kind != nil else { return [] }
    var frames: [ReceivedFrame] = []
    for packet in early.removeAll() {
      frames += receive(packet.packet, arrival: packet.arrival, at: now)
    }
    return frames
  }

  /// Drops the packets that wait for the codec.
  mutating func forgetEarly() { early.forget(unknown?.counters) }

  mutating func setExtensions(_ map: HeaderExtensionMap) { extensions = map }

  /// Handles a packet of the stream itself.
  mutating func receive(_ packet: SeenPacket, arrival: Instant, at now: Instant)
    -> [ReceivedFrame]
  {
    guard let kind = track.kind else {
      // What waits too long is dropped but stays counted.
      if unknown == nil {
        unknown = StreamReception(mid: track.key, kind: .audio, ssrc: track.ssrc, at: arrival)
      }
      unknown?.receiveSealed(packet.header, clockRate: 0, arrival: arrival)
      early.hold(packet, at: arrival, counted: unknown?.counters)
      return []
    }
    begin(kind, at: arrival)
    guard packet.isClear, let codec = track.codec(of: packet.header.payloadType) else {
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

  /// Starts the reception, and counts earlier RTX packets.
  private mutating func begin(_ kind: MediaKind, at arrival: Instant) {
    guard reception == nil else { return }
    reception = StreamReception(mid: track.key, kind: kind, ssrc: track.ssrc, at: arrival)
    for probe in earlyProbes {
      reception?.countRetransmissionSource(probe.header, arrival: probe.arrival)
    }
    earlyProbes = []
  }

  /// Handles an RTX packet of the stream.
  /// - Parameter type: the original payload type, if known.
  mutating func receiveRepair(
    _ packet: SeenPacket, of type: UInt8?, arrival: Instant, at now: Instant
  ) -> [ReceivedFrame] {
    guard reception != nil else {
      if earlyProbes.count < InboundTrack.earlyMaximum {
        earlyProbes.append((packet.header, arrival))
      }
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

  /// Whether a frame goes through a playout; others are reported on arrival.
  func isPlayed(_ frame: ReceivedFrame) -> Bool {
    frame.kind == .video || frame.codec == .opus || playsG711 && frame.codec.isG711
  }

  /// Passes a frame to the playout, which starts with the first one.
  mutating func play(
    _ frame: ReceivedFrame, at now: Instant, into outbox: inout Outbox<ReceivingTrack.Output>
  ) {
    if playout == nil {
      playout = ReceivingTrack(
        track.number, frame.kind, mid: track.key, codecs: codecs, decodes: decodes,
        furtherDecoders: furtherDecoders, isWatched: true)
    }
    playout?.step(.frame(frame), at: now, into: &outbox)
  }

  /// Plays what is due; false if nothing is.
  mutating func playDue(at now: Instant, into outbox: inout Outbox<ReceivingTrack.Output>) -> Bool {
    guard let due = playout?.deadline, due <= now else { return false }
    playout?.step(.deadline, at: now, into: &outbox)
    return true
  }

  /// Puts the playout back after synchronisation.
  mutating func setAligned(_ playout: ReceivingTrack) { self.playout = playout }

  // MARK: RTCP

  mutating func receive(_ report: SenderReport, at arrival: Instant) {
    reception?.receive(report, at: arrival)
  }

  mutating func receive(roundTrip: Interval) { reception?.receive(roundTrip: roundTrip) }

  mutating func end() { reception?.end() }

  mutating func countNACK() { reception?.countNACK() }

  /// Handles the receiver's key frame request; returns the frames that waited for it.
  mutating func countKeyframeRequest(isFIR: Bool, at now: Instant) -> [ReceivedFrame] {
    reception?.countKeyframeRequest(isFIR: isFIR, at: now) ?? []
  }

  /// Handles the receiver's report block.
  mutating func receive(_ block: ReportBlock) { reception?.receive(block) }
}
