/// A camera's view of a textured scene as a pure function of the frame number: moving shapes of
/// several sizes, with sensor noise that differs in each frame.
///
/// It stands in for real video when the size of takes is measured: a drawn pattern compresses far
/// better, and plain noise not at all.
package final class CameraScene: Sendable {
  /// The size of each frame in pixels; sides are clamped to 2 to 4096.
  package let width: Int
  package let height: Int

  /// The texture's octaves: cells are 2 to the power of `shift` pixels wide, and `reach` is the
  /// amplitude.
  private static let octaves: [(shift: Int, reach: Int)] = [
    (6, 96), (5, 48), (4, 24), (3, 12), (2, 6), (1, 2),
  ]

  private let texture: [UInt8]
  private let textureWidth: Int
  private let chroma: [UInt8]
  /// Noise samples that are used in turn, with a standard deviation of 1.2 for luma and 0.8 for
  /// chroma.
  private let lumaNoise: [Int8]
  private let chromaNoise: [Int8]

  private static let margin = 64
  private static let noiseCount = 1 << 16

  package init(width: Int, height: Int) {
    self.width = min(max(width, 2), 4_096)
    self.height = min(max(height, 2), 4_096)
    textureWidth = self.width + CameraScene.margin
    texture = CameraScene.texture(
      width: textureWidth, height: self.height, octaves: CameraScene.octaves[...])
    chroma = CameraScene.texture(
      width: textureWidth, height: self.height, octaves: CameraScene.octaves[..<2])
    var random = Random(state: 0x9e37_79b9_7f4a_7c15)
    lumaNoise = random.noise(count: CameraScene.noiseCount, spread: 33)
    chromaNoise = random.noise(count: CameraScene.noiseCount, spread: 22)
  }

  /// Returns the frame with this number; the first frame has number 0.
  package func videoFrame(_ number: Int64) -> I420Buffer {
    var random = Random(state: UInt64(bitPattern: number) &* 0xd134_2543_de82_ef95 | 1)
    // The view moves back and forth by one pixel per frame.
    let phase = Int(number.magnitude % UInt64(2 * CameraScene.margin))
    let shift = phase < CameraScene.margin ? phase : 2 * CameraScene.margin - 1 - phase
    var samples: [UInt8] = []
    samples.reserveCapacity(I420Buffer.byteCount(width: width, height: height))
    for row in 0..<height {
      append(texture, row * textureWidth + shift, 1, width, lumaNoise, &random, to: &samples)
    }
    let (columns, rows) = ((width + 1) / 2, (height + 1) / 2)
    for plane in 0..<2 {
      for row in 0..<rows {
        let line = plane == 0 ? row : rows - 1 - row
        append(
          chroma, min(2 * line, height - 1) * textureWidth + shift, 2, columns, chromaNoise,
          &random, to: &samples)
      }
    }
    return I420Buffer(width: width, height: height, samples: samples)
  }

  private func append(
    _ texture: [UInt8], _ start: Int, _ step: Int, _ count: Int, _ noise: [Int8],
    _ random: inout Random, to samples: inout [UInt8]
  ) {
    var place = Int(truncatingIfNeeded: random.next() % UInt64(CameraScene.noiseCount))
    for column in 0..<count {
      let value = Int(texture[start + column * step]) + Int(noise[place])
      samples.append(UInt8(clamping: value))
      place = (place + 1) & (CameraScene.noiseCount - 1)
    }
  }

  /// Creates a texture by adding up values interpolated linearly on lattices of several widths.
  private static func texture(
    width: Int, height: Int, octaves: ArraySlice<(shift: Int, reach: Int)>
  ) -> [UInt8] {
    var values = [UInt8](repeating: 0, count: width * height)
    for row in 0..<height {
      for column in 0..<width {
        var sum = 128
        for (shift, reach) in octaves { sum += octave(column, row, shift, reach) }
        values[row * width + column] = UInt8(clamping: min(max(sum, 16), 235))
      }
    }
    return values
  }

  private static func octave(_ x: Int, _ y: Int, _ shift: Int, _ reach: Int) -> Int {
    let (column, row, size) = (x >> shift, y >> shift, 1 << shift)
    let (right, down) = (x & (size - 1), y & (size - 1))
    func corner(_ x: Int, _ y: Int) -> Int {
      var random = Random(
        state: UInt64(truncatingIfNeeded: (x << 20 ^ y << 4 ^ shift) &* 0x9e37_79b9 &+ 1))
      return Int(random.next() & 0xff) - 128
    }
    let top = corner(column, row) * (size - right) + corner(column + 1, row) * right
    let bottom = corner(column, row + 1) * (size - right) + corner(column + 1, row + 1) * right
    return (top * (size - down) + bottom * down) * reach / (size * size * 256)
  }

  /// A portable random number generator (xorshift64*).
  private struct Random {
    var state: UInt64

    mutating func next() -> UInt64 {
      state ^= state >> 12
      state ^= state << 25
      state ^= state >> 27
      return (state &* 0x2545_f491_4f6c_dd1d) >> 16
    }

    /// Returns nearly normal noise: sums of four bytes, with a standard deviation of 148, scaled by
    /// `spread` / 4096.
    mutating func noise(count: Int, spread: Int) -> [Int8] {
      (0..<count).map { _ in
        let bits = next()
        let sum = (0..<4).reduce(0) { $0 + Int(bits >> UInt64(8 * $1) & 0xff) } - 510
        let scaled = sum * spread
        return Int8(clamping: (scaled + (scaled < 0 ? -2_048 : 2_048)) / 4_096)
      }
    }
  }
}
