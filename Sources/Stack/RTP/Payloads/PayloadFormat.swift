import Wire

/// How frames of a codec become payloads of packets, and these become frames again.
package struct PayloadFormat: Sendable {
  /// What the payloads of one frame have to keep to.
  package struct Frame: Hashable, Sendable {
    package var frame: EncodedFrame
    /// The running number of the video frame, 15 bits.
    package var pictureID: UInt16
    /// The running number of video frames of the temporal base layer.
    package var baseIndex: UInt8
    /// The most bytes of a payload.
    package var limit: Int
    /// Whether units of H.264 may be cut (packetization mode 1).
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

  /// Creates a frame of what its packets brought, in their order.
  package typealias Join = @Sendable (_ packets: [ArraySlice<UInt8>]) -> [UInt8]

  /// Cuts a frame into shares; none when it cannot be sent in packets of this size.
  package var split: @Sendable (Frame) -> [PayloadShare]
  /// Reads a payload of video frames; nil when it is broken, empty, or audio.
  package var read: @Sendable (RawSpan) -> VideoPacket?
  /// nil if a frame is what its packets brought, one after the other.
  package var join: Join?

  package init(
    split: @escaping @Sendable (Frame) -> [PayloadShare],
    read: @escaping @Sendable (RawSpan) -> VideoPacket?, join: Join? = nil
  ) {
    self.split = split
    self.read = read
    self.join = join
  }

  /// A packet has a frame of audio and nothing else (RFC 7587 section 4.2).
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
  /// Cuts the frame into parts of nearly equal size, each with what stands before it.
  fileprivate func split(_ prefix: (_ isFirst: Bool, _ isLast: Bool) -> PayloadPrefix)
    -> [PayloadShare]
  {
    let split = PayloadSplit(length: frame.bytes.count, limit: limit - prefix(true, true).length)
    return (0..<split.count).map { index in
      PayloadShare(prefix: prefix(index == 0, index == split.count - 1), range: split[index])
    }
  }
}
