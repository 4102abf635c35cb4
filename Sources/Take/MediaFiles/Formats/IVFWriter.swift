/// The bytes of an IVF file: encoded video frames with their times, all numbers low byte first.
package enum IVFWriter {
  /// What stands at the front of the file: 32 bytes.
  package static func header(
    fourCC: String, width: Int, height: Int, ticksPerSecond: UInt32, frameCount: Int
  ) -> [UInt8] {
    var bytes = Array("DKIF".utf8)
    append(0, 2, to: &bytes)  // the version
    append(32, 2, to: &bytes)  // the length of the header
    bytes += Array((fourCC + "    ").utf8.prefix(4))
    append(UInt64(UInt16(clamping: width)), 2, to: &bytes)
    append(UInt64(UInt16(clamping: height)), 2, to: &bytes)
    append(UInt64(ticksPerSecond), 4, to: &bytes)
    append(1, 4, to: &bytes)  // a tick is so many parts of that
    append(UInt64(UInt32(clamping: frameCount)), 4, to: &bytes)
    append(0, 4, to: &bytes)
    return bytes
  }

  /// What stands before each video frame.
  package static func frameHeader(byteCount: Int, time: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    append(UInt64(UInt32(clamping: byteCount)), 4, to: &bytes)
    append(time, 8, to: &bytes)
    return bytes
  }

  private static func append(_ value: UInt64, _ count: Int, to bytes: inout [UInt8]) {
    for place in 0..<count { bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * place))) }
  }
}
