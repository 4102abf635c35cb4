/// Gives I420 pictures another size, in whole numbers: where they become smaller by the mean of the
/// pixels that fall into one, where they become larger by the nearest pixel.
package enum PictureScaler {
  /// The size that remains when both sides are divided by a factor, rounded down; at least 1.
  static func size(width: Int, height: Int, dividedBy factor: Double) -> (width: Int, height: Int) {
    guard factor > 1 else { return (width, height) }
    // Factors beyond the largest side leave one pixel; the limit keeps the conversion safe.
    let factor = min(factor, 65_536)
    return (
      max(1, Int(Double(width) / factor)), max(1, Int(Double(height) / factor))
    )
  }

  /// The picture in another size of at least a pixel; one without content stays without.
  package static func scaled(_ picture: Picture, width: Int, height: Int) -> Picture {
    guard width != picture.width || height != picture.height else { return picture }
    guard !picture.samples.isEmpty, picture.width > 0, picture.height > 0, width > 0, height > 0
    else { return Picture(width: width, height: height, samples: []) }
    let pixels = picture.samples
    var samples: [UInt8] = []
    samples.reserveCapacity(Picture.byteCount(width: width, height: height))
    let luma = picture.width * picture.height
    let (columns, rows) = ((picture.width + 1) / 2, (picture.height + 1) / 2)
    let planes = [
      (0, picture.width, picture.height, width, height),
      (luma, columns, rows, (width + 1) / 2, (height + 1) / 2),
      (luma + columns * rows, columns, rows, (width + 1) / 2, (height + 1) / 2),
    ]
    for (start, columns, rows, width, height) in planes {
      append(
        pixels.span, start, columns, rows, width, height, to: &samples)
    }
    return Picture(width: width, height: height, samples: samples)
  }

  private static func append(
    _ planes: borrowing Span<UInt8>, _ start: Int, _ columns: Int, _ rows: Int, _ width: Int,
    _ height: Int, to samples: inout [UInt8]
  ) {
    for y in 0..<height {
      let top = y * rows / height
      let bottom = max(top + 1, (y + 1) * rows / height)
      for x in 0..<width {
        let left = x * columns / width
        let right = max(left + 1, (x + 1) * columns / width)
        var sum = 0
        for row in top..<bottom {
          for column in left..<right { sum += Int(planes[start + row * columns + column]) }
        }
        let count = (bottom - top) * (right - left)
        samples.append(UInt8(truncatingIfNeeded: (sum + count / 2) / count))
      }
    }
  }
}
