import Flow
import RTP
import Wire

/// A stream that an observed peer sends, as far as the wire shows it.
struct OutboundTrack {
  private(set) var track: ObservedTrack
  private var emission: StreamEmission?

  init(_ track: ObservedTrack) { self.track = track }

  /// What was counted; nil before it is known whether it is audio or video frames.
  var counters: OutboundStreamCounters? { emission?.counters }

  mutating func learn(_ track: ObservedTrack) { self.track = track }

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
