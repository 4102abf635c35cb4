import Media
import RTP
import Wire

/// The stream that the frames of a sending track go into: its section, its layer, its SSRC and its
/// limits, which stay known when it is no longer fed.
struct SentStream {
  /// The section that is fed at present.
  private(set) var mid: String?
  /// The section that would be fed if the path carried it.
  private(set) var heldMID: String?
  /// The layer as which frames are sent.
  private(set) var rid: String?
  private(set) var codec = ""
  private(set) var ssrc: UInt32 = 0
  private(set) var encoding = RTPEncoding()
  /// The most bytes of a unit of H.264; nil if the peer takes units in parts.
  private(set) var unitLimit: Int?

  var isFed: Bool { mid != nil }

  mutating func begin(_ start: SendingTrack.Start) {
    (mid, heldMID, rid) = (start.mid, nil, start.rid)
    (codec, ssrc, encoding) = (start.codec, start.ssrc, start.encoding)
    unitLimit = start.unitLimit
  }

  /// Ends; whoever holds it back until the path carries it feeds it again.
  mutating func end(isHeld: Bool) {
    heldMID = isHeld ? mid : nil
    mid = nil
  }

  /// Takes other limits; false when they are no others, or nothing is fed.
  mutating func limit(to encoding: RTPEncoding) -> Bool {
    guard isFed, encoding != self.encoding else { return false }
    self.encoding = encoding
    return true
  }

  /// What is told of a frame that goes into it.
  ///
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
