/// Owns for how long the packets of a stream and of its retransmissions name their section, and the
/// layer of a simulcast: until the peer reports on them, and so has mapped them (RFC 9143 section
/// 9.2, RFC 8852 section 3.3).
struct SectionNaming {
  private let mid: [UInt8]
  /// The layer; nil for the only stream of a section.
  private var rid: [UInt8]?
  private var isKnown = false
  private var isRTXKnown = false

  init(_ mid: [UInt8], rid: [UInt8]? = nil) {
    self.mid = mid
    self.rid = rid
  }

  /// The name that a packet has to carry.
  var name: [UInt8]? { isKnown ? nil : mid }
  /// The name that a retransmission has to carry.
  var rtxName: [UInt8]? { isRTXKnown ? nil : mid }
  /// The layer that a packet has to name.
  var streamID: [UInt8]? { isKnown ? nil : rid }
  /// The layer that a retransmission has to name.
  var repairedStreamID: [UInt8]? { isRTXKnown ? nil : rid }

  /// Records that the peer reports on the stream, or on its retransmissions.
  mutating func noteReport(isRTX: Bool) {
    if isRTX { isRTXKnown = true } else { isKnown = true }
  }

  /// Handles the layer that was agreed on anew.
  mutating func rename(rid: [UInt8]?) { self.rid = rid }

  /// Records that retransmissions have another source from now on.
  mutating func forgetRTX() { isRTXKnown = false }
}
