/// Scales I420 frames in integer arithmetic: down by averaging the pixels that are merged, up by
/// the nearest pixel.
package enum VideoScaler {
  /// The size when both sides are divided by a factor, rounded down; at least 1.
  static func size(width: Int, height: Int, dividedBy factor: Double) -> (width: Int, height: Int) {
    guard factor > 1 else { return (width, height) }
    // Larger factors would overflow the conversion; one pixel remains anyway.
    let factor = min(factor, 65_536)
    return (
      max(1, Int(Double(width) / factor)), max(1, Int(Double(height) / factor))
    )
  }

  /// Scales a frame to at least one pixel; a blank frame stays blank.
  package static func scaled(_ videoFrame: I420Buffer, width: Int, height: Int) -> I420Buffer {
    guard width != videoFrame.width || height != videoFrame.height else { return videoFrame }
    guard !videoFrame.samples.isEmpty, videoFrame.width > 0, videoFrame.height > 0, width > 0,
      height > 0
    else { return I420Buffer(width: width, height: height, samples: []) }
    let pixels = videoFrame.samples
    var samples: [UInt8] = []
    samples.reserveCapacity(I420Buffer.byteCount(width: width, height: height))
    let luma = videoFrame.width * videoFrame.height
    let (columns, rows) = ((videoFrame.width + 1) / 2, (videoFrame.height + 1) / 2)
    let planes = [
      (0, videoFrame.width, videoFrame.height, width, height),
      (luma, columns, rows, (width + 1) / 2, (height + 1) / 2),
      (luma + columns * rows, columns, rows, (width + 1) / 2, (height + 1) / 2),
    ]
    for (start, columns, rows, width, height) in planes {
      append(
        pixels.span, start, columns, rows, width, height, to: &samples)
    }
    return I420Buffer(width: width, height: height, samples: samples)
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
