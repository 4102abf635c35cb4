/// Owns for how long the packets of a stream and of its retransmissions name their section: until
/// the peer reports on them, and so has mapped them (RFC 9143 section 9.2).
struct SectionNaming {
  private let mid: [UInt8]
  private var isKnown = false
  private var isRTXKnown = false

  init(_ mid: [UInt8]) { self.mid = mid }

  /// The name that a packet has to carry.
  var name: [UInt8]? { isKnown ? nil : mid }
  /// The name that a retransmission has to carry.
  var rtxName: [UInt8]? { isRTXKnown ? nil : mid }

  /// Notes that the peer reports on the stream, or on its retransmissions.
  mutating func noteReport(isRTX: Bool) {
    if isRTX { isRTXKnown = true } else { isKnown = true }
  }

  /// Notes that retransmissions have another source from now on.
  mutating func forgetRTX() { isRTXKnown = false }
}
