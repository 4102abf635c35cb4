import Flow
import RTP
import Wire

/// A stream that an observed peer sends, as far as the wire shows it.
struct OutboundTrack {
  private(set) var track: ObservedTrack
  private var emission: StreamEmission?
  private var early = EarlyPackets<OutboundStreamCounters>()
  /// What is counted as long as it is not known what the stream carries.
  private var unknown: OutboundStreamCounters?

  init(_ track: ObservedTrack) { self.track = track }

  /// What was counted; nil before the first packet.
  ///
  /// As long as the track has no kind, that of the counters means nothing.
  var counters: OutboundStreamCounters? { emission?.counters.adding(early.forgotten) ?? unknown }

  /// Records what became known; returns the packets that waited for it.
  mutating func learn(_ track: ObservedTrack) -> [SeenPacket] {
    if let former = self.track.kind, let kind = track.kind, kind != former {
      // It was taken for something else: what was counted stays.
      early.forget(counters)
      emission = nil
    }
    self.track = track
    return track.kind == nil ? [] : early.removeAll().map(\.packet)
  }

  /// Counts a packet of which it is not known yet what it carries; false where it is.
  mutating func hold(_ packet: SeenPacket) -> Bool {
    guard track.kind == nil else { return false }
    var counted =
      unknown
      ?? OutboundStreamCounters(
        mid: track.key, kind: .audio, ssrc: track.ssrc, rtxSSRC: nil,
        codec: CodecName(rawValue: ""), payloadType: packet.header.payloadType)
    counted.count(packet.header)
    unknown = counted
    early.hold(packet, at: .zero, counted: counted)
    return true
  }

  mutating func send(_ header: RTPHeader, isRetransmission: Bool) {
    if emission == nil, let kind = track.kind {
      let codec = track.codec(of: header.payloadType)
      emission = StreamEmission(
        mid: track.key, kind: kind, ssrc: track.ssrc,
        codec: codec?.name ?? CodecName(rawValue: ""), payloadType: header.payloadType,
        clockRate: codec?.clockRate ?? (kind == .video ? 90_000 : 48_000))
    }
    emission?.send(header, isRetransmission: isRetransmission)
  }

  mutating func report(_ report: SenderReport, at arrival: Instant) {
    emission?.report(report, at: arrival)
  }

  mutating func receive(_ block: ReportBlock, at arrival: Instant) {
    emission?.receive(block, at: arrival)
  }

  mutating func countNACK() { emission?.countNACK() }

  mutating func countKeyframeRequest(isFIR: Bool) {
    emission?.countKeyframeRequest(isFIR: isFIR)
  }
}
