import Wire

/// The sequence numbers of a sent stream.
///
/// They survive renegotiation, because SRTP would reject a restart as replay (RFC 3711 section
/// 3.3.2).
struct SendNumbers {
  /// The initial sequence number.
  let first: UInt16
  /// The random offset of RTP timestamps (RFC 3550 section 5.1).
  let timestampOffset: UInt32
  /// The picture ID of the next video frame (RFC 7741 section 4.2).
  private(set) var pictureID: UInt16
  /// TL0PICIDX of the last base layer frame (RFC 7741 section 4.2).
  private(set) var baseIndex: UInt8 = 0
  private var sequence: UInt16
  private var rtxSequence: UInt16

  init(_ entropy: EntropyStream) {
    // The top bit is clear, so that an early loss cannot confuse the SRTP rollover counter.
    sequence = entropy.integer(UInt16.self) & 0x7fff
    timestampOffset = entropy.integer(UInt32.self)
    rtxSequence = entropy.integer(UInt16.self) & 0x7fff
    pictureID = entropy.integer(UInt16.self) & 0x7fff
    first = sequence
  }

  /// Returns the next sequence number and advances it.
  mutating func nextSequence() -> UInt16 {
    defer { sequence &+= 1 }
    return sequence
  }

  /// Returns the next RTX sequence number and advances it.
  mutating func nextRTXSequence() -> UInt16 {
    defer { rtxSequence &+= 1 }
    return rtxSequence
  }

  /// Records that a base layer frame begins.
  mutating func beginBase() { baseIndex &+= 1 }

  /// Records that the current picture ID is used up.
  mutating func endFrame() { pictureID = (pictureID + 1) & 0x7fff }
}
