import RTP
import Wire

/// Key frame requests for a received stream: whether one is needed, and when it may be repeated.
struct KeyframeRequests {
  private static let leastSpacing = Interval.milliseconds(300)

  /// Whether a decoder waits for a key frame.
  private(set) var isWanted = false
  private var lastAt: Instant?
  private var number: UInt8 = 0

  /// Records that a decoder needs a key frame.
  mutating func want() { isWanted = true }

  /// Records that a key frame arrived, or that none can.
  mutating func settle() { isWanted = false }

  /// Returns a request as negotiated, PLI (RFC 4585 section 6.3.1) or else FIR (RFC 5104 section
  /// 4.3.1); nil if neither was, or the last one is too recent.
  mutating func next(
    to ssrc: UInt32, _ codec: FlowSection.Codec, senderSSRC: UInt32, roundTrip: Interval?,
    at now: Instant
  ) -> RTCPPacket? {
    let spacing = max(KeyframeRequests.leastSpacing, (roundTrip ?? .zero) * 3 / 2)
    if let lastAt, now - lastAt < spacing { return nil }
    if codec.feedback.contains("nack pli") {
      lastAt = now
      return .pictureLoss(PictureLoss(senderSSRC: senderSSRC, mediaSSRC: ssrc))
    }
    guard codec.feedback.contains("ccm fir") else { return nil }
    lastAt = now
    number &+= 1
    return .fullIntraRequest(
      FullIntraRequest(senderSSRC: senderSSRC, entries: [.init(ssrc: ssrc, number: number)]))
  }
}
