import Wire

extension PayloadShare {
  /// Packetizes a byte stream as single units and FU-A fragments (RFC 6184 sections 5.6 and 5.8);
  /// empty if a unit is too large and must not be fragmented.
  static func h264(_ frame: EncodedFrame, limit: Int, fragments: Bool) -> [PayloadShare] {
    let bytes = frame.bytes.span.bytes
    var shares: [PayloadShare] = []
    for unit in H264Payload.units(of: bytes) {
      if unit.count <= limit {
        shares.append(PayloadShare(prefix: .none, range: unit))
        continue
      }
      guard fragments else { return [] }
      let header = bytes.byte(at: unit.lowerBound)
      // A fragment's own header carries the unit's header.
      let body = unit.dropFirst()
      let split = PayloadSplit(length: body.count, limit: limit - PayloadPrefix.fragmentLength)
      for part in 0..<split.count {
        let range = split[part]
        shares.append(
          PayloadShare(
            prefix: .h264Fragment(
              unitHeader: header, isFirst: part == 0, isLast: part == split.count - 1),
            range: body.lowerBound + range.lowerBound..<body.lowerBound + range.upperBound))
      }
    }
    return shares
  }
}
