package import Media

/// Writes video frames as PNG files (RFC 2083) without compression: what counts is that any program
/// shows them.
package enum PNG {
  /// The file of an I420 video frame, converted with the BT.601 matrix in limited range.
  package static func file(_ videoFrame: I420Buffer) -> [UInt8] {
    let (width, height) = (videoFrame.width, videoFrame.height)
    var header: [UInt8] = []
    header.append(big: UInt32(clamping: width))
    header.append(big: UInt32(clamping: height))
    // 8 bits, colour, deflate, no filter choice, not interlaced.
    header += [8, 2, 0, 0, 0]
    return [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + chunk("IHDR", header)
      + chunk("IDAT", stored(rows(videoFrame))) + chunk("IEND", [])
  }

  /// The rows in RGB, each after a byte that says that it is not filtered.
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

  /// A zlib stream (RFC 1950) of blocks that are stored as they are (RFC 1951 section 3.2.4).
  private static func stored(_ bytes: [UInt8]) -> [UInt8] {
    var stream: [UInt8] = [0x78, 0x01]
    var start = 0
    repeat {
      let end = min(start + 65_535, bytes.count)
      let length = UInt16(end - start)
      stream.append(end == bytes.count ? 1 : 0)
      for word in [length, ~length] {
        stream += [UInt8(truncatingIfNeeded: word), UInt8(truncatingIfNeeded: word >> 8)]
      }
      stream += bytes[start..<end]
      start = end
    } while start < bytes.count
    var (low, high): (UInt32, UInt32) = (1, 0)
    for byte in bytes {
      low = (low + UInt32(byte)) % 65_521
      high = (high + low) % 65_521
    }
    stream.append(big: high << 16 | low)
    return stream
  }

  private static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
    let body = Array(type.utf8) + content
    var bytes: [UInt8] = []
    bytes.append(big: UInt32(clamping: content.count))
    bytes += body
    bytes.append(big: checksum(body))
    return bytes
  }

  private static let table: [UInt32] = (0..<256).map { number in
    (0..<8).reduce(UInt32(number)) { value, _ in
      value & 1 == 1 ? value >> 1 ^ 0xedb8_8320 : value >> 1
    }
  }

  /// CRC-32 as RFC 2083 section 15 has it.
  private static func checksum(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(UInt32.max) { table[Int(($0 ^ UInt32($1)) & 255)] ^ $0 >> 8 }
  }
}

extension [UInt8] {
  fileprivate mutating func append(big value: UInt32) {
    for shift: UInt32 in [24, 16, 8, 0] { append(UInt8(truncatingIfNeeded: value >> shift)) }
  }
}
