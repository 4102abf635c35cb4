extension I420Buffer {
  /// A black video frame of a size: the luma and chroma that video takes for black (ITU-T BT.601).
  package static func black(width: Int, height: Int) -> I420Buffer {
    let luma = width * height
    let chroma = byteCount(width: width, height: height) - luma
    return I420Buffer(
      width: width, height: height,
      samples: [UInt8](repeating: 16, count: luma) + [UInt8](repeating: 128, count: chroma))
  }
}

/// Black video frames in the place of others: of one size, made once.
package struct Blackout: Sendable {
  private var videoFrame: I420Buffer?

  package init() {}

  /// A black video frame as large as another one; of one without content, one without.
  package mutating func black(like other: I420Buffer) -> I420Buffer {
    guard !other.samples.isEmpty else { return other }
    if let videoFrame, videoFrame.width == other.width, videoFrame.height == other.height {
      return videoFrame
    }
    let made = I420Buffer.black(width: other.width, height: other.height)
    videoFrame = made
    return made
  }
}
