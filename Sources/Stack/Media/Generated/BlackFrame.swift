extension I420Buffer {
  /// Creates a black frame, with the luma and chroma of black in video (ITU-T BT.601).
  package static func black(width: Int, height: Int) -> I420Buffer {
    let luma = width * height
    let chroma = byteCount(width: width, height: height) - luma
    return I420Buffer(
      width: width, height: height,
      samples: [UInt8](repeating: 16, count: luma) + [UInt8](repeating: 128, count: chroma))
  }
}

/// Supplies black frames in place of others; the last size is cached.
package struct Blackout: Sendable {
  private var videoFrame: I420Buffer?

  package init() {}

  /// Returns a black frame of the same size; blank if the other one is.
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
