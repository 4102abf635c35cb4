import Wire

/// How frames of a codec are split into packets and reassembled.
package struct PayloadFormat: Sendable {
  /// A frame to packetize, with the values that payload descriptors need.
  package struct Frame: Hashable, Sendable {
    package var frame: EncodedFrame
    /// The picture ID, 15 bits.
    package var pictureID: UInt16
    /// The TL0PICIDX: number of the last base layer frame.
    package var baseIndex: UInt8
    /// The largest payload in bytes.
    package var limit: Int
    /// Whether units of H.264 may be fragmented (packetization mode 1).
    package var fragments: Bool

    package init(
      _ frame: EncodedFrame, pictureID: UInt16, baseIndex: UInt8 = 0, limit: Int,
      fragments: Bool = true
    ) {
      self.frame = frame
      self.pictureID = pictureID
      self.baseIndex = baseIndex
      self.limit = limit
      self.fragments = fragments
    }
  }

  /// Reassembles a frame from its packets, in order.
  package typealias Join = @Sendable (_ packets: [ArraySlice<UInt8>]) -> [UInt8]

  /// Packetizes a frame; empty if it cannot be sent in packets of this size.
  package var split: @Sendable (Frame) -> [PayloadShare]
  /// Parses a video payload; nil if it is malformed, empty, or audio.
  package var read: @Sendable (RawSpan) -> VideoPacket?
  /// nil if a frame is the plain concatenation of its packets.
  package var join: Join?

  package init(
    split: @escaping @Sendable (Frame) -> [PayloadShare],
    read: @escaping @Sendable (RawSpan) -> VideoPacket?, join: Join? = nil
  ) {
    self.split = split
    self.read = read
    self.join = join
  }

  /// One audio frame per packet (RFC 7587 section 4.2).
  static let whole = PayloadFormat(
    split: { [PayloadShare(prefix: .none, range: 0..<$0.frame.bytes.count)] }, read: { _ in nil })

  /// RFC 7741.
  static let vp8 = PayloadFormat(
    split: { frame in
      frame.split { isFirst, _ in
        .vp8(
          pictureID: frame.pictureID, isFirst: isFirst,
          temporal: frame.frame.temporal.map { ($0, frame.baseIndex) })
      }
    },
    read: { VideoPacket(vp8: $0) })

  /// RFC 9628, in flexible mode.
  static let vp9 = PayloadFormat(
    split: { frame in
      frame.split { isFirst, isLast in
        .vp9(
          pictureID: frame.pictureID, isKey: frame.frame.isKey, isFirst: isFirst, isLast: isLast)
      }
    },
    read: { VideoPacket(vp9: $0) })

  /// RFC 6184.
  static let h264 = PayloadFormat(
    split: { PayloadShare.h264($0.frame, limit: $0.limit, fragments: $0.fragments) },
    read: { VideoPacket(h264: $0) })
}

extension PayloadFormat.Frame {
  /// Splits the frame into nearly equal parts, each with its prefix.
  fileprivate func split(_ prefix: (_ isFirst: Bool, _ isLast: Bool) -> PayloadPrefix)
    -> [PayloadShare]
  {
    let split = PayloadSplit(length: frame.bytes.count, limit: limit - prefix(true, true).length)
    return (0..<split.count).map { index in
      PayloadShare(prefix: prefix(index == 0, index == split.count - 1), range: split[index])
    }
  }
}
