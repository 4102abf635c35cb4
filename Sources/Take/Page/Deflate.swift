import CZlib

/// Compression that every browser can undo (RFC 1951).
enum Deflate {
  /// The bytes as a raw stream; nil when there is no memory for it.
  static func compressed(_ bytes: [UInt8]) -> [UInt8]? {
    var stream = z_stream()
    // The longest window without a header, and the usual memory.
    guard
      deflateInit2_(
        &stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
        Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { return nil }
    defer { deflateEnd(&stream) }
    guard let length = UInt32(exactly: bytes.count) else { return nil }
    let room = Int(deflateBound(&stream, UInt(length)))
    var isWhole = false
    var input = bytes
    let output = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
      input.withUnsafeMutableBufferPointer { input in
        stream.next_in = input.baseAddress
        stream.avail_in = length
        stream.next_out = buffer.baseAddress
        stream.avail_out = UInt32(clamping: room)
        isWhole = deflate(&stream, Z_FINISH) == Z_STREAM_END
        count = buffer.count - Int(stream.avail_out)
      }
    }
    return isWhole ? output : nil
  }
}
