import CYUV
import Testing

@testable import Media

/// Tests how frames of any format are converted to upright I420 for an encoder.
struct VideoFrameTests {
  /// Returns bytes that look random but depend only on the seed.
  private func bytes(_ count: Int, seed: Int = 1) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: ($0 + seed) &* 2_654_435_761 >> 13) }
  }

  private func frame(
    _ format: VideoPixelFormat, _ width: Int, _ height: Int, rotation: VideoRotation = .none,
    visible: VideoRectangle? = nil
  ) throws -> VideoFrame {
    let buffer = try VideoFrameBuffer(
      format: format, codedWidth: width, codedHeight: height,
      bytes: bytes(format.byteCount(width: width, height: height)))
    return try VideoFrame(
      buffer: buffer, visibleRect: visible, rotation: rotation, timestampNanoseconds: 7)
  }

  private func address(_ bytes: [UInt8]) -> UInt {
    bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
  }

  @Test func uprightI420IsHandedOverWithoutACopy() throws {
    let frame = try frame(.i420, 64, 48)
    let videoFrame = frame.videoFrame()
    #expect(address(videoFrame.samples) == address(frame.buffer.bytes))
    // Converted back, the samples are the same.
    let again = try VideoFrame(videoFrame, timestampNanoseconds: 0)
    #expect(address(again.buffer.bytes) == address(videoFrame.samples))
    #expect(address(again.upright.buffer.bytes) == address(videoFrame.samples))
  }

  @Test func aFrameIsCopiedOnlyWhenItIsShared() throws {
    var frame = try frame(.nv12, 16, 16)
    let original = address(frame.buffer.bytes)
    frame.withMutableBytes { $0[0] = 9 }
    #expect(address(frame.buffer.bytes) == original && frame.buffer.bytes[0] == 9)
    let other = frame
    frame.withMutableBytes { $0[0] = 10 }
    #expect(other.buffer.bytes[0] == 9 && frame.buffer.bytes[0] == 10)
    #expect(address(other.buffer.bytes) == original)
  }

  @Test(arguments: [(16, 16), (17, 9), (1, 1), (2, 3), (639, 5)])
  func nv12KeepsItsSamples(width: Int, height: Int) throws {
    let frame = try frame(.nv12, width, height)
    let source = frame.buffer.bytes
    let luma = width * height
    let chroma = (width + 1) / 2 * ((height + 1) / 2)
    let videoFrame = frame.videoFrame()
    #expect(videoFrame.samples[..<luma] == source[..<luma])
    for index in 0..<chroma {
      #expect(videoFrame.samples[luma + index] == source[luma + 2 * index])
      #expect(videoFrame.samples[luma + chroma + index] == source[luma + 2 * index + 1])
    }
  }

  /// Computes Y, U and V by the BT.601 formula, limited range.
  @Test(arguments: [
    (0, 0, 0), (255, 255, 255), (255, 0, 0), (0, 255, 0), (0, 0, 255), (40, 130, 220),
  ])
  func coloursFollowBT601InBothOrders(red: Int, green: Int, blue: Int) throws {
    let (r, g, b) = (Double(red), Double(green), Double(blue))
    let wanted = [
      16 + (65.481 * r + 128.553 * g + 24.966 * b) / 255,
      128 + (-37.797 * r - 74.203 * g + 112 * b) / 255,
      128 + (112 * r - 93.786 * g - 18.214 * b) / 255,
    ]
    let pixel: [VideoPixelFormat: [Int]] = [
      .bgra: [blue, green, red, 255], .argb: [255, red, green, blue],
    ]
    for (format, order) in pixel {
      let bytes = (0..<16).flatMap { _ in order.map { UInt8($0) } }
      let buffer = try VideoFrameBuffer(
        format: format, codedWidth: 4, codedHeight: 4, bytes: bytes)
      let samples = try VideoFrame(buffer: buffer, timestampNanoseconds: 0).videoFrame().samples
      for (place, value) in zip([0, 16, 20], wanted) {
        #expect(abs(Double(samples[place]) - value) <= 1.5, "\(format) \(place)")
      }
    }
  }

  @Test(arguments: VideoPixelFormat.allCases, VideoRotation.allCases)
  func rotationIsApplied(format: VideoPixelFormat, rotation: VideoRotation) throws {
    let (width, height) = (22, 10)
    let upright = try frame(format, width, height).videoFrame()
    let turned = try frame(format, width, height, rotation: rotation)
    let videoFrame = turned.videoFrame()
    #expect(videoFrame.width == turned.displayWidth && videoFrame.height == turned.displayHeight)
    #expect((videoFrame.width == height) == rotation.swapsSides)
    let planes = [(0, width, height), (width * height, width / 2, height / 2)]
    for (start, columns, rows) in planes {
      for y in 0..<rows {
        for x in 0..<columns {
          let (toX, toY) =
            switch rotation {
            case .none: (x, y)
            case .quarter: (rows - 1 - y, x)
            case .half: (columns - 1 - x, rows - 1 - y)
            case .threeQuarters: (y, columns - 1 - x)
            }
          let stride = rotation.swapsSides ? rows : columns
          #expect(
            videoFrame.samples[start + toY * stride + toX]
              == upright.samples[start + y * columns + x])
        }
      }
    }
  }

  @Test(arguments: VideoPixelFormat.allCases)
  func onlyTheVisiblePartIsCopied(format: VideoPixelFormat) throws {
    let whole = try frame(format, 20, 12).videoFrame()
    let visible = VideoRectangle(x: 4, y: 2, width: 9, height: 7)
    let part = try frame(format, 20, 12, visible: visible).videoFrame()
    #expect(part.width == 9 && part.height == 7)
    for y in 0..<7 {
      for x in 0..<9 {
        #expect(part.samples[y * 9 + x] == whole.samples[(y + 2) * 20 + x + 4])
      }
    }
  }

  @Test func rowsMayHavePadding() throws {
    let plain = try frame(.bgra, 6, 4)
    var padded: [UInt8] = [1, 2, 3]
    for row in 0..<4 {
      padded += plain.buffer.bytes[row * 24..<(row + 1) * 24] + [UInt8](repeating: 99, count: 8)
    }
    let buffer = try VideoFrameBuffer(
      format: .bgra, codedWidth: 6, codedHeight: 4, planes: [.init(offset: 3, stride: 32)],
      bytes: padded)
    let frame = try VideoFrame(buffer: buffer, timestampNanoseconds: 0)
    #expect(frame.videoFrame().samples == plain.videoFrame().samples)
  }

  private func buffer(
    _ width: Int, _ height: Int, _ count: Int, _ planes: [VideoFrameBuffer.Plane]? = nil
  ) throws -> VideoFrameBuffer {
    try VideoFrameBuffer(
      format: .i420, codedWidth: width, codedHeight: height, planes: planes,
      bytes: [UInt8](repeating: 0, count: count))
  }

  @Test func invalidPlanesAreRefused() throws {
    let plane = VideoFrameBuffer.Plane(offset: 0, stride: 8)
    for (width, height, count) in [(0, 4, 100), (4, 20_000, 100), (8, 8, 95)] {
      #expect(throws: VideoFrameError.self) { try buffer(width, height, count) }
    }
    for last in [(Int.max, 4), (0, .max), (-1, 4), (0, 3), (81, 4)] {
      let other = VideoFrameBuffer.Plane(offset: last.0, stride: last.1)
      #expect(throws: VideoFrameError.self) { try buffer(8, 8, 96, [plane, plane, other]) }
    }
    #expect(throws: VideoFrameError.self) { try buffer(8, 8, 96, [plane]) }
    let good = try buffer(8, 8, 96)
    for visible in [
      VideoRectangle(x: 8, y: 0, width: 1, height: 1), .init(x: 0, y: 0, width: 9, height: 8),
      .init(x: 0, y: 0, width: 0, height: 8), .init(x: 1, y: 0, width: 2, height: 2),
      .init(x: .max, y: 0, width: .max, height: 1),
    ] {
      #expect(throws: VideoFrameError.self) {
        try VideoFrame(buffer: good, visibleRect: visible, timestampNanoseconds: 0)
      }
    }
  }

  /// The code for this processor's instructions returns the same result as plain C.
  ///
  /// Takes do not depend on this, because frames are converted before they are recorded.
  @Test func conversionsAreTheSameWithoutTheInstructionsOfThisProcessor() throws {
    for format in VideoPixelFormat.allCases {
      for rotation in VideoRotation.allCases {
        let frame = try frame(format, 101, 37, rotation: rotation)
        let fast = frame.videoFrame().samples
        // Allows only libyuv's C code.
        _ = MaskCpuFlags(1)
        let plain = frame.videoFrame().samples
        _ = MaskCpuFlags(-1)
        #expect(fast == plain, "\(format) \(rotation)")
      }
    }
  }
}
