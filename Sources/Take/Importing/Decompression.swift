import CZlib
import CZstd

/// Decompresses a capture piece by piece: memory does not grow with what comes
/// out of it, however much that is.
final class Decompression {
  /// The formats that are known.
  enum Format {
    /// RFC 1952.
    case gzip
    /// RFC 8878.
    case zstd

    /// How many bytes tell the format.
    static let headLength = 4

    /// The format that bytes begin with; nil for none.
    init?(_ bytes: [UInt8]) {
      if bytes.starts(with: [0x1f, 0x8b, 8]) {
        self = .gzip
      } else if bytes.starts(with: [0x28, 0xb5, 0x2f, 0xfd]) {
        self = .zstd
      } else {
        return nil
      }
    }
  }

  /// Compressed bytes that are none.
  struct Damage: Error {
    var reason: String
  }

  /// How long a piece is that comes out.
  private static let pieceLength = 1 << 20
  /// A window of 128 MB is the largest that a reader has to have memory for.
  private static let windowLogarithm: Int32 = 27

  private enum Engine {
    /// It points back at itself, and must stay where it is.
    case gzip(UnsafeMutablePointer<z_stream>)
    case zstd(OpaquePointer)
  }

  private let engine: Engine
  /// Whether all that was begun is complete.
  private(set) var isComplete = true
  /// Whether what follows a complete file is something else, which gzip passes over.
  private var isOver = false

  init(_ format: Format) throws(Damage) {
    switch format {
    case .gzip:
      let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
      stream.initialize(to: z_stream())
      // The longest window, and the header of gzip.
      let code = inflateInit2_(
        stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
      engine = .gzip(stream)
      guard code == Z_OK else { throw Damage(reason: "there is no memory to decompress it") }
    case .zstd:
      guard let stream = ZSTD_createDStream() else {
        throw Damage(reason: "there is no memory to decompress it")
      }
      engine = .zstd(stream)
      _ = ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, Self.windowLogarithm)
    }
  }

  deinit {
    switch engine {
    case .gzip(let stream):
      inflateEnd(stream)
      stream.deallocate()
    case .zstd(let stream): ZSTD_freeDStream(stream)
    }
  }

  /// Decompresses further bytes, and hands on what comes out before it continues.
  func expand(_ bytes: [UInt8], _ take: ([UInt8]) throws -> Void) throws {
    var taken = 0
    while !isOver {
      var step: (taken: Int, isDone: Bool) = (0, true)
      var failure: Damage?
      let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceLength) { room, count in
        do throws(Damage) {
          step = try advance(bytes, from: taken, into: room, &count)
        } catch {
          failure = error
        }
      }
      taken += step.taken
      if !piece.isEmpty { try take(piece) }
      if let failure { throw failure }
      if step.isDone { return }
    }
  }

  /// Decompresses until the bytes are used up or the room is full.
  private func advance(
    _ bytes: [UInt8], from start: Int, into room: UnsafeMutableBufferPointer<UInt8>,
    _ count: inout Int
  ) throws(Damage) -> (taken: Int, isDone: Bool) {
    switch engine {
    case .gzip(let stream): try inflate(stream, bytes, start, room, &count)
    case .zstd(let stream): try expand(stream, bytes, start, room, &count)
    }
  }

  private func inflate(
    _ stream: UnsafeMutablePointer<z_stream>, _ bytes: [UInt8], _ start: Int,
    _ room: UnsafeMutableBufferPointer<UInt8>, _ count: inout Int
  ) throws(Damage) -> (taken: Int, isDone: Bool) {
    if isComplete, start < bytes.count {
      // Another file may follow (RFC 1952 section 2.2).
      isOver = bytes[start] != 0x1f
      guard !isOver else { return (bytes.count - start, true) }
      inflateReset(stream)
      isComplete = false
    }
    let (code, left) = bytes.withUnsafeBufferPointer { input in
      stream.pointee.next_in = UnsafeMutablePointer(
        mutating: input.baseAddress.map { $0 + start })
      stream.pointee.avail_in = UInt32(clamping: bytes.count - start)
      stream.pointee.next_out = room.baseAddress
      stream.pointee.avail_out = UInt32(clamping: room.count)
      let code = CZlib.inflate(stream, Z_NO_FLUSH)
      return (code, Int(stream.pointee.avail_in))
    }
    count = room.count - Int(stream.pointee.avail_out)
    isComplete = code == Z_STREAM_END
    // Z_BUF_ERROR is no error: there was nothing left to do.
    guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else {
      throw Damage(reason: "its gzip data are damaged")
    }
    return (bytes.count - start - left, left == 0 && (count < room.count || isComplete))
  }

  private func expand(
    _ stream: OpaquePointer, _ bytes: [UInt8], _ start: Int,
    _ room: UnsafeMutableBufferPointer<UInt8>, _ count: inout Int
  ) throws(Damage) -> (taken: Int, isDone: Bool) {
    var output = ZSTD_outBuffer(dst: room.baseAddress, size: room.count, pos: 0)
    let (code, position) = bytes.withUnsafeBufferPointer { input in
      var input = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: start)
      let code = ZSTD_decompressStream(stream, &output, &input)
      return (code, input.pos)
    }
    count = output.pos
    guard ZSTD_isError(code) == 0 else {
      throw Damage(
        reason: "its zstd data are damaged: \(String(cString: ZSTD_getErrorName(code)))")
    }
    isComplete = code == 0
    return (position - start, position == bytes.count && count < room.count)
  }
}
