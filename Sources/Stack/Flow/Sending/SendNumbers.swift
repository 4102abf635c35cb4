import Wire

/// Owns the numbers of a stream that is sent, which continue whatever is agreed on anew: SRTP would
/// refuse what begins again as replayed (RFC 3711 section 3.3.2).
struct SendNumbers {
  /// The sequence number that the first packet has.
  let first: UInt16
  /// What is added to the time of frames (RFC 3550 section 5.1).
  let timestampOffset: UInt32
  /// The picture ID of the next video frame (RFC 7741 section 4.2).
  private(set) var pictureID: UInt16
  /// The number of the last video frame of the temporal base layer (RFC 7741 section 4.2).
  private(set) var baseIndex: UInt8 = 0
  private var sequence: UInt16
  private var rtxSequence: UInt16

  init(_ entropy: EntropyStream) {
    // The top bit stays clear, so that an early loss cannot confuse the SRTP rollover counter.
    sequence = entropy.integer(UInt16.self) & 0x7fff
    timestampOffset = entropy.integer(UInt32.self)
    rtxSequence = entropy.integer(UInt16.self) & 0x7fff
    pictureID = entropy.integer(UInt16.self) & 0x7fff
    first = sequence
  }

  /// Gives the next sequence number away.
  mutating func takeSequence() -> UInt16 {
    defer { sequence &+= 1 }
    return sequence
  }

  /// Gives the next sequence number of retransmissions away.
  mutating func takeRTXSequence() -> UInt16 {
    defer { rtxSequence &+= 1 }
    return rtxSequence
  }

  /// Records that a video frame of the temporal base layer begins.
  mutating func beginBase() { baseIndex &+= 1 }

  /// Records that a video frame has the present picture ID.
  mutating func endFrame() { pictureID = (pictureID + 1) & 0x7fff }
}
