import Media
import RTP
import Wire

/// The stream that a sending track feeds: section, layer, SSRC and limits, which are kept when it
/// is no longer fed.
struct SentStream {
  /// The section it currently feeds.
  private(set) var mid: String?
  /// The section it would feed if the path carried it.
  private(set) var heldMID: String?
  /// The layer that frames are sent as.
  private(set) var rid: String?
  private(set) var codec = ""
  private(set) var ssrc: UInt32 = 0
  private(set) var encoding = RTPEncoding()
  /// The largest unit of H.264 in bytes; nil if the peer accepts fragments.
  private(set) var unitLimit: Int?

  var isFed: Bool { mid != nil }

  mutating func begin(_ start: SendingTrack.Start) {
    (mid, heldMID, rid) = (start.mid, nil, start.rid)
    (codec, ssrc, encoding) = (start.codec, start.ssrc, start.encoding)
    unitLimit = start.unitLimit
  }

  /// Stops feeding; a paused track feeds it again once the path carries it.
  mutating func end(isHeld: Bool) {
    heldMID = isHeld ? mid : nil
    mid = nil
  }

  /// Sets other limits; false if they are unchanged, or nothing is fed.
  mutating func limit(to encoding: RTPEncoding) -> Bool {
    guard isFed, encoding != self.encoding else { return false }
    self.encoding = encoding
    return true
  }

  /// The record of a sent frame.
  /// - Parameter outcome: where its bytes are from: encoded here, or passed on.
  func record(
    of frame: EncodedFrame, from transceiver: UInt32, outcome: String, quantiser: UInt8 = 0
  ) -> FrameRecord {
    var record = FrameRecord(
      transceiver: transceiver, kind: frame.kind, isInbound: false, codec: frame.codec, ssrc: ssrc,
      rtpTime: frame.mediaTime, isKey: frame.isKey, width: Int(frame.width),
      height: Int(frame.height), bytes: frame.bytes, outcome: outcome, decoded: .none,
      quantiser: quantiser)
    record.audioLevel = frame.audioLevel
    record.isVoice = frame.isVoice
    record.peak = frame.peak
    record.energy = frame.energy
    record.contributors = frame.contributors
    return record
  }
}
