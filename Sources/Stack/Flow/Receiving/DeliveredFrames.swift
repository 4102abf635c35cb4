import RTP

/// Delivered frames, remembered as far back as later frames may refer to them.
struct DeliveredFrames {
  /// The farthest that VP9 refers back (RFC 9628 section 4.2).
  private static let most = 128

  /// TL0PICIDX of the last base layer frame.
  private var base: UInt8?
  private var pictures: [PictureID] = []

  mutating func record(_ frame: FrameAssembler.AssembledFrame) {
    if frame.isKey {
      base = nil
      pictures.removeAll(keepingCapacity: true)
    }
    if case .layer(let temporal, let index, _)? = frame.dependency, temporal == 0 { base = index }
    guard let id = frame.pictureID else { return }
    if pictures.count == DeliveredFrames.most { pictures.removeFirst() }
    pictures.append(id)
  }

  /// Whether a frame depends on no other frames than these; false if it does not say.
  ///
  /// A frame of an upper temporal layer may depend on any earlier one, unless it is a sync frame.
  func suffice(for frame: FrameAssembler.AssembledFrame) -> Bool {
    switch frame.dependency {
    case nil: return false
    case .layer(let temporal, let index, let isSync):
      guard let base else { return false }
      return temporal == 0 ? index == base &+ 1 : isSync && index == base
    case .pictures(let distances):
      guard let id = frame.pictureID, !distances.isEmpty else { return false }
      let mask: UInt16 = id.isLong ? 0x7fff : 0x7f
      return distances.allSatisfy { distance in
        pictures.contains { $0.number & mask == (id.number &- UInt16(distance)) & mask }
      }
    }
  }
}
