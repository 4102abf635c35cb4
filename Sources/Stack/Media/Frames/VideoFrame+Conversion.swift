import CYUV

// Converts pixels with libyuv for encoders and screens.
extension VideoFrame {
  /// Returns the visible part as an upright I420 frame, as encoders need it.
  ///
  /// Upright I420 without cropping or row padding is returned without a copy. Everything else is
  /// converted and rotated in one pass, except rotated RGB, which takes two. RGB is converted to Y
  /// from 16 to 235 and U and V from 16 to 240 with the BT.601 matrix.
  public func videoFrame() -> I420Buffer {
    let whole = VideoRectangle(width: codedWidth, height: codedHeight)
    if format == .i420, rotation == .none, visibleRect == whole, buffer.isTight {
      return I420Buffer(width: codedWidth, height: codedHeight, samples: buffer.bytes)
    }
    switch format {
    case .i420, .nv12: return turnedPlanes()
    case .bgra, .argb:
      let upright = convertedPixels()
      guard rotation != .none else { return upright }
      return upright.turned(rotation)
    }
  }

  /// Returns the visible part, upright, as packed rows of RGBA for display, converted with the
  /// BT.601 matrix and with alpha 255.
  public func rgba() -> [UInt8] {
    let planes = videoFrame()
    let (width, height) = (planes.width, planes.height)
    let chroma = Int32((width + 1) / 2)
    let chromaCount = (width + 1) / 2 * ((height + 1) / 2)
    guard planes.samples.count >= width * height + 2 * chromaCount else { return [] }
    return unsafe [UInt8](unsafeUninitializedCapacity: 4 * width * height) { target, count in
      unsafe planes.samples.withUnsafeBufferPointer { source in
        guard let y = source.baseAddress else { return }
        let u = unsafe y + width * height
        // libyuv names the bytes of a little-endian word from the highest to the lowest, so its
        // ABGR is R, G, B, A in memory.
        _ = unsafe I420ToABGR(
          y, Int32(width), u, chroma, u + chromaCount, chroma, target.baseAddress,
          Int32(4 * width), Int32(width), Int32(height))
        count = 4 * width * height
      }
    }
  }

  private func turnedPlanes() -> I420Buffer {
    let (x, y) = (visibleRect.x, visibleRect.y)
    let (columns, rows) = (Int32(visibleRect.width), Int32(visibleRect.height))
    let mode = rotation.mode
    return I420Buffer(width: displayWidth, height: displayHeight) { target in
      unsafe buffer.bytes.withUnsafeBufferPointer { source in
        guard let base = source.baseAddress else { return }
        let luma = unsafe base + buffer.planes[0].offset + y * buffer.planes[0].stride + x
        let chroma = buffer.planes[1]
        let strides = buffer.planes.map { Int32(clamping: $0.stride) }
        if format == .nv12 {
          let colour = unsafe base + chroma.offset + y / 2 * chroma.stride + x
          _ = unsafe NV12ToI420Rotate(
            luma, strides[0], colour, strides[1], target.y, target.stride, target.u,
            target.chromaStride, target.v, target.chromaStride, columns, rows, mode)
        } else {
          let other = buffer.planes[2]
          let u = unsafe base + chroma.offset + y / 2 * chroma.stride + x / 2
          let v = unsafe base + other.offset + y / 2 * other.stride + x / 2
          _ = unsafe I420Rotate(
            luma, strides[0], u, strides[1], v, strides[2], target.y, target.stride, target.u,
            target.chromaStride, target.v, target.chromaStride, columns, rows, mode)
        }
      }
    }
  }

  /// Converts the visible part of an RGB frame, without rotating it.
  private func convertedPixels() -> I420Buffer {
    let plane = buffer.planes[0]
    let (columns, rows) = (visibleRect.width, visibleRect.height)
    return I420Buffer(width: columns, height: rows) { target in
      unsafe buffer.bytes.withUnsafeBufferPointer { source in
        guard let base = source.baseAddress else { return }
        let pixels = unsafe base + plane.offset + visibleRect.y * plane.stride + visibleRect.x * 4
        // libyuv names the bytes of a little-endian word from the highest to the lowest, so its
        // ARGB is B, G, R, A in memory.
        let convert = unsafe format == .bgra ? ARGBToI420 : BGRAToI420
        _ = unsafe convert(
          pixels, Int32(clamping: plane.stride), target.y, target.stride, target.u,
          target.chromaStride, target.v, target.chromaStride, Int32(columns), Int32(rows))
      }
    }
  }
}

extension I420Buffer {
  /// The planes of a frame while it is being filled.
  struct Target {
    var y: UnsafeMutablePointer<UInt8>
    var u: UnsafeMutablePointer<UInt8>
    var v: UnsafeMutablePointer<UInt8>
    var stride: Int32
    var chromaStride: Int32
  }

  /// Creates a frame and lets `fill` write its samples.
  convenience init(width: Int, height: Int, filling fill: (Target) -> Void) {
    let count = I420Buffer.byteCount(width: width, height: height)
    let (columns, rows) = ((width + 1) / 2, (height + 1) / 2)
    let samples = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      guard let base = buffer.baseAddress else { return }
      unsafe fill(
        Target(
          y: base, u: base + width * height, v: base + width * height + columns * rows,
          stride: Int32(width), chromaStride: Int32(columns)))
      initialized = count
    }
    self.init(width: width, height: height, samples: samples)
  }

  /// Rotates the frame clockwise; a blank frame stays blank.
  func turned(_ rotation: VideoRotation) -> I420Buffer {
    let (columns, rows) = rotation.swapsSides ? (height, width) : (width, height)
    guard !samples.isEmpty else { return I420Buffer(width: columns, height: rows, samples: []) }
    let (chroma, mode) = (Int32((width + 1) / 2), rotation.mode)
    let chromaCount = (width + 1) / 2 * ((height + 1) / 2)
    return I420Buffer(width: columns, height: rows) { target in
      unsafe samples.withUnsafeBufferPointer { source in
        guard let y = source.baseAddress else { return }
        let u = unsafe y + width * height
        _ = unsafe I420Rotate(
          y, Int32(width), u, chroma, u + chromaCount, chroma, target.y, target.stride, target.u,
          target.chromaStride, target.v, target.chromaStride, Int32(width), Int32(height), mode)
      }
    }
  }
}

extension VideoRotation {
  fileprivate var mode: RotationModeEnum {
    switch self {
    case .none: kRotate0
    case .quarter: kRotate90
    case .half: kRotate180
    case .threeQuarters: kRotate270
    }
  }
}
