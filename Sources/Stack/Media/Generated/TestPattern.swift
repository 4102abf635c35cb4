/// A moving test pattern as a pure function of the frame number, cheap enough to generate for every
/// frame.
///
/// Colour bars move left, a diagonal gradient moves right, fine noise stands still, a box bounces,
/// and seven-segment digits show the frame number. The moving bands are rows drawn once at twice
/// the width and copied from a shifting offset.
package final class TestPattern: Sendable {
  /// The size of each frame in pixels.
  package let width: Int
  package let height: Int

  /// A band of equal rows: one row for each plane, stored at twice the plane's width.
  private struct Band {
    var planes: [[UInt8]]
  }

  private let bars: Band
  private let gradient: Band
  private let background: [UInt8]

  /// Bars of 75 % saturation from white to black (ITU-R BT.601, limited range).
  private static let barColours: [VideoCanvas.Colour] = [
    .init(y: 180, u: 128, v: 128), .init(y: 162, u: 44, v: 142), .init(y: 131, u: 156, v: 44),
    .init(y: 112, u: 72, v: 58), .init(y: 84, u: 184, v: 198), .init(y: 65, u: 100, v: 212),
    .init(y: 35, u: 212, v: 114), .init(y: 16, u: 128, v: 128),
  ]

  /// Prepares the pattern; sides are clamped to 1 to 4096 pixels.
  package init(width: Int, height: Int) {
    self.width = min(max(width, 1), 4_096)
    self.height = min(max(height, 1), 4_096)
    bars = TestPattern.makeBars(width: self.width)
    gradient = TestPattern.makeGradient(width: self.width)
    background = TestPattern.makeNoise(width: self.width, height: self.height)
  }

  /// Returns the frame with this number; the first frame has number 0.
  package func videoFrame(_ number: Int64) -> I420Buffer {
    let samples = unsafe [UInt8](
      unsafeUninitializedCapacity: background.count
    ) { buffer, initialized in
      guard let memory = buffer.baseAddress else { return }
      unsafe draw(VideoCanvas(memory, width: width, height: height), number)
      initialized = background.count
    }
    return I420Buffer(width: width, height: height, samples: samples)
  }

  // MARK: - Drawing

  private func draw(_ canvas: VideoCanvas, _ number: Int64) {
    let barsEnd = height / 2 & ~1
    let gradientEnd = height * 3 / 4 & ~1
    copy(bars, to: canvas, rows: 0..<barsEnd) { _ in number * 2 }
    copy(gradient, to: canvas, rows: barsEnd..<gradientEnd) { row in
      Int64(row) - number * 4
    }
    copyBackground(to: canvas, rows: gradientEnd..<height)
    drawBox(canvas, number)
    drawCounter(canvas, number)
  }

  /// Copies a band's rows, each from the offset in luma pixels that `shift` returns for it.
  private func copy(
    _ band: Band, to canvas: VideoCanvas, rows: Range<Int>, shift: (Int) -> Int64
  ) {
    for plane in 0..<3 {
      let half = plane == 0 ? 1 : 2
      let columns = plane == 0 ? width : canvas.chromaWidth
      let lines = rows.lowerBound / half..<(rows.upperBound + half - 1) / half
      unsafe band.planes[plane].withUnsafeBufferPointer { source in
        guard let first = source.baseAddress else { return }
        for line in lines {
          let place = shift(line * half) / Int64(half) % Int64(columns)
          let start = Int(place < 0 ? place + Int64(columns) : place)
          let target = unsafe canvas.plane(plane) + line * columns
          unsafe target.initialize(from: first + start, count: columns)
        }
      }
    }
  }

  private func copyBackground(to canvas: VideoCanvas, rows: Range<Int>) {
    unsafe background.withUnsafeBufferPointer { source in
      guard let first = source.baseAddress else { return }
      var start = 0
      for plane in 0..<3 {
        let half = plane == 0 ? 1 : 2
        let columns = plane == 0 ? width : canvas.chromaWidth
        let lines = rows.lowerBound / half..<(rows.upperBound + half - 1) / half
        let offset = lines.lowerBound * columns
        unsafe (canvas.plane(plane) + offset).initialize(
          from: first + start + offset, count: lines.count * columns)
        start += columns * (plane == 0 ? height : canvas.chromaHeight)
      }
    }
  }

  /// Draws a box that bounces between the edges and changes colour every 32 frames.
  private func drawBox(_ canvas: VideoCanvas, _ number: Int64) {
    let side = max(2, min(width, height) / 4) & ~1
    let x = bounce(number * 4, within: width - side)
    let y = bounce(number * 2, within: height - side)
    let edge = max(2, side / 10) & ~1
    canvas.fill(x: x, y: y, width: side, height: side, .white)
    let colour = TestPattern.barColours[Int((number / 32) % 7)]
    canvas.fill(
      x: x + edge, y: y + edge, width: side - 2 * edge, height: side - 2 * edge, colour)
  }

  /// Returns a position that moves back and forth between 0 and a limit, always even.
  private func bounce(_ way: Int64, within limit: Int) -> Int {
    guard limit > 0 else { return 0 }
    let place = Int(way % Int64(2 * limit))
    return (place <= limit ? place : 2 * limit - place) & ~1
  }

  // MARK: - Counter

  /// Draws the number's last six digits, white on black, in the middle of the upper half.
  private func drawCounter(_ canvas: VideoCanvas, _ number: Int64) {
    let unit = max(2, min(width / 40, height / 24)) & ~1
    let (digitWidth, digitHeight) = (4 * unit, 7 * unit)
    let left = max(0, width / 2 - 3 * digitWidth - digitWidth / 2) & ~1
    let top = max(0, height / 4 - digitHeight / 2) & ~1
    canvas.fill(
      x: left - unit, y: top - unit, width: 6 * digitWidth + unit, height: digitHeight + 2 * unit,
      .black)
    var rest = number % 1_000_000
    for place in stride(from: 5, through: 0, by: -1) {
      drawDigit(canvas, Int(rest % 10), x: left + place * digitWidth, y: top, unit: unit)
      rest /= 10
    }
  }

  /// Each digit's segments from the lowest bit: top, upper left, upper right, middle, lower left,
  /// lower right, bottom.
  private static let segments: [UInt8] = [
    0b111_0111, 0b010_0100, 0b101_1101, 0b110_1101, 0b010_1110, 0b110_1011, 0b111_1011,
    0b010_0101, 0b111_1111, 0b110_1111,
  ]

  private func drawDigit(_ canvas: VideoCanvas, _ digit: Int, x: Int, y: Int, unit: Int) {
    let lit = TestPattern.segments[digit]
    for segment in 0..<7 where lit & 1 << segment != 0 {
      switch segment {
      case 0: canvas.fill(x: x, y: y, width: 3 * unit, height: unit, .white)
      case 1: canvas.fill(x: x, y: y, width: unit, height: 4 * unit, .white)
      case 2: canvas.fill(x: x + 2 * unit, y: y, width: unit, height: 4 * unit, .white)
      case 3: canvas.fill(x: x, y: y + 3 * unit, width: 3 * unit, height: unit, .white)
      case 4: canvas.fill(x: x, y: y + 3 * unit, width: unit, height: 4 * unit, .white)
      case 5: canvas.fill(x: x + 2 * unit, y: y + 3 * unit, width: unit, height: 4 * unit, .white)
      default: canvas.fill(x: x, y: y + 6 * unit, width: 3 * unit, height: unit, .white)
      }
    }
  }

  // MARK: - Preparation

  private static func makeBars(width: Int) -> Band {
    band(width: width) { column, columns in
      let colour = barColours[column * barColours.count / columns]
      return [colour.y, colour.u, colour.v]
    }
  }

  /// Creates rows in which luma and chroma rise and fall once over the width, so that the ends
  /// meet.
  private static func makeGradient(width: Int) -> Band {
    band(width: width) { column, columns in
      let place = column * 510 / columns
      let wave = place <= 255 ? place : 510 - place
      let value = UInt8(20 + wave * 210 / 255)
      return [value, UInt8(80 + wave * 96 / 255), UInt8(176 - wave * 96 / 255)]
    }
  }

  /// Creates a band's rows from the colour of each column, at full or half width.
  private static func band(width: Int, colour: (Int, Int) -> [UInt8]) -> Band {
    Band(
      planes: (0..<3).map { plane in
        let columns = plane == 0 ? width : (width + 1) / 2
        return (0..<2 * columns).map { colour($0 % columns, columns)[plane] }
      })
  }

  /// Creates low-contrast noise around grey, from a fixed linear congruential sequence.
  private static func makeNoise(width: Int, height: Int) -> [UInt8] {
    var state: UInt32 = 0x2545_F491
    let lumaCount = width * height
    return (0..<I420Buffer.byteCount(width: width, height: height)).map { index in
      guard index < lumaCount else { return 128 }
      state = state &* 1_664_525 &+ 1_013_904_223
      return 96 + UInt8(state >> 26)
    }
  }
}

// MARK: - VideoCanvas

/// Draws rectangles into an I420 frame's planes, clipped to the frame.
struct VideoCanvas {
  /// A colour: luma and the two chroma values.
  struct Colour: Hashable {
    var y: UInt8
    var u: UInt8
    var v: UInt8

    static let black = Colour(y: 16, u: 128, v: 128)
    static let white = Colour(y: 235, u: 128, v: 128)
  }

  let width: Int
  let height: Int
  private let luma: UnsafeMutablePointer<UInt8>

  var chromaWidth: Int { (width + 1) / 2 }
  var chromaHeight: Int { (height + 1) / 2 }

  /// Wraps memory of `I420Buffer.byteCount` bytes that must outlive the canvas.
  init(_ memory: UnsafeMutablePointer<UInt8>, width: Int, height: Int) {
    unsafe luma = memory
    self.width = width
    self.height = height
  }

  /// Returns a plane's first sample: 0 is Y, 1 is U, 2 is V.
  func plane(_ index: Int) -> UnsafeMutablePointer<UInt8> {
    switch index {
    case 0: unsafe luma
    case 1: unsafe luma + width * height
    default: unsafe luma + width * height + chromaWidth * chromaHeight
    }
  }

  /// Fills a rectangle; even coordinates keep luma and chroma aligned.
  func fill(x: Int, y: Int, width: Int, height: Int, _ colour: Colour) {
    unsafe fill(plane(0), self.width, self.height, x, y, width, height, colour.y)
    let (halfWidth, halfHeight) = ((width + 1) / 2, (height + 1) / 2)
    unsafe fill(
      plane(1), chromaWidth, chromaHeight, x / 2, y / 2, halfWidth, halfHeight, colour.u)
    unsafe fill(
      plane(2), chromaWidth, chromaHeight, x / 2, y / 2, halfWidth, halfHeight, colour.v)
  }

  private func fill(
    _ plane: UnsafeMutablePointer<UInt8>, _ columns: Int, _ rows: Int, _ x: Int, _ y: Int,
    _ width: Int, _ height: Int, _ value: UInt8
  ) {
    let left = min(max(x, 0), columns)
    let right = min(max(x + width, left), columns)
    let top = min(max(y, 0), rows)
    let bottom = min(max(y + height, top), rows)
    guard right > left else { return }
    for row in top..<bottom {
      unsafe (plane + row * columns + left).update(repeating: value, count: right - left)
    }
  }
}

extension I420Buffer {
  /// Creates a black frame in limited-range luma and chroma (ITU-R BT.601).
  package static func black(width: Int, height: Int) -> I420Buffer {
    let luma = width * height
    let chroma = byteCount(width: width, height: height) - luma
    return I420Buffer(
      width: width, height: height,
      samples: [UInt8](repeating: 16, count: luma) + [UInt8](repeating: 128, count: chroma))
  }
}

/// Supplies black frames to replace a track's frames, and creates a new one only if the size
/// changes.
package struct Blackout: Sendable {
  private var videoFrame: I420Buffer?

  package init() {}

  /// Returns a black frame of another frame's size; blank if that frame is blank.
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
