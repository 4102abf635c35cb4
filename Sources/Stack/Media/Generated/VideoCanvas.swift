/// Draws rectangles into the planes of an I420 frame, clipped to it.
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

  /// Wraps memory of `I420Buffer.byteCount` bytes that outlives the canvas.
  init(_ memory: UnsafeMutablePointer<UInt8>, width: Int, height: Int) {
    unsafe luma = memory
    self.width = width
    self.height = height
  }

  /// The first sample of a plane: 0 is Y, 1 is U, 2 is V.
  func plane(_ index: Int) -> UnsafeMutablePointer<UInt8> {
    switch index {
    case 0: unsafe luma
    case 1: unsafe luma + width * height
    default: unsafe luma + width * height + chromaWidth * chromaHeight
    }
  }

  /// Fills a rectangle; even coordinates keep luma and chroma together.
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
