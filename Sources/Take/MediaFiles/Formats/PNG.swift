import CZlib
package import Media

/// Writes video frames as PNG files (RFC 2083).
package enum PNG {
  /// Returns an I420 video frame as a PNG file, converted with the BT.601 matrix in limited range.
  package static func file(_ videoFrame: I420Buffer) -> [UInt8] {
    let (width, height) = (videoFrame.width, videoFrame.height)
    var header: [UInt8] = []
    header.append(big: UInt32(clamping: width))
    header.append(big: UInt32(clamping: height))
    // 8 bits, colour, deflate, adaptive filtering, not interlaced.
    header += [8, 2, 0, 0, 0]
    return [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + chunk("IHDR", header)
      + chunk("IDAT", compressed(rows(videoFrame))) + chunk("IEND", [])
  }

  /// Returns the rows in RGB, each preceded by a byte for "no filter".
  private static func rows(_ videoFrame: I420Buffer) -> [UInt8] {
    let (width, height) = (videoFrame.width, videoFrame.height)
    let half = (width + 1) / 2
    let chroma = width * height
    let other = chroma + half * ((height + 1) / 2)
    let samples = videoFrame.samples
    var rows: [UInt8] = []
    rows.reserveCapacity(height * (3 * width + 1))
    for y in 0..<height {
      rows.append(0)
      for x in 0..<width {
        let place = y / 2 * half + x / 2
        let luma = 298 * (Int(samples[y * width + x]) - 16)
        let blue = Int(samples[chroma + place]) - 128
        let red = Int(samples[other + place]) - 128
        for value in [
          luma + 409 * red, luma - 100 * blue - 208 * red, luma + 516 * blue,
        ] {
          rows.append(UInt8(min(max((value + 128) >> 8, 0), 255)))
        }
      }
    }
    return rows
  }

  /// Returns a zlib stream (RFC 1950); empty if memory runs out.
  private static func compressed(_ bytes: [UInt8]) -> [UInt8] {
    var length = compressBound(UInt(bytes.count))
    return [UInt8](unsafeUninitializedCapacity: Int(length)) { buffer, count in
      let code = compress2(
        buffer.baseAddress, &length, bytes, UInt(bytes.count), Z_DEFAULT_COMPRESSION)
      count = code == Z_OK ? Int(length) : 0
    }
  }

  private static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
    let body = Array(type.utf8) + content
    var bytes: [UInt8] = []
    bytes.append(big: UInt32(clamping: content.count))
    bytes += body
    bytes.append(big: UInt32(truncatingIfNeeded: crc32(0, body, UInt32(clamping: body.count))))
    return bytes
  }
}

extension [UInt8] {
  fileprivate mutating func append(big value: UInt32) {
    for shift: UInt32 in [24, 16, 8, 0] { append(UInt8(truncatingIfNeeded: value >> shift)) }
  }
}
