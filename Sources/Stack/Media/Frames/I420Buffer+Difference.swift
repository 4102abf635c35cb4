import CYUV

extension I420Buffer {
  /// The sum of squared differences of the luma samples; nil if the frames cannot be compared.
  ///
  /// An integer, so that it is the same on any machine.
  package func squaredError(to other: I420Buffer) -> UInt64? {
    guard width == other.width, height == other.height, !samples.isEmpty, !other.samples.isEmpty
    else { return nil }
    return unsafe samples.withUnsafeBufferPointer { left in
      unsafe other.samples.withUnsafeBufferPointer { right in
        guard let left = left.baseAddress, let right = right.baseAddress else { return nil }
        return unsafe ComputeSumSquareErrorPlane(
          left, Int32(width), right, Int32(width), Int32(width), Int32(height))
      }
    }
  }
}
