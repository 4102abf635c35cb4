extension Picture {
  /// A black picture of a size: the luma and chroma that video takes for black (ITU-T BT.601).
  package static func black(width: Int, height: Int) -> Picture {
    let luma = width * height
    let chroma = byteCount(width: width, height: height) - luma
    return Picture(
      width: width, height: height,
      samples: [UInt8](repeating: 16, count: luma) + [UInt8](repeating: 128, count: chroma))
  }
}

/// Black pictures in the place of others: of one size, made once.
package struct Blackout: Sendable {
  private var picture: Picture?

  package init() {}

  /// A black picture as large as another one; of one without content, one without.
  package mutating func black(like other: Picture) -> Picture {
    guard !other.samples.isEmpty else { return other }
    if let picture, picture.width == other.width, picture.height == other.height { return picture }
    let made = Picture.black(width: other.width, height: other.height)
    picture = made
    return made
  }
}
