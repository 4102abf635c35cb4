/// Decides how long packets and RTX packets carry the MID and the layer: until the peer reports on
/// them and so has mapped them (RFC 9143 section 9.2, RFC 8852 section 3.3).
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

  /// The MID that a packet has to carry.
  var name: [UInt8]? { isKnown ? nil : mid }
  /// The MID that an RTX packet has to carry.
  var rtxName: [UInt8]? { isRTXKnown ? nil : mid }
  /// The layer that a packet has to name.
  var streamID: [UInt8]? { isKnown ? nil : rid }
  /// The layer that an RTX packet has to name.
  var repairedStreamID: [UInt8]? { isRTXKnown ? nil : rid }

  /// Records that the peer reported on the stream or its RTX.
  mutating func recordReport(isRTX: Bool) {
    if isRTX { isRTXKnown = true } else { isKnown = true }
  }

  /// Applies a renegotiated layer.
  mutating func rename(rid: [UInt8]?) { self.rid = rid }

  /// Records that the RTX SSRC changed.
  mutating func forgetRTX() { isRTXKnown = false }
}
